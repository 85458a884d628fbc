//! The portable path: panels widened to fp32 and multiplied by the `gemm` crate.
//!
//! Every block is one single-threaded call on fixed boundaries: the library's own choice of kernels then depends on the
//! shape alone, and so do the bits.

use super::sgemm::{Matrix, sgemm};
use super::target::TILE;
use super::{Dims, Operand, Output, Par, Part, for_each, scratch};
use crate::round::widen;
use half::f16;

/// Largest block: rows, columns, and contraction of one call. Its fp32 panels and result take 3 MiB.
const ROWS: usize = 256;
const COLS: usize = 512;
const DEPTH: usize = 512;

pub(super) fn run(par: Par<'_>, dims: Dims, a: Operand<'_>, b: Operand<'_>, out: Output<'_>) {
    let nan_is_infinity = matches!(&out, Output::F16 { finish, .. } if finish.nan_to_zero);
    // Tasks cut the longer side of the result.
    let swap = dims.n > dims.m;
    let (dims, a, b) = if swap { (dims.swapped(), b.t(), a.t()) } else { (dims, a, b) };
    let mut matrices = Part::batches(out, if swap { dims.swapped() } else { dims });
    if swap {
        matrices = matrices.into_iter().map(Part::transposed).collect();
    }
    let height = (dims.m / 8).next_multiple_of(TILE).clamp(ROWS / 2, ROWS);
    let tasks: Vec<_> = matrices
        .iter_mut()
        .enumerate()
        .flat_map(|(batch, m)| m.split_rows(height).into_iter().enumerate().map(move |(i, part)| (batch, i * height, part)))
        .collect();
    for_each(par, tasks, |_, (batch, row, part)| block_row(dims, row, a.batch(batch), b.batch(batch), nan_is_infinity, part));
}

/// All columns of some rows.
fn block_row(dims: Dims, row: usize, a: Operand<'_>, b: Operand<'_>, nan_is_infinity: bool, mut part: Part<'_>) {
    let rows = part.rows;
    let (cols, depth) = (COLS.min(dims.n), DEPTH.min(dims.k));
    scratch::f32s(rows * depth + depth * cols + rows * cols, |buffer| {
        let (wide_a, rest) = buffer.split_at_mut(rows * depth);
        let (wide_b, sum) = rest.split_at_mut(depth * cols);
        for col in (0..dims.n).step_by(cols) {
            let cols = cols.min(dims.n - col);
            if dims.k == 0 {
                sum.fill(0.0);
            }
            for start in (0..dims.k).step_by(depth.max(1)) {
                let depth = depth.min(dims.k - start);
                let a = widened(a, row, start, rows, depth, nan_is_infinity, wide_a);
                let b = widened(b, start, col, depth, cols, nan_is_infinity, wide_b);
                sgemm(rows, cols, depth, a, b, sum, start > 0);
            }
            part.store(0, col, rows, cols, sum);
        }
    });
}

/// The block of `x` at (row, col), widened into `wide`, in whichever order reads `x` along its shorter stride.
fn widened<'w>(x: Operand<'_>, row: usize, col: usize, rows: usize, cols: usize, nan_is_infinity: bool, wide: &'w mut [f32]) -> Matrix<'w> {
    let start = row * x.row_stride + col * x.col_stride;
    let across = x.row_stride < x.col_stride && rows > 1;
    let (outer, inner) = if across { (cols, rows) } else { (rows, cols) };
    let (outer_stride, inner_stride) = if across { (x.col_stride, x.row_stride) } else { (x.row_stride, x.col_stride) };
    for (i, line) in wide[..outer * inner].chunks_exact_mut(inner).enumerate() {
        let from = &x.data[start + i * outer_stride..];
        if inner_stride == 1 {
            widen(&from[..inner], line);
        } else {
            for (j, w) in line.iter_mut().enumerate() {
                *w = f16::to_f32(from[j * inner_stride]);
            }
        }
    }
    if nan_is_infinity {
        crate::dispatch(
            #[inline(always)]
            || {
                for w in wide[..outer * inner].iter_mut() {
                    *w = if w.is_nan() { f32::INFINITY } else { *w };
                }
            },
        );
    }
    let (row_stride, col_stride) = if across { (1, inner) } else { (inner, 1) };
    Matrix { data: &wide[..outer * inner], row_stride, col_stride }
}
