//! RMSNorm over channels, forward and backward, in fp32 with fp64 sums.
//!
//! `x` is `[D, T]`: each column (token) is normalised over its D channels. Column sums run over the channels in order, so
//! they depend on nothing else.

use crate::pool::Pool;
use crate::round::{round, widen};
use crate::simd::dispatch;
use crate::view::{View, ViewMut, rows_per_task};
use rayon::prelude::*;

/// Columns that one task sums, and the lanes of its fp64 sums.
const COLS: usize = 64;

/// out = x · gain / √(mean x² + eps), per column; the reciprocal root is kept for the backward pass.
///
/// `x`: `[D, t]` dense; `gain`: D; `inv_rms`: t; `out`: at least D rows of t columns, of which the first D are written.
///
/// # Panics
/// When the shapes disagree.
pub fn rmsnorm(pool: &Pool, x: &[f32], t: usize, gain: &[f32], eps: f32, out: ViewMut<'_>, inv_rms: &mut [f32]) {
    let d = gain.len();
    assert_eq!(x.len(), d * t, "rmsnorm: x is not [D, T]");
    assert!(out.rows >= d && out.cols == t && inv_rms.len() == t, "rmsnorm: output shapes");
    if d == 0 || t == 0 {
        return;
    }
    pool.chunks_mut(inv_rms, COLS, |block, inv| {
        let (first, width) = (block * COLS, inv.len());
        let sums = dispatch(
            #[inline(always)]
            || {
                let mut sums = [0f64; COLS];
                for row in x.chunks_exact(t) {
                    for (s, v) in sums.iter_mut().zip(&row[first..first + width]) {
                        *s += f64::from(*v) * f64::from(*v);
                    }
                }
                sums
            },
        );
        for (i, s) in inv.iter_mut().zip(sums) {
            *i = (1.0 / (s / d as f64 + f64::from(eps)).sqrt()) as f32;
        }
    });
    let inv = &*inv_rms;
    out.sub_rows(0..d).par_rows_mut(pool, |r, row| {
        let x = &x[r * t..][..t];
        let mut wide = [0f32; 256];
        for ((row, x), inv) in row.chunks_mut(256).zip(x.chunks(256)).zip(inv.chunks(256)) {
            let wide = &mut wide[..row.len()];
            let gain = gain[r];
            dispatch(
                #[inline(always)]
                || {
                    for ((w, x), i) in wide.iter_mut().zip(x).zip(inv) {
                        *w = (x * i) * gain;
                    }
                },
            );
            round(wide, row);
        }
    });
}

/// The backward pass of [`rmsnorm`]: dx += gain·dy·inv − x·inv³/D · Σ(gain·dy·x) per column, dgain += weight · Σ_t dy·x·inv.
///
/// `x`, `dx`: `[D, T]` dense; `inv_rms`: T, as the forward pass left it; `dy`: at least D rows of T columns; `gain`, `dgain`: D.
///
/// # Panics
/// When the shapes disagree.
#[allow(clippy::too_many_arguments)]
pub fn rmsnorm_backward(
    pool: &Pool,
    x: &[f32],
    inv_rms: &[f32],
    gain: &[f32],
    dy: View<'_>,
    dx: &mut [f32],
    dgain: &mut [f32],
    weight: f32,
) {
    let (d, t) = (gain.len(), inv_rms.len());
    assert!(x.len() == d * t && dx.len() == d * t && dgain.len() == d, "rmsnorm_backward: x, dx, dgain shapes");
    assert!(dy.rows >= d && dy.cols == t, "rmsnorm_backward: dy shape");
    if d == 0 || t == 0 {
        return;
    }
    // Per column: inv³/D · Σ_d gain·dy·x.
    let mut pull = vec![0f32; t];
    pool.chunks_mut(&mut pull, COLS, |block, pull| {
        let mut sums = [0f64; COLS];
        let mut wide = [0f32; COLS];
        let cols = block * COLS..block * COLS + pull.len();
        for r in 0..d {
            let wide = &mut wide[..pull.len()];
            widen(&dy.row(r)[cols.clone()], wide);
            let (x, gain) = (&x[r * t..][..t][cols.clone()], gain[r]);
            dispatch(
                #[inline(always)]
                || {
                    for ((s, w), x) in sums.iter_mut().zip(&*wide).zip(x) {
                        *s += f64::from(*w * gain) * f64::from(*x);
                    }
                },
            );
        }
        for ((p, s), inv) in pull.iter_mut().zip(sums).zip(&inv_rms[cols.clone()]) {
            let inv = f64::from(*inv);
            *p = (s * inv * inv * inv / d as f64) as f32;
        }
    });
    let height = rows_per_task(t);
    pool.install(|| {
        dx.par_chunks_mut(height * t).zip(dgain.par_chunks_mut(height)).enumerate().with_max_len(1).for_each(|(block, (dx, dgain))| {
            let mut wide = vec![0f32; t];
            for (i, (dx, dgain)) in dx.chunks_exact_mut(t).zip(dgain).enumerate() {
                let r = block * height + i;
                widen(dy.row(r), &mut wide);
                let (x, gain) = (&x[r * t..][..t], gain[r]);
                let sums = dispatch(
                    #[inline(always)]
                    || {
                        for ((((d, w), x), inv), p) in dx.iter_mut().zip(&wide).zip(x).zip(inv_rms).zip(&pull) {
                            *d += (w * gain) * inv - x * p;
                        }
                        let mut sums = [0f64; 8];
                        for ((w, x), inv) in wide.chunks(8).zip(x.chunks(8)).zip(inv_rms.chunks(8)) {
                            for (((s, w), x), inv) in sums.iter_mut().zip(w).zip(x).zip(inv) {
                                *s += f64::from(*w) * f64::from(x * inv);
                            }
                        }
                        sums
                    },
                );
                *dgain += (f64::from(weight) * sums.iter().sum::<f64>()) as f32;
            }
        });
    });
}
