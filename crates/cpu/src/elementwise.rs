//! Residual sums, rounding into device surfaces, embedding rows and their gradient.

use crate::pool::Pool;
use crate::round::{round, widen};
use crate::simd::dispatch;
use crate::view::{View, ViewMut, rows_per_task};
use rayon::prelude::*;

/// x += y, with `x` dense `[rows, cols]` and `y` at least as many rows, of which the first are read.
///
/// # Panics
/// When `x` is no whole number of `y`'s rows, or has more of them.
pub fn add_into(pool: &Pool, x: &mut [f32], y: View<'_>) {
    let t = y.cols;
    assert!(t > 0 && x.len().is_multiple_of(t) && x.len() / t <= y.rows, "add_into: shapes");
    let height = rows_per_task(t);
    pool.chunks_mut(x, height * t, |block, x| {
        let mut wide = vec![0f32; t];
        for (i, x) in x.chunks_exact_mut(t).enumerate() {
            widen(y.row(block * height + i), &mut wide);
            dispatch(
                #[inline(always)]
                || {
                    for (x, w) in x.iter_mut().zip(&wide) {
                        *x += w;
                    }
                },
            );
        }
    });
}

/// out = fp16(x), with `x` dense `[rows, cols]`; rows of `out` beyond `x`'s are left alone.
///
/// # Panics
/// When `x` is no whole number of `out`'s rows, or has more of them.
pub fn round_into(pool: &Pool, x: &[f32], out: ViewMut<'_>) {
    let t = out.cols;
    assert!(t > 0 && x.len().is_multiple_of(t) && x.len() / t <= out.rows, "round_into: shapes");
    out.sub_rows(0..x.len() / t).par_rows_mut(pool, |r, row| round(&x[r * t..][..t], row));
}

/// `out[d, t] = table[tokens[t], d]`: the embedding of a sequence, channels first.
///
/// `table`: `[V, D]`; `out`: `[D, T]`.
///
/// # Panics
/// When `out` is no whole number of rows of T, or a token is no row of the table.
pub fn embed(pool: &Pool, table: &[f32], tokens: &[u32], out: &mut [f32]) {
    let t = tokens.len();
    if t == 0 {
        return;
    }
    assert!(out.len().is_multiple_of(t), "embed: out is not [D, T]");
    let d = out.len() / t;
    let height = rows_per_task(t);
    pool.chunks_mut(out, height * t, |block, out| {
        let first = block * height;
        let rows = out.len() / t;
        // Sixteen tokens at a time, so that each channel is written a cache line at a time.
        for start in (0..t).step_by(16) {
            let group = &tokens[start..(start + 16).min(t)];
            for r in 0..rows {
                let line = &mut out[r * t + start..][..group.len()];
                for (x, &token) in line.iter_mut().zip(group) {
                    *x = table[token as usize * d + first + r];
                }
            }
        }
    });
}

/// `grad[tokens[t], d] += weight · dx[d, t]`, tokens in order: the gradient of [`embed`].
///
/// `grad`: `[V, D]`; `dx`: `[D, T]`.
///
/// # Panics
/// When `dx` is no whole number of rows of T, or a token is no row of the table.
pub fn scatter_add(pool: &Pool, grad: &mut [f32], tokens: &[u32], dx: &[f32], weight: f32) {
    let t = tokens.len();
    if t == 0 || dx.is_empty() {
        return;
    }
    assert!(dx.len().is_multiple_of(t), "scatter_add: dx is not [D, T]");
    let d = dx.len() / t;
    // Positions sorted by token; the sort is stable, so equal tokens stay in order. Each distinct token is one owner of one row.
    let mut order: Vec<usize> = (0..t).collect();
    order.sort_by_key(|&p| tokens[p]);
    let mut rows = Vec::new();
    let (mut rest, mut passed) = (grad, 0);
    for group in order.chunk_by(|&a, &b| tokens[a] == tokens[b]) {
        let token = tokens[group[0]] as usize;
        let (row, tail) = std::mem::take(&mut rest)[(token - passed) * d..].split_at_mut(d);
        rows.push((row, group));
        (rest, passed) = (tail, token + 1);
    }
    pool.install(|| {
        rows.par_iter_mut().with_min_len(16).for_each(|(row, group)| {
            for &p in group.iter() {
                for (g, dx) in row.iter_mut().zip(dx[p..].iter().step_by(t)) {
                    *g += weight * dx;
                }
            }
        });
    });
}
