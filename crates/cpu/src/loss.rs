//! Cross-entropy over a vocabulary that is cut in slices, with its gradient, in two passes over the fp16 logits.
//!
//! Logits are `[V, T]`, channels first: a column is one position's scores. Each slice is a [`View`] of its rows; rows past
//! `valid` are padding and are neither read nor given a gradient.

use crate::math::exp1;
use crate::pool::Pool;
use crate::round::{round, widen};
use crate::simd::dispatch;
use crate::view::{View, ViewMut};
use half::f16;
use rayon::prelude::*;

/// The target of a position that does not count.
pub const IGNORE: u32 = u32::MAX;

/// Rows of one task. Fixed, so that the sums depend on nothing but the shape.
const ROWS: usize = 256;

/// A slice of the vocabulary: the token of row r is the number of valid rows in the slices before plus r.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    /// The scores, `[rows ≥ valid, T]`.
    pub logits: View<'a>,
    /// Rows that are tokens.
    pub valid: usize,
}

/// The sum over the positions that count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Σ −log p(target), in nats.
    pub nll: f64,
    /// Number of positions that count.
    pub targets: usize,
}

/// The loss alone.
///
/// # Panics
/// When the shapes disagree or a target is no token.
pub fn nll_only(pool: &Pool, slices: &[Slice<'_>], targets: &[u32]) -> Loss {
    reduce(pool, slices, targets).0
}

/// The loss, and dlogits = (softmax − onehot) · factor. Columns without a target and padding rows get exact zeros.
///
/// `dlogits` has one matrix per slice, of the same shape.
///
/// # Panics
/// When the shapes disagree or a target is no token.
pub fn cross_entropy(pool: &Pool, slices: &[Slice<'_>], targets: &[u32], factor: f32, dlogits: Vec<ViewMut<'_>>) -> Loss {
    assert_eq!(slices.len(), dlogits.len(), "cross_entropy: slices");
    let (loss, log_sum) = reduce(pool, slices, targets);
    let columns: Vec<f32> = targets.iter().map(|t| if *t == IGNORE { 0.0 } else { factor }).collect();
    let mut first = 0;
    let mut tasks = Vec::new();
    for (slice, out) in slices.iter().zip(dlogits) {
        assert!(out.rows == slice.logits.rows && out.cols == targets.len(), "cross_entropy: dlogits shape");
        let mut rest = out;
        for row in (0..slice.logits.rows).step_by(ROWS) {
            let height = ROWS.min(rest.rows);
            let (block, tail) = rest.split_rows(height);
            tasks.push((slice, row, first, block));
            rest = tail;
        }
        first += slice.valid;
    }
    pool.install(|| {
        tasks.into_par_iter().with_max_len(1).for_each(|(slice, row, first, mut out)| {
            let mut wide = vec![0f32; targets.len()];
            for r in 0..out.rows {
                if row + r >= slice.valid {
                    out.row_mut(r).fill(f16::ZERO);
                    continue;
                }
                widen(slice.logits.row(row + r), &mut wide);
                let token = (first + row + r) as u32;
                dispatch(
                    #[inline(always)]
                    || {
                        for (((w, lse), scale), target) in wide.iter_mut().zip(&log_sum).zip(&columns).zip(targets) {
                            let hit = if *target == token { 1.0 } else { 0.0 };
                            let d = (exp1(*w - lse) - hit) * scale;
                            *w = if *scale == 0.0 { 0.0 } else { d };
                        }
                    },
                );
                round(&wide, out.row_mut(r));
            }
        });
    });
    loss
}

/// Per column: log Σ exp(logit); and the loss.
fn reduce(pool: &Pool, slices: &[Slice<'_>], targets: &[u32]) -> (Loss, Vec<f32>) {
    let t = targets.len();
    for s in slices {
        assert!(s.logits.cols == t && s.valid <= s.logits.rows, "cross_entropy: logits shape");
    }
    if t == 0 {
        return (Loss { nll: 0.0, targets: 0 }, Vec::new());
    }
    let chunks: Vec<View<'_>> =
        slices.iter().flat_map(|s| (0..s.valid).step_by(ROWS).map(|r| s.logits.sub_rows(r..(r + ROWS).min(s.valid)))).collect();
    // Per chunk: T maxima, then T sums of exp(logit − maximum).
    let mut parts = vec![0f32; chunks.len() * 2 * t];
    pool.chunks_mut(&mut parts, 2 * t, |i, part| {
        let (top, sum) = part.split_at_mut(t);
        top.fill(f32::NEG_INFINITY);
        let mut wide = vec![0f32; t];
        let chunk = chunks[i];
        for r in 0..chunk.rows {
            widen(chunk.row(r), &mut wide);
            dispatch(
                #[inline(always)]
                || {
                    for (top, w) in top.iter_mut().zip(&wide) {
                        *top = if *w > *top { *w } else { *top };
                    }
                },
            );
        }
        for r in 0..chunk.rows {
            widen(chunk.row(r), &mut wide);
            dispatch(
                #[inline(always)]
                || {
                    for ((sum, w), top) in sum.iter_mut().zip(&wide).zip(&*top) {
                        *sum += exp1(*w - top);
                    }
                },
            );
        }
    });
    let mut loss = Loss { nll: 0.0, targets: 0 };
    let mut log_sum = vec![0f32; t];
    for c in 0..t {
        let part = |i: usize| (f64::from(parts[i * 2 * t + c]), f64::from(parts[i * 2 * t + t + c]));
        let top = (0..chunks.len()).map(|i| part(i).0).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = (0..chunks.len()).map(part).map(|(m, s)| s * (m - top).exp()).sum();
        let total = top + sum.ln();
        log_sum[c] = total as f32;
        if targets[c] != IGNORE {
            loss.nll += total - f64::from(target_logit(slices, targets[c], c));
            loss.targets += 1;
        }
    }
    (loss, log_sum)
}

fn target_logit(slices: &[Slice<'_>], target: u32, column: usize) -> f32 {
    let mut row = target as usize;
    for s in slices {
        if row < s.valid {
            return s.logits.row(row)[column].to_f32();
        }
        row -= s.valid;
    }
    panic!("cross_entropy: target {target} is no token");
}
