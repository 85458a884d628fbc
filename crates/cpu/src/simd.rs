//! The SIMD leaf: one source, compiled for several instruction sets, chosen at run time; and the fp16 conversions.
#![allow(unsafe_code)]

use crate::round::Finish;
use half::f16;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Runs `f` compiled for the best instruction set of this CPU.
///
/// `f` must be an `#[inline(always)]` closure that calls only functions that inline. It is ordinary scalar Rust, which the
/// compiler vectorises without changing a bit: no reassociation, no fused multiply-add.
#[inline]
pub fn dispatch<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512() {
            // SAFETY: the features were detected just now.
            return unsafe { with_avx512(f) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { with_avx2(f) };
        }
    }
    f()
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn with_avx512<R>(f: impl FnOnce() -> R) -> R {
    f()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// fp16 → fp32, exact. NaN stays NaN.
///
/// # Panics
/// When the lengths differ.
pub(crate) fn widen(src: &[f16], dst: &mut [f32]) {
    assert_eq!(src.len(), dst.len(), "widen: lengths differ");
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512() {
            // SAFETY: the features were detected just now.
            return unsafe { widen_avx512(src, dst) };
        }
        if is_x86_feature_detected!("f16c") {
            // SAFETY: as above.
            return unsafe { widen_f16c(src, dst) };
        }
    }
    widen_scalar(src, dst);
}

/// fp32 → fp16, to nearest, ties to even. NaN stays NaN.
///
/// # Panics
/// When the lengths differ.
pub(crate) fn round(src: &[f32], dst: &mut [f16]) {
    assert_eq!(src.len(), dst.len(), "round: lengths differ");
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512() {
            // SAFETY: the features were detected just now.
            return unsafe { round_avx512(src, dst) };
        }
        if is_x86_feature_detected!("f16c") {
            // SAFETY: as above.
            return unsafe { round_f16c(src, dst) };
        }
    }
    round_scalar(src, dst);
}

/// The portable form of [`widen`].
fn widen_scalar(src: &[f16], dst: &mut [f32]) {
    for (d, s) in dst.iter_mut().zip(src) {
        *d = s.to_f32_const();
    }
}

/// The portable form of [`round`].
fn round_scalar(src: &[f32], dst: &mut [f16]) {
    for (d, s) in dst.iter_mut().zip(src) {
        *d = f16::from_f32_const(*s);
    }
}

/// Rounds the first `lines` × `length` values of a 32 × 32 tile to fp16 and finishes them, one line every `stride` elements from `to` on.
///
/// # Safety
/// `lines` and `length` are at most 32, and each line of `length` elements may be written.
pub(crate) unsafe fn store_tile(tile: &[f32], to: *mut f16, stride: usize, lines: usize, length: usize, finish: Finish) {
    assert!(tile.len() == 1024 && lines <= 32 && length <= 32, "store: not a tile");
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        // SAFETY: the features were detected just now; the caller's promise is passed on.
        return unsafe { store_tile_avx512(tile, to, stride, lines, length, finish) };
    }
    // SAFETY: the caller's promise is passed on.
    unsafe { store_tile_by_lines(tile, to, stride, lines, length, finish) };
}

/// The portable form of [`store_tile`].
///
/// # Safety
/// As [`store_tile`].
unsafe fn store_tile_by_lines(tile: &[f32], to: *mut f16, stride: usize, lines: usize, length: usize, finish: Finish) {
    let mut half = [f16::ZERO; 32];
    for (i, line) in tile.chunks_exact(32).take(lines).enumerate() {
        finish.round(line, &mut half);
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(half.as_ptr(), to.add(i * stride), length) };
    }
}

/// # Safety
/// As [`store_tile`], with a whole tile.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn store_tile_avx512(tile: &[f32], to: *mut f16, stride: usize, lines: usize, length: usize, finish: Finish) {
    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    let mask = if length == 32 { u32::MAX } else { (1 << length) - 1 };
    let limit = _mm512_set1_epi16(finish.limit_bits() as i16);
    let infinity = _mm512_set1_epi16(0x7c00);
    let sign = _mm512_set1_epi16(i16::MIN);
    let normal = _mm512_set1_epi16(if finish.flush_subnormals { 0x0400 } else { 0 });
    for (i, line) in tile.chunks_exact(32).take(lines).enumerate() {
        // SAFETY: 32 values are read; the mask keeps to the `length` elements that the caller lets us write.
        unsafe {
            let low = _mm512_cvtps_ph::<NEAREST>(_mm512_loadu_ps(line.as_ptr()));
            let high = _mm512_cvtps_ph::<NEAREST>(_mm512_loadu_ps(line.as_ptr().add(16)));
            let x = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
            let magnitude = _mm512_andnot_si512(sign, x);
            let nan = _mm512_cmpgt_epu16_mask(magnitude, infinity);
            let over = _mm512_cmpge_epu16_mask(magnitude, limit) & !nan;
            let infinite = _mm512_or_si512(_mm512_and_si512(x, sign), infinity);
            let keep = _mm512_cmpge_epu16_mask(magnitude, normal) & if finish.nan_to_zero { !nan } else { u32::MAX };
            let x = _mm512_maskz_mov_epi16(keep, _mm512_mask_mov_epi16(x, over, infinite));
            _mm512_mask_storeu_epi16(to.add(i * stride).cast(), mask, x);
        }
    }
}

/// The transpose of 32 × 32 row-major values.
///
/// # Panics
/// When either is not 1024 values.
pub(crate) fn transpose_tile(tile: &[f32], out: &mut [f32]) {
    assert!(tile.len() == 1024 && out.len() == 1024, "transpose: not a tile");
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        for (r, c) in [(0, 0), (0, 16), (16, 0), (16, 16)] {
            // SAFETY: the features were detected just now; both 16 × 16 corners lie inside the tiles.
            unsafe { transpose_corner(tile.as_ptr().add(r * 32 + c), out.as_mut_ptr().add(c * 32 + r)) };
        }
        return;
    }
    transpose_by_lines(tile, out);
}

/// The portable form of [`transpose_tile`].
fn transpose_by_lines(tile: &[f32], out: &mut [f32]) {
    for (r, line) in tile.chunks_exact(32).enumerate() {
        for (c, v) in line.iter().enumerate() {
            out[c * 32 + r] = *v;
        }
    }
}

/// # Safety
/// 16 rows of 16 values, every 32 values, lie at both places.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn transpose_corner(from: *const f32, to: *mut f32) {
    let mut lines = [_mm512_setzero_si512(); 16];
    for (i, line) in lines.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        *line = unsafe { _mm512_loadu_si512(from.add(i * 32).cast()) };
    }
    for (i, line) in transpose16(lines).into_iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { _mm512_storeu_si512(to.add(i * 32).cast(), line) };
    }
}

/// The transpose of 16 × 16 32-bit elements: by elements, by pairs, by quarters.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn transpose16(r: [__m512i; 16]) -> [__m512i; 16] {
    let mut t = r;
    for i in (0..16).step_by(2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    let mut u = t;
    for i in (0..16).step_by(4) {
        u[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        u[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        u[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        u[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    // Quarter q of u[4g + c] is column 4q + c of rows 4g .. 4g + 4.
    let mut out = u;
    for c in 0..4 {
        let even = _mm512_shuffle_i32x4::<0x88>(u[c], u[4 + c]);
        let odd = _mm512_shuffle_i32x4::<0xdd>(u[c], u[4 + c]);
        let even2 = _mm512_shuffle_i32x4::<0x88>(u[8 + c], u[12 + c]);
        let odd2 = _mm512_shuffle_i32x4::<0xdd>(u[8 + c], u[12 + c]);
        out[c] = _mm512_shuffle_i32x4::<0x88>(even, even2);
        out[4 + c] = _mm512_shuffle_i32x4::<0x88>(odd, odd2);
        out[8 + c] = _mm512_shuffle_i32x4::<0xdd>(even, even2);
        out[12 + c] = _mm512_shuffle_i32x4::<0xdd>(odd, odd2);
    }
    out
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn widen_avx512(src: &[f16], dst: &mut [f32]) {
    let n = src.len();
    let mut i = 0;
    while i < n {
        let mask = lanes(n - i);
        // SAFETY: the mask keeps both accesses inside the slices, which are equally long.
        unsafe {
            let h = _mm256_maskz_loadu_epi16(mask, src.as_ptr().add(i).cast());
            _mm512_mask_storeu_ps(dst.as_mut_ptr().add(i), mask, _mm512_cvtph_ps(h));
        }
        i += 16;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn round_avx512(src: &[f32], dst: &mut [f16]) {
    let n = src.len();
    let mut i = 0;
    while i < n {
        let mask = lanes(n - i);
        // SAFETY: the mask keeps both accesses inside the slices, which are equally long.
        unsafe {
            let x = _mm512_maskz_loadu_ps(mask, src.as_ptr().add(i));
            let h = _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x);
            _mm256_mask_storeu_epi16(dst.as_mut_ptr().add(i).cast(), mask, h);
        }
        i += 16;
    }
}

/// A mask of the first `left` of 16 lanes.
#[cfg(target_arch = "x86_64")]
#[inline]
fn lanes(left: usize) -> u16 {
    if left >= 16 { u16::MAX } else { (1u16 << left) - 1 }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "f16c,avx")]
fn widen_f16c(src: &[f16], dst: &mut [f32]) {
    let mut s = src.chunks_exact(8);
    let mut d = dst.chunks_exact_mut(8);
    for (s, d) in (&mut s).zip(&mut d) {
        // SAFETY: both chunks hold eight elements.
        unsafe { _mm256_storeu_ps(d.as_mut_ptr(), _mm256_cvtph_ps(_mm_loadu_si128(s.as_ptr().cast()))) };
    }
    widen_scalar(s.remainder(), d.into_remainder());
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "f16c,avx")]
fn round_f16c(src: &[f32], dst: &mut [f16]) {
    let mut s = src.chunks_exact(8);
    let mut d = dst.chunks_exact_mut(8);
    for (s, d) in (&mut s).zip(&mut d) {
        // SAFETY: both chunks hold eight elements.
        unsafe {
            let h = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(s.as_ptr()));
            _mm_storeu_si128(d.as_mut_ptr().cast(), h);
        }
    }
    round_scalar(s.remainder(), d.into_remainder());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: &[f16], b: &[f16]) -> bool {
        a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan())
    }

    /// Every form of widening and rounding that this CPU can run gives the bits of the portable one.
    #[test]
    fn all_instruction_sets_round_alike() {
        let singles: Vec<f32> = (0..=u32::MAX).step_by(16_381).map(f32::from_bits).collect();
        let mut want = vec![f16::ZERO; singles.len()];
        round_scalar(&singles, &mut want);
        let all: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        let mut wide = vec![0f32; all.len()];
        widen_scalar(&all, &mut wide);
        let wide_bits = |x: &[f32]| x.iter().map(|x| if x.is_nan() { 0 } else { x.to_bits() }).collect::<Vec<_>>();
        let (mut halves, mut again) = (vec![f16::ZERO; singles.len()], vec![0f32; all.len()]);
        round(&singles, &mut halves);
        widen(&all, &mut again);
        assert!(same(&halves, &want) && wide_bits(&again) == wide_bits(&wide));
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("f16c") {
            let n = singles.len() - 3; // leaves a tail
            // SAFETY: the feature was detected just now.
            unsafe {
                round_f16c(&singles[..n], &mut halves[..n]);
                widen_f16c(&all[..all.len() - 3], &mut again[..all.len() - 3]);
            }
            assert!(same(&halves, &want) && wide_bits(&again) == wide_bits(&wide), "f16c");
        }
    }

    #[test]
    fn all_instruction_sets_compute_alike() {
        let pass = |x: &mut [f32]| {
            for x in x {
                *x = crate::math::tanh1(*x) + crate::math::exp1(*x) * 0.3;
            }
        };
        let inputs: Vec<f32> = (-3000..3000).map(|i| i as f32 / 271.0).collect();
        let (mut plain, mut best) = (inputs.clone(), inputs.clone());
        pass(&mut plain);
        dispatch(
            #[inline(always)]
            || pass(&mut best),
        );
        assert_eq!(plain, best);
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            let mut narrow = inputs;
            // SAFETY: the feature was detected just now.
            unsafe {
                with_avx2(
                    #[inline(always)]
                    || pass(&mut narrow),
                );
            }
            assert_eq!(plain, narrow);
        }
    }

    #[test]
    fn tiles_turn_and_store_alike() {
        let tile: Vec<f32> = (0..1024).map(|i| (i as f32 - 500.0) * 97.0 + if i % 50 == 0 { f32::NAN } else { 0.0 }).collect();
        let (mut turned, mut by_lines) = (vec![0f32; 1024], vec![1f32; 1024]);
        transpose_tile(&tile, &mut turned);
        transpose_by_lines(&tile, &mut by_lines);
        assert!(turned.iter().zip(&by_lines).all(|(a, b)| a.to_bits() == b.to_bits()));
        assert_eq!(turned[33 * 4].to_bits(), tile[33 * 4].to_bits());
        assert_eq!(turned[5 * 32 + 7], tile[7 * 32 + 5]);
        let flush = Finish { flush_subnormals: true, ..Finish::MATMUL };
        for finish in [Finish::PLAIN, Finish::ELEMENTWISE, Finish::MATMUL, flush] {
            for (lines, length) in [(32, 32), (3, 17), (32, 1), (1, 31)] {
                let (mut fast, mut slow) = (vec![f16::ONE; 40 * 32], vec![f16::ONE; 40 * 32]);
                // SAFETY: 32 lines of at most 32 elements, every 40, fit in both.
                unsafe {
                    store_tile(&tile, fast.as_mut_ptr(), 40, lines, length, finish);
                    store_tile_by_lines(&tile, slow.as_mut_ptr(), 40, lines, length, finish);
                }
                assert!(same(&fast, &slow), "{finish:?} {lines} {length}");
            }
        }
    }
}
