//! fp16 and fp32: the one widening and the one rounding of the whole project, and what the chip does to a result.

use crate::simd;
use half::f16;

/// fp16 → fp32, exact. NaN stays NaN.
///
/// # Panics
/// When the lengths differ.
pub fn widen(src: &[f16], dst: &mut [f32]) {
    simd::widen(src, dst);
}

/// fp32 → fp16, to nearest, ties to even, overflow to ±inf, subnormals kept. NaN stays NaN.
/// The bits are the same on every instruction set (for NaN: still NaN).
///
/// # Panics
/// When the lengths differ.
pub fn round(src: &[f32], dst: &mut [f16]) {
    simd::round(src, dst);
}

/// What a device does to a result besides rounding it to fp16: NaN, range and subnormals, in this order, after rounding.
///
/// The limit is applied to the *rounded* value: published probes find a matmul's edge near 32759 (ane-measurements 1.1),
/// where rounding reaches 32768, so that 32768 itself never comes out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finish {
    /// A rounded result of at least this magnitude becomes ±inf: 2^15 for matmul and conv (ane-measurements 1.1), 65520 (fp16's own
    /// range, no further limit) for elementwise ops.
    pub limit: f32,
    /// A subnormal result becomes +0 (the multiply-accumulate of H13, ane-measurements 1.1).
    pub flush_subnormals: bool,
    /// A NaN result becomes +0, and a matmul takes a NaN operand for +inf: the chip never outputs NaN (ane-measurements 1.3).
    pub nan_to_zero: bool,
}

impl Finish {
    /// Nothing but rounding.
    pub const PLAIN: Finish = Finish { limit: 65520.0, flush_subnormals: false, nan_to_zero: false };
    /// An elementwise op of the device.
    pub const ELEMENTWISE: Finish = Finish { nan_to_zero: true, ..Finish::PLAIN };
    /// A matmul or conv of the device.
    pub const MATMUL: Finish = Finish { limit: 32768.0, flush_subnormals: false, nan_to_zero: true };

    /// Rounds and finishes one value.
    pub fn apply(self, x: f32) -> f16 {
        f16::from_bits(self.fix(f16::from_f32_const(x).to_bits(), self.limit_bits()))
    }

    /// Rounds and finishes a slice.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn round(self, src: &[f32], dst: &mut [f16]) {
        simd::round(src, dst);
        if self != Finish::PLAIN {
            self.fix_all(dst);
        }
    }

    /// Finishes values that are already rounded.
    pub fn fix_all(self, values: &mut [f16]) {
        let limit = self.limit_bits();
        let bits: &mut [u16] = bytemuck::cast_slice_mut(values);
        simd::dispatch(
            #[inline(always)]
            || {
                for b in bits {
                    *b = self.fix(*b, limit);
                }
            },
        );
    }

    /// Magnitude bits from which on a value becomes infinite.
    pub(crate) fn limit_bits(self) -> u16 {
        f16::from_f32_const(self.limit.abs()).to_bits().min(0x7c00)
    }

    #[inline(always)]
    fn fix(self, bits: u16, limit: u16) -> u16 {
        let magnitude = bits & 0x7fff;
        let nan = magnitude > 0x7c00;
        let mut out = if magnitude >= limit && !nan { (bits & 0x8000) | 0x7c00 } else { bits };
        out = if self.flush_subnormals && magnitude < 0x0400 { 0 } else { out };
        if self.nan_to_zero && nan { 0 } else { out }
    }
}
