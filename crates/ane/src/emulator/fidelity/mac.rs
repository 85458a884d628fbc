//! The multiply-accumulate.

use super::rules::MAC_LIMIT;

/// What becomes of a product before it is added (ane-measurements 1.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mac {
    /// Nothing: an fp32-class datapath, as the published probes have it.
    Wide,
    /// It is rounded to a multiple of 2^-16, and lost below 2^-15: the model that fits the published error sweep. What trains only
    /// under [`Mac::Wide`] is at risk on hardware.
    Grid,
}

/// How the products of a tile, four neighbours along the contraction, are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tile {
    /// Exactly.
    Exact,
    /// One after another; each addition first cuts both operands to the 12 significant bits of the larger one. This reproduces every
    /// published probe (ane-measurements 1.1).
    Cut,
}

/// Products in a tile.
const TILE: usize = 4;

/// Step of the grid.
const STEP: f64 = 1.0 / 65536.0;

/// Smallest product that the grid keeps.
const LOST_BELOW: f64 = 1.0 / 32768.0;

/// Σ aᵢ·bᵢ inside the chip, before rounding. A partial sum of 2^15 is infinite for good, whatever follows; NaN where infinities
/// cancel.
pub(super) fn dot(mac: Mac, tile: Tile, a: &[f64], b: &[f64]) -> f64 {
    let (whole_a, rest_a) = a.as_chunks::<TILE>();
    let (whole_b, rest_b) = b.as_chunks::<TILE>();
    let mut wide = 0f64;
    for (a, b) in whole_a.iter().zip(whole_b) {
        wide = saturate(wide + tile_sum(mac, tile, a, b));
    }
    let (mut a, mut b) = ([0.0; TILE], [0.0; TILE]);
    a[..rest_a.len()].copy_from_slice(rest_a);
    b[..rest_b.len()].copy_from_slice(rest_b);
    saturate(wide + tile_sum(mac, tile, &a, &b))
}

#[inline]
fn tile_sum(mac: Mac, tile: Tile, a: &[f64; TILE], b: &[f64; TILE]) -> f64 {
    let products: [f64; TILE] = std::array::from_fn(|i| product(mac, a[i] * b[i]));
    products[1..].iter().fold(products[0], |sum, &p| {
        saturate(match tile {
            Tile::Exact => sum + p,
            Tile::Cut => add_cut(sum, p),
        })
    })
}

/// What the datapath makes of an exact product. 0 · inf is 0 (ane-measurements 1.3).
#[inline]
fn product(mac: Mac, p: f64) -> f64 {
    if p.is_nan() {
        return 0.0;
    }
    match mac {
        Mac::Wide => p,
        Mac::Grid if p.is_infinite() => p,
        Mac::Grid => {
            // Adding this rounds to whole steps, ties to even.
            let whole = 1.5 * 2f64.powi(52) * STEP;
            let p = (p + whole) - whole;
            if p.abs() < LOST_BELOW { 0.0 } else { p }
        }
    }
}

#[inline]
pub(super) fn saturate(x: f64) -> f64 {
    if x.abs() >= MAC_LIMIT { f64::INFINITY.copysign(x) } else { x }
}

#[inline]
fn add_cut(a: f64, b: f64) -> f64 {
    let exponent = |x: f64| (x.to_bits() >> 52) & 0x7ff;
    let top = exponent(a).max(exponent(b));
    if top == 0x7ff {
        return a + b;
    }
    // Of 53 significant bits the larger operand keeps 12, the smaller one fewer for each binary place that it lies below.
    let cut = |x: f64| {
        let dropped = 41 + (top - exponent(x));
        if dropped > 52 { 0.0 } else { f64::from_bits(x.to_bits() & (u64::MAX << dropped)) }
    };
    cut(a) + cut(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide(a: &[f64]) -> f64 {
        dot(Mac::Wide, Tile::Cut, a, &vec![1.0; a.len()])
    }

    #[test]
    fn sums_beyond_fp16s_integers_are_kept() {
        assert_eq!(wide(&[1.0; 16000]), 16000.0);
        assert_eq!(wide(&[1.0; 16384]), 16384.0);
        // 5116 once rounded: the three ones beside 4096 are lost.
        assert_eq!(wide(&[&[4096.0], [1.0; 1024].as_slice()].concat()), 5117.0);
    }

    #[test]
    fn cancellation_keeps_sixteen_ones_or_four() {
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        for (b, survivors) in [(1024.0, 16.0), (3000.0, 16.0), (4090.0, 16.0), (4096.0, 4.0), (8000.0, 4.0), (16000.0, 4.0), (30000.0, 4.0)]
        {
            for order in orders {
                let triple = order.map(|i| [b, -b, 1.0][i]);
                assert_eq!(wide(&triple.repeat(16)), survivors, "{triple:?}");
            }
        }
    }

    #[test]
    fn a_partial_sum_of_two_to_the_fifteen_is_infinite_for_good() {
        assert_eq!(wide(&[32752.0, 0.0]), 32752.0);
        assert_eq!(wide(&[16384.0, 16384.0]), f64::INFINITY);
        assert_eq!(wide(&[-16384.0, -16384.0, 16384.0, 16384.0]), f64::NEG_INFINITY);
        assert_eq!(wide(&[16384.0, 0.0, 0.0, 0.0, 16384.0, 0.0, 0.0, 0.0, -20000.0]), f64::INFINITY);
        assert!(wide(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
        assert_eq!(dot(Mac::Grid, Tile::Cut, &[f64::INFINITY, 1.0], &[0.0, 1.0]), 1.0);
    }

    #[test]
    fn the_grid_rounds_products_and_loses_small_ones() {
        let one = |x: f64| dot(Mac::Grid, Tile::Exact, &[x], &[1.0]);
        let step = 2f64.powi(-16);
        assert_eq!([2.0, 1.0, 1.5, 2.4, 2.6, 0.4].map(|n| one(n * step) / step), [2.0, 0.0, 2.0, 2.0, 3.0, 0.0]);
        assert_eq!(one(-2.0 * step), -2.0 * step);
    }
}
