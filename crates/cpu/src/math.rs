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

/// 1 / (1 + e^−x) of one value, by e^−|x|, which cannot overflow.
#[inline(always)]
pub(crate) fn sigmoid1(x: f32) -> f32 {
    let e = exp1(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Inputs that cover the exponents, both signs, and the neighbourhoods where methods change.
    fn inputs() -> Vec<f32> {
        let mut x: Vec<f32> = (0..=u32::MAX).step_by(4099).map(f32::from_bits).collect();
        x.extend((-110_000..=110_000).map(|i| i as f32 / 1000.0));
        x.extend([0.0, -0.0, 0.625, -0.625, 88.72, 88.73, -87.3, -87.4, -103.9, -104.1, f32::INFINITY, f32::NEG_INFINITY]);
        x
    }

    fn ulps(got: f32, want: f64) -> f64 {
        let rounded = want as f32;
        if got == rounded || got.is_nan() && want.is_nan() {
            return 0.0;
        }
        if !got.is_finite() || !rounded.is_finite() {
            return f64::INFINITY;
        }
        let place = f64::from(rounded.abs().max(f32::MIN_POSITIVE));
        (f64::from(got) - want).abs() / (2f64.powi(place.log2().floor() as i32 - 23))
    }

    /// Vector lanes, tails, and plain scalar code give the same bits; and they are near the truth.
    fn check(name: &str, vector: fn(&mut [f32]), lane: fn(f32) -> f32, exact: fn(f64) -> f64, limit: f64) {
        let x = inputs();
        let mut y = x.clone();
        vector(&mut y);
        let mut worst = (0.0, 0.0);
        for (&x, &y) in x.iter().zip(&y) {
            assert!(lane(x).to_bits() == y.to_bits() || x.is_nan() && y.is_nan(), "{name}({x}): lane and slice differ");
            let error = ulps(y, exact(f64::from(x)));
            if error > worst.0 {
                worst = (error, x);
            }
        }
        assert!(worst.0 <= limit, "{name}({}) is off by {} ulp", worst.1, worst.0);
    }

    #[test]
    fn exp_is_within_two_ulp() {
        check("exp", exp, exp1, f64::exp, 2.0);
    }

    #[test]
    fn sigmoid_is_within_four_ulp() {
        check("sigmoid", sigmoid, sigmoid1, |x| 1.0 / (1.0 + (-x).exp()), 4.0);
    }

    #[test]
    fn tanh_is_within_four_ulp() {
        check("tanh", tanh, tanh1, f64::tanh, 4.0);
    }

    #[test]
    fn silu_of_known_points() {
        let mut x = [0.0, 1.0, -1.0, 20.0];
        silu(&mut x);
        for (got, want) in x.iter().zip([0.0, 0.731_058_6, -0.268_941_4, 20.0]) {
            assert!((got - want).abs() < 1e-6, "{got} for {want}");
        }
    }
}
