//! exp, sigmoid, tanh and SiLU of fp32 slices: one source for every instruction set, the same bits everywhere.
//!
//! Only additions, multiplications, divisions and bit operations in a fixed order, never a fused multiply-add, so that a
//! vector lane and a scalar compute the same. Error: [`exp`] within 2 ulp, the others within 4 ulp.

use crate::simd::dispatch;

/// e^x of one value; the lane function of [`exp`].
///
/// x = n·ln 2 + r with |r| ≤ ln 2 / 2; a polynomial of e^r (Cephes), scaled by 2^n in two steps so that subnormal results are right.
#[inline(always)]
pub(crate) fn exp1(x: f32) -> f32 {
    const MAGIC: f32 = 12_582_912.0; // 1.5 · 2^23: adding it rounds to an integer, to nearest even
    const LN2_HI: f32 = 0.693_359_4; // 355/512: n·LN2_HI is exact
    const LN2_LO: f32 = -2.121_944_4e-4;
    let clamped = if x > 89.0 { 89.0 } else { x };
    let clamped = if clamped < -104.0 { -104.0 } else { clamped };
    let shifted = clamped * std::f32::consts::LOG2_E + MAGIC;
    let n = shifted - MAGIC;
    let r = (clamped - n * LN2_HI) - n * LN2_LO;
    let mut p = 1.987_569_1e-4;
    p = p * r + 1.398_199_9e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_5e-1;
    p = p * r + 0.5;
    p = (p * (r * r) + r) + 1.0;
    let n = (shifted.to_bits() as i32).wrapping_sub(MAGIC.to_bits() as i32);
    let half = n >> 1;
    let y = (p * power_of_two(half)) * power_of_two(n.wrapping_sub(half));
    if x.is_nan() { x } else { y }
}

/// 2^n for −126 ≤ n ≤ 127.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// 1 / (1 + e^−x) of one value.
#[inline(always)]
pub(crate) fn sigmoid1(x: f32) -> f32 {
    1.0 / (1.0 + exp1(-x))
}

/// tanh of one value: an odd polynomial near zero (Cephes), else 1 − 2 / (e^2|x| + 1).
#[inline(always)]
pub(crate) fn tanh1(x: f32) -> f32 {
    let a = x.abs();
    let z = x * x;
    let mut p = -5.704_988_7e-3;
    p = p * z + 2.063_909e-2;
    p = p * z - 5.373_971_4e-2;
    p = p * z + 1.333_144_1e-1;
    p = p * z - 3.333_328e-1;
    let near = (p * z) * x + x;
    let far = (1.0 - 2.0 / (exp1(a + a) + 1.0)).copysign(x);
    let y = if a < 0.625 { near } else { far };
    if x.is_nan() { x } else { y }
}

macro_rules! in_place {
    ($(#[$doc:meta])* $name:ident, $lane:expr) => {
        $(#[$doc])*
        pub fn $name(values: &mut [f32]) {
            dispatch(
                #[inline(always)]
                || {
                    for v in values {
                        *v = $lane(*v);
                    }
                },
            );
        }
    };
}

in_place!(
    /// x ← e^x. Overflows to inf above 88.72, reaches 0 through the subnormals.
    exp, exp1
);
in_place!(
    /// x ← 1 / (1 + e^−x).
    sigmoid, sigmoid1
);
in_place!(
    /// x ← tanh x.
    tanh, tanh1
);
in_place!(
    /// x ← x · sigmoid x.
    silu, |x: f32| x * sigmoid1(x)
);
