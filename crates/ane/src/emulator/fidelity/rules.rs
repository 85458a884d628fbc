//! What the chip does to numbers, by generation: rounding, range, subnormals, special values.

use super::mac::{Mac, Tile};
use cpu::f16;
use mil::{Chip, DType};

/// How a tie between two fp16 numbers is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ties {
    /// To the even one: 2049 becomes 2048, as on M1.
    Even,
    /// Away from zero: 2049 becomes 2050, as on M5 (ane-measurements 1.1; why is open). M5's `round`, which takes 1024 to 1025,
    /// agrees.
    Away,
}

/// A magnitude from which a multiply-accumulate's result is infinite (ane-measurements 1.1).
pub(super) const MAC_LIMIT: f64 = 32768.0;

/// What ln(0) gives (ane-measurements 1.3).
pub(super) const LOG_OF_ZERO: f64 = -45440.0;

/// Smallest normal fp16.
const SMALLEST_NORMAL: f64 = 6.103515625e-5;

/// The arithmetic of one evaluation.
#[derive(Clone, Copy, Debug)]
pub(in crate::emulator) struct Rules {
    /// `None`: exact arithmetic, IEEE's special values.
    pub(super) chip: Option<Chip>,
    /// How sums of products are taken on that chip.
    pub(super) mac: Mac,
    ties: Ties,
    /// The multiply-accumulate's subnormal results become +0: M1. M5 keeps them; between them it is unknown, and the harsher is
    /// taken: what trains here then trains there.
    flushes: bool,
}

impl Rules {
    /// What the language means.
    pub(in crate::emulator) const EXACT: Rules = Rules { chip: None, mac: Mac::Wide, ties: Ties::Even, flushes: false };

    /// What a chip does.
    pub(in crate::emulator) fn of(chip: Chip, mac: Mac) -> Rules {
        let ties = if chip >= Chip::H17 { Ties::Away } else { Ties::Even };
        Rules { chip: Some(chip), mac, ties, flushes: chip < Chip::H17 }
    }

    /// Whether the chip's own arithmetic decides a result of this type.
    pub(super) fn imitates(&self, dtype: DType) -> bool {
        self.chip.is_some() && dtype == DType::F16
    }

    /// An operand as an op takes it: the chip reads NaN as +inf (ane-measurements 1.3).
    pub(super) fn operand(&self, dtype: DType, x: f64) -> f64 {
        if self.imitates(dtype) && x.is_nan() { f64::INFINITY } else { x }
    }

    /// A result as it is stored. The chip gives +0 for NaN.
    pub(super) fn store(&self, dtype: DType, x: f64) -> f64 {
        match dtype {
            DType::F16 if self.chip.is_some() && x.is_nan() => 0.0,
            DType::F16 if self.ties == Ties::Away => half_away(x),
            DType::F16 | DType::F32 | DType::BF16 | DType::F64 => dtype.round(x),
            DType::Bool => f64::from(u8::from(x != 0.0)),
            _ => integer(dtype, x),
        }
    }

    /// A sum of products as it is stored: infinite from 2^15 on, judged after rounding; subnormals perhaps lost.
    pub(super) fn store_sum(&self, dtype: DType, x: f64) -> f64 {
        let y = self.store(dtype, x);
        match self.imitates(dtype) {
            true if y.abs() >= MAC_LIMIT => f64::INFINITY.copysign(y),
            true if self.flushes && y.abs() < SMALLEST_NORMAL => 0.0,
            _ => y,
        }
    }

    /// Tile sums of a matmul. Digits agree across generations (ane-measurements 1.1).
    pub(super) fn matmul_tile(&self) -> Tile {
        Tile::Cut
    }

    /// Tile sums of a conv: M1 to M4 show the error of exact ones, M5 that of cut ones (ane-measurements 1.8).
    pub(super) fn conv_tile(&self) -> Tile {
        if self.chip >= Some(Chip::H17) { Tile::Cut } else { Tile::Exact }
    }

    /// The narrow sum of `reduce_sum`: fp16 at every addition, ties away from zero on every chip tested (2049 becomes 2050), in
    /// halves: another order was seen to change one ulp at most (ane-measurements 1.2).
    pub(super) fn narrow_sum(&self, x: &[f64]) -> f64 {
        match x {
            [] => 0.0,
            [x] => *x,
            _ => {
                let (a, b) = x.split_at(x.len() / 2);
                let sum = self.narrow_sum(a) + self.narrow_sum(b);
                if sum.is_nan() { 0.0 } else { half_away(sum) }
            }
        }
    }
}

/// The nearest fp16, ties away from zero.
fn half_away(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let exponent = (x.abs().log2().floor() as i32).max(-14);
    // log2 may be off by one at a power of two; the neighbour's step is then twice as coarse or fine.
    let exponent = if x.abs() < 2f64.powi(exponent) { (exponent - 1).max(-14) } else { exponent };
    let exponent = if x.abs() >= 2f64.powi(exponent + 1) { exponent + 1 } else { exponent };
    let step = 2f64.powi(exponent - 10);
    let y = (x / step).round() * step;
    if y.abs() > f64::from(f16::MAX) { f64::INFINITY.copysign(x) } else { y }
}

/// Towards zero, then wrapped to the type, as two's complement arithmetic does.
fn integer(dtype: DType, x: f64) -> f64 {
    let bits = dtype.bits().min(64) as u32;
    let wrapped = (x.trunc() as i128).rem_euclid(1i128 << bits);
    let signed = matches!(dtype, DType::I4 | DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let value = if signed && wrapped >= 1i128 << (bits - 1) { wrapped - (1i128 << bits) } else { wrapped };
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_away_from_zero_and_nothing_else_changes() {
        for bits in (0..0x7c00u16).step_by(7) {
            let (x, next) = (f16::from_bits(bits).to_f64(), f16::from_bits(bits + 1).to_f64());
            assert_eq!(half_away(x), x);
            assert_eq!(half_away(-x), -x);
            if next.is_finite() {
                let middle = (x + next) / 2.0;
                assert_eq!(half_away(middle), next, "between {x} and {next}");
                assert_eq!(half_away(-middle), -next);
                assert_eq!(half_away(middle * (1.0 - 1e-12)), x);
            }
        }
        assert_eq!(half_away(65519.9), 65504.0);
        assert_eq!(half_away(65520.0), f64::INFINITY);
    }

    #[test]
    fn integers_wrap() {
        assert_eq!(integer(DType::I8, 130.0), -126.0);
        assert_eq!(integer(DType::U8, -1.0), 255.0);
        assert_eq!(integer(DType::I32, -2.9), -2.0);
        assert_eq!(integer(DType::U4, 17.0), 1.0);
    }
}
