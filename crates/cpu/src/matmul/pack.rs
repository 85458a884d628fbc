//! The packing leaf: 32×32 blocks of fp16, split in bf16 halves and laid out for tiles.
//!
//! A block has 32 outer lines (rows of A or columns of B) × 32 steps of the contraction. As `Rows` (the left tile operand)
//! each of its lines is contiguous; as `Columns` (the right one) pairs of steps lie side by side for every line. Which source order is
//! cheap differs: straight for one, a transpose of 16×16 pairs for the other.
#![allow(unsafe_code)]

use super::amx::{Amx, BLOCK};
use crate::simd::transpose16;
use half::f16;
use std::arch::x86_64::*;

/// Which tile operand a panel becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Left: 16 rows of 32 steps per tile.
    Rows,
    /// Right: 16 pairs of steps of 16 columns per tile.
    Columns,
}

/// Packs one block and returns the largest magnitude bits met, 0x7c00 or more when something is not finite.
///
/// `along`: the source's 32 lines, every `stride` elements, run along the contraction (one outer line each); else each
/// is one step of the contraction across 32 outer lines.
///
/// # Panics
/// When the source is too short or `out` is not one block on a cache line.
pub(super) fn block(_: Amx, role: Role, along: bool, source: &[f16], stride: usize, out: &mut [u16]) -> u16 {
    assert!(source.len() >= 31 * stride + 32 && out.len() == BLOCK && out.as_ptr().align_offset(64) == 0, "amx: block bounds");
    let (source, out): (*const u16, _) = (source.as_ptr().cast(), out.as_mut_ptr());
    // Steps of the contraction are far apart, often a multiple of 4 KiB, so those lines would push each other out of the first level.
    let next = source.wrapping_add(if along { ALONG * 32 } else { ACROSS * 32 * stride });
    for i in 0..32 {
        // SAFETY: a prefetch has no effect that a program can see, at any address.
        unsafe {
            if along {
                _mm_prefetch::<_MM_HINT_T0>(next.wrapping_add(i * stride).cast());
            } else {
                _mm_prefetch::<_MM_HINT_T1>(next.wrapping_add(i * stride).cast());
            }
        }
    }
    // SAFETY: the AVX-512 sets are there (the argument proves it); 32 lines of 32 elements lie inside the source, and the block of
    // 4 KiB is aligned, both by the assertion.
    unsafe {
        match (role, along) {
            (Role::Rows, true) => rows_along(source, stride, out),
            (Role::Rows, false) => rows_across(source, stride, out),
            (Role::Columns, true) => columns_along(source, stride, out),
            (Role::Columns, false) => columns_across(source, stride, out),
        }
    }
}

/// Blocks that are fetched ahead, along and across the contraction: the source comes from memory or the last-level cache, in
/// pieces too short for the hardware to guess.
const ALONG: usize = 3;
const ACROSS: usize = 2;

/// Offset of line or pair `i` of half block `tile` (0: the first 16 outer lines).
const fn at(tile: usize, i: usize) -> usize {
    tile * 512 + i * 32
}

/// Splits 32 fp16 and stores the halves; hi at `out`, lo two tiles on.
///
/// # Safety
/// `out` has room for both and lies on a cache line.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn split(x: __m512i, out: *mut u16) {
    // Adding half of the last place that bf16 keeps rounds to nearest; a tie goes away from zero, and lo is exact all the same.
    let half = _mm512_set1_epi32(0x8000);
    let keep = _mm512_set1_epi32(0xffff_0000_u32 as i32);
    let x0 = _mm512_cvtph_ps(_mm512_castsi512_si256(x));
    let x1 = _mm512_cvtph_ps(_mm512_extracti64x4_epi64::<1>(x));
    let h0 = _mm512_castsi512_ps(_mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(x0), half), keep));
    let h1 = _mm512_castsi512_ps(_mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(x1), half), keep));
    let hi = _mm512_cvtne2ps_pbh(h1, h0);
    let lo = _mm512_cvtne2ps_pbh(_mm512_sub_ps(x1, h1), _mm512_sub_ps(x0, h0));
    // SAFETY: as the caller promises; both types are 64 plain bytes.
    unsafe {
        out.cast::<__m512bh>().write(hi);
        out.add(BLOCK / 2).cast::<__m512bh>().write(lo);
    }
}

/// The magnitudes seen so far and those of `x`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn seen(top: __m512i, x: __m512i) -> __m512i {
    _mm512_max_epu16(top, _mm512_and_si512(x, _mm512_set1_epi16(0x7fff)))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn largest(top: __m512i) -> u16 {
    let mut lanes = [0u16; 32];
    // SAFETY: 64 bytes on either side.
    unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), top) };
    lanes.into_iter().fold(0, u16::max)
}

/// # Safety
/// `block`'s assertion, for this and the next three.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn rows_along(source: *const u16, stride: usize, out: *mut u16) -> u16 {
    let mut top = _mm512_setzero_si512();
    for i in 0..32 {
        // SAFETY: line i of the source, row i of the block.
        unsafe {
            let x = _mm512_loadu_si512(source.add(i * stride).cast());
            top = seen(top, x);
            split(x, out.add(at(i / 16, i % 16)));
        }
    }
    largest(top)
}

/// # Safety
/// As [`rows_along`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn columns_across(source: *const u16, stride: usize, out: *mut u16) -> u16 {
    let mut top = _mm512_setzero_si512();
    for pair in 0..16 {
        // SAFETY: lines 2·pair and 2·pair + 1 of the source, row `pair` of both half blocks.
        unsafe {
            let x = _mm512_loadu_si512(source.add(2 * pair * stride).cast());
            let y = _mm512_loadu_si512(source.add((2 * pair + 1) * stride).cast());
            top = seen(seen(top, x), y);
            let (a, b) = interleave(x, y);
            split(a, out.add(at(0, pair)));
            split(b, out.add(at(1, pair)));
        }
    }
    largest(top)
}

/// # Safety
/// As [`rows_along`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn rows_across(source: *const u16, stride: usize, out: *mut u16) -> u16 {
    let mut top = _mm512_setzero_si512();
    let mut first = [_mm512_setzero_si512(); 16];
    let mut second = first;
    for pair in 0..16 {
        // SAFETY: lines 2·pair and 2·pair + 1 of the source.
        unsafe {
            let x = _mm512_loadu_si512(source.add(2 * pair * stride).cast());
            let y = _mm512_loadu_si512(source.add((2 * pair + 1) * stride).cast());
            top = seen(seen(top, x), y);
            (first[pair], second[pair]) = interleave(x, y);
        }
    }
    for (tile, pairs) in [first, second].into_iter().enumerate() {
        for (i, line) in transpose16(pairs).into_iter().enumerate() {
            // SAFETY: row i of the half block.
            unsafe { split(line, out.add(at(tile, i))) };
        }
    }
    largest(top)
}

/// # Safety
/// As [`rows_along`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn columns_along(source: *const u16, stride: usize, out: *mut u16) -> u16 {
    let mut top = _mm512_setzero_si512();
    for tile in 0..2 {
        let mut lines = [_mm512_setzero_si512(); 16];
        for (i, line) in lines.iter_mut().enumerate() {
            // SAFETY: line 16·tile + i of the source.
            *line = unsafe { _mm512_loadu_si512(source.add((16 * tile + i) * stride).cast()) };
            top = seen(top, *line);
        }
        for (pair, columns) in transpose16(lines).into_iter().enumerate() {
            // SAFETY: row `pair` of the half block.
            unsafe { split(columns, out.add(at(tile, pair))) };
        }
    }
    largest(top)
}

/// (x0 y0 x1 y1 … x15 y15, x16 y16 … x31 y31)
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn interleave(x: __m512i, y: __m512i) -> (__m512i, __m512i) {
    let (low, high) = (_mm512_unpacklo_epi16(x, y), _mm512_unpackhi_epi16(x, y));
    (
        _mm512_permutex2var_epi64(low, _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), high),
        _mm512_permutex2var_epi64(low, _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15), high),
    )
}
