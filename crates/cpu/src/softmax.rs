//! The causal softmax of attention and its backward pass, fp32 inside.
//!
//! Scores are `[H·S, S]`: row h·S + i holds query i of head h against keys 0..S. Query i sees keys 0..=i; the others are
//! never read, and their probabilities and gradients are exactly 0.

use crate::math::exp1;
use crate::pool::Pool;
use crate::round::{round, widen};
use crate::simd::dispatch;
use crate::view::{View, ViewMut, rows_per_task};
use half::f16;
use rayon::prelude::*;

/// Lanes of every sum: lane l adds the elements l, l + 16, …; then the lanes are added in order.
pub const LANES: usize = 16;

/// probs = softmax(scores) under the causal mask.
///
/// `seq` is S: both matrices have S columns and a whole number of times S rows.
///
/// # Panics
/// When the shapes disagree.
pub fn causal_softmax(pool: &Pool, scores: View<'_>, probs: ViewMut<'_>, seq: usize) {
    check(&[&scores, &probs.as_view()], seq);
    let height = rows_per_task(seq);
    pool.install(|| {
        probs.par_blocks(height).enumerate().for_each(|(block, mut probs)| {
            let mut wide = vec![0f32; seq];
            for r in 0..probs.rows {
                let row = block * height + r;
                let seen = row % seq + 1;
                widen(&scores.row(row)[..seen], &mut wide[..seen]);
                normalise(&mut wide[..seen]);
                let (visible, masked) = probs.row_mut(r).split_at_mut(seen);
                round(&wide[..seen], visible);
                masked.fill(f16::ZERO);
            }
        });
    });
}

/// x ← softmax(x), the maximum subtracted inside. Where the maximum is infinite, the entries that reach it get equal shares (the limit),
/// not NaN.
pub fn normalise(x: &mut [f32]) {
    dispatch(
        #[inline(always)]
        || {
            let mut lanes = [f32::NEG_INFINITY; LANES];
            by_lanes(x, |i, x| lanes[i] = if *x > lanes[i] { *x } else { lanes[i] });
            let mut top = lanes.iter().fold(f32::NEG_INFINITY, |a, b| if *b > a { *b } else { a });
            if top.is_infinite() {
                for x in x.iter_mut() {
                    *x = if *x == top { 0.0 } else { f32::NEG_INFINITY };
                }
                top = 0.0;
            }
            let mut sums = [0f32; LANES];
            by_lanes(x, |i, x| {
                *x = exp1(*x - top);
                sums[i] += *x;
            });
            let scale = 1.0 / sums.iter().sum::<f32>();
            for x in x.iter_mut() {
                *x *= scale;
            }
        },
    );
}

/// Calls `f(lane, element)` for every element; whole groups first, so that they vectorise.
#[inline(always)]
fn by_lanes(x: &mut [f32], mut f: impl FnMut(usize, &mut f32)) {
    let mut groups = x.chunks_exact_mut(LANES);
    for group in &mut groups {
        for (i, x) in group.iter_mut().enumerate() {
            f(i, x);
        }
    }
    for (i, x) in groups.into_remainder().iter_mut().enumerate() {
        f(i, x);
    }
}

/// ds = p ∘ (dp − Σ p∘dp) per row, 0 where masked.
///
/// # Panics
/// When the shapes disagree.
pub fn softmax_backward(pool: &Pool, p: View<'_>, dp: View<'_>, ds: ViewMut<'_>, seq: usize) {
    check(&[&p, &dp, &ds.as_view()], seq);
    let height = rows_per_task(seq);
    pool.install(|| {
        ds.par_blocks(height).enumerate().for_each(|(block, mut ds)| {
            let padded = seq.next_multiple_of(LANES);
            let mut wide = vec![0f32; 2 * padded];
            let (wide_p, wide_dp) = wide.split_at_mut(padded);
            for r in 0..ds.rows {
                let row = block * height + r;
                let seen = row % seq + 1;
                let padded = seen.next_multiple_of(LANES);
                for (source, wide) in [(&p, &mut *wide_p), (&dp, &mut *wide_dp)] {
                    widen(&source.row(row)[..seen], &mut wide[..seen]);
                    wide[seen..padded].fill(0.0);
                }
                let (p, dp) = (&wide_p[..padded], &mut wide_dp[..padded]);
                dispatch(
                    #[inline(always)]
                    || {
                        let mut sums = [0f32; LANES];
                        for (p, dp) in p.chunks_exact(LANES).zip(dp.chunks_exact(LANES)) {
                            for ((s, p), dp) in sums.iter_mut().zip(p).zip(dp) {
                                *s += p * dp;
                            }
                        }
                        let dot = sums.iter().sum::<f32>();
                        for (p, dp) in p.iter().zip(dp.iter_mut()) {
                            *dp = p * (*dp - dot);
                        }
                    },
                );
                let (visible, masked) = ds.row_mut(r).split_at_mut(seen);
                round(&wide_dp[..seen], visible);
                masked.fill(f16::ZERO);
            }
        });
    });
}

fn check(views: &[&View<'_>], seq: usize) {
    for v in views {
        assert!(seq > 0 && v.cols == seq && v.rows == views[0].rows && v.rows.is_multiple_of(seq), "softmax: shapes are not [H·S, S]");
    }
}
