//! The SIMD leaf: one source, compiled for several instruction sets, chosen at run time; and the fp16 conversions.
#![allow(unsafe_code)]

use half::f16;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Runs `f` compiled for the best instruction set of this CPU.
///
/// `f` must be an `#[inline(always)]` closure that calls only functions that inline. It is ordinary scalar Rust, which the
/// compiler vectorises without changing a bit: no reassociation, no fused multiply-add.
#[inline]
pub(crate) fn dispatch<R>(f: impl FnOnce() -> R) -> R {
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
pub(crate) fn widen_scalar(src: &[f16], dst: &mut [f32]) {
    for (d, s) in dst.iter_mut().zip(src) {
        *d = s.to_f32_const();
    }
}

/// The portable form of [`round`].
pub(crate) fn round_scalar(src: &[f32], dst: &mut [f16]) {
    for (d, s) in dst.iter_mut().zip(src) {
        *d = f16::from_f32_const(*s);
    }
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
