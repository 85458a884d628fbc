//! Widening, rounding and finishing against the `half` crate.

use crate::Random;
use cpu::round::{round, widen};
use cpu::{Finish, f16};

#[test]
fn every_half_widens_as_half_does_and_comes_back() {
    let all: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    let mut wide = vec![0f32; all.len()];
    widen(&all, &mut wide);
    let mut back = vec![f16::ZERO; all.len()];
    round(&wide, &mut back);
    for ((h, w), b) in all.iter().zip(&wide).zip(&back) {
        if h.is_nan() {
            assert!(w.is_nan() && b.is_nan(), "{:#06x}", h.to_bits());
        } else {
            assert_eq!(w.to_bits(), h.to_f32_const().to_bits(), "{:#06x}", h.to_bits());
            assert_eq!(b.to_bits(), h.to_bits(), "{:#06x}", h.to_bits());
        }
    }
}

fn agrees(singles: &[f32], out: &mut [f16]) {
    round(singles, out);
    for (x, got) in singles.iter().zip(out) {
        let want = f16::from_f32_const(*x);
        assert!(got.to_bits() == want.to_bits() || x.is_nan() && got.is_nan(), "{:#010x}: {got} for {want}", x.to_bits());
    }
}

/// 2^20 bit patterns of all exponents, and the ties, at every length of a tail.
#[test]
fn singles_round_as_half_does() {
    let mut random = Random::new(1);
    let mut singles: Vec<f32> = (0..1 << 20).map(|_| f32::from_bits((random.next() >> 20) as u32)).collect();
    for h in 0..0x7c00u16 {
        let (low, high) = (f16::from_bits(h).to_f32(), f16::from_bits(h + 1).to_f32());
        let tie = if high.is_finite() { f32::midpoint(low, high) } else { 65520.0 };
        singles.extend([tie, -tie, tie.next_up(), tie.next_down()]);
    }
    let mut out = vec![f16::ZERO; singles.len()];
    agrees(&singles, &mut out);
    for n in 0..40 {
        agrees(&singles[100..100 + n], &mut out[..n]);
    }
}

/// All 2^32 inputs; some ten seconds, so only on request.
#[test]
#[ignore = "takes ten seconds and more"]
fn all_singles_round_as_half_does() {
    let mut out = vec![f16::ZERO; 1 << 16];
    for high in 0..=u16::MAX {
        let singles: Vec<f32> = (0..=u16::MAX).map(|low| f32::from_bits(u32::from(high) << 16 | u32::from(low))).collect();
        agrees(&singles, &mut out);
    }
}

#[test]
fn finishing_by_hand() {
    let flush = Finish { flush_subnormals: true, ..Finish::MATMUL };
    let subnormal = 2f32.powi(-15);
    let cases = [
        (Finish::MATMUL, f32::NAN, 0x0000),
        (Finish::MATMUL, 32752.0, 0x77ff),
        (Finish::MATMUL, 32759.0, 0x77ff),
        (Finish::MATMUL, 32760.0, 0x7c00),
        (Finish::MATMUL, -32768.0, 0xfc00),
        (Finish::MATMUL, -0.0, 0x8000),
        (Finish::MATMUL, subnormal, 0x0200),
        (Finish::ELEMENTWISE, 32768.0, 0x7800),
        (Finish::ELEMENTWISE, 65519.0, 0x7bff),
        (Finish::ELEMENTWISE, 65520.0, 0x7c00),
        (Finish::ELEMENTWISE, f32::NEG_INFINITY, 0xfc00),
        (Finish::ELEMENTWISE, f32::NAN, 0x0000),
        (flush, subnormal, 0x0000),
        (flush, -subnormal, 0x0000),
        (flush, 2f32.powi(-14), 0x0400),
        (flush, -40000.0, 0xfc00),
    ];
    for (finish, x, want) in cases {
        assert_eq!(finish.apply(x).to_bits(), want, "{finish:?} of {x}");
        let mut out = [f16::ONE; 37];
        finish.round(&[x; 37], &mut out);
        assert!(out.iter().all(|h| h.to_bits() == want), "{finish:?} of {x}, as a slice");
    }
    assert!(Finish::PLAIN.apply(f32::NAN).is_nan());
}
