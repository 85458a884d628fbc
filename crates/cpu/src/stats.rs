//! Sums and watches over gradients: what clipping and the loss scaler look at.

use crate::pool::Pool;
use crate::simd::dispatch;
use crate::view::{View, rows_per_task};
use half::f16;

/// Elements of one partial sum.
const CHUNK: usize = 64 * 1024;

/// Σ x² in fp64: fixed chunks of 64 Ki elements, added in order.
pub fn sum_of_squares(pool: &Pool, x: &[f32]) -> f64 {
    let mut sums = vec![0f64; x.len().div_ceil(CHUNK)];
    pool.chunks_mut(&mut sums, 1, |i, sum| {
        let x = &x[i * CHUNK..(i * CHUNK + CHUNK).min(x.len())];
        let lanes = dispatch(
            #[inline(always)]
            || {
                let mut lanes = [0f64; 32];
                let mut chunks = x.chunks_exact(32);
                for x in &mut chunks {
                    for (l, x) in lanes.iter_mut().zip(x) {
                        *l += f64::from(*x) * f64::from(*x);
                    }
                }
                for (l, x) in lanes.iter_mut().zip(chunks.remainder()) {
                    *l += f64::from(*x) * f64::from(*x);
                }
                lanes
            },
        );
        sum[0] = lanes.iter().sum();
    });
    sums.iter().sum()
}

/// What a device output looks like. The chip never outputs NaN, so infinities, zeros and the range are the signs of trouble.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watch {
    /// Largest finite magnitude.
    pub amax: f32,
    /// Number of ±inf (and NaN, where a device gives one).
    pub infinite: usize,
    /// Number of ±0.
    pub zeros: usize,
    /// Number of elements.
    pub count: usize,
}

impl Watch {
    /// Of nothing: the start of a sum of watches.
    pub const EMPTY: Watch = Watch { amax: 0.0, infinite: 0, zeros: 0, count: 0 };

    /// The watch of both.
    #[must_use]
    pub fn and(self, other: Watch) -> Watch {
        Watch {
            amax: self.amax.max(other.amax),
            infinite: self.infinite + other.infinite,
            zeros: self.zeros + other.zeros,
            count: self.count + other.count,
        }
    }
}

/// Looks at every element of `view`.
pub fn watch(pool: &Pool, view: View<'_>) -> Watch {
    let height = 4 * rows_per_task(view.cols);
    let blocks = view.rows.div_ceil(height);
    let mut found = vec![Watch::EMPTY; blocks];
    pool.chunks_mut(&mut found, 1, |i, found| {
        let block = view.sub_rows(i * height..((i + 1) * height).min(view.rows));
        found[0] = (0..block.rows).map(|r| watch_row(block.row(r))).fold(Watch::EMPTY, Watch::and);
    });
    found.into_iter().fold(Watch::EMPTY, Watch::and)
}

fn watch_row(row: &[f16]) -> Watch {
    let mut total = Watch::EMPTY;
    // 16-bit counters: fast, and safe for rows cut in pieces below 2^16.
    for bits in bytemuck::cast_slice::<f16, u16>(row).chunks(32 * 1024) {
        let (top, infinite, zeros) = dispatch(
            #[inline(always)]
            || {
                let (mut top, mut infinite, mut zeros) = (0u16, 0u16, 0u16);
                for b in bits {
                    let magnitude = b & 0x7fff;
                    let finite = magnitude < 0x7c00;
                    top = top.max(if finite { magnitude } else { 0 });
                    infinite += u16::from(!finite);
                    zeros += u16::from(magnitude == 0);
                }
                (top, infinite, zeros)
            },
        );
        let piece = Watch { amax: f16::from_bits(top).to_f32(), infinite: infinite.into(), zeros: zeros.into(), count: bits.len() };
        total = total.and(piece);
    }
    total
}

/// Whether no element is ±inf or NaN.
pub(crate) fn finite(row: &[f16]) -> bool {
    let top = dispatch(
        #[inline(always)]
        || bytemuck::cast_slice::<f16, u16>(row).iter().fold(0, |top, b| (b & 0x7fff).max(top)),
    );
    top < 0x7c00
}
