//! Query, key and value projections in one, forward and backward.

use super::projection::{self, Matrix};
use super::{Act, Context, Dir, GradSpec, ProgramError, ProgramKind, ProgramSpec, Tap, WeightPort};
use crate::Role;

/// `[Q + 2K, D]`.
fn matrix(cx: &Context) -> Matrix {
    let l = &cx.layout;
    let blocks = vec![(Role::Wq, l.q.clone()), (Role::Wk, l.kv.clone()), (Role::Wv, l.kv.clone())];
    Matrix { key: WeightPort::Wqkv, blocks, cols: l.dim.clone() }
}

/// `x → q | k | v`.
pub(super) fn forward(cx: &Context) -> Result<ProgramSpec, ProgramError> {
    let (q, kv) = (cx.layout.q.padded(), cx.layout.kv.padded());
    projection::forward(cx, ProgramKind::QkvFwd, &matrix(cx), Act::X, &[(Act::Q, q), (Act::K, kv), (Act::V, kv)])
}

/// `dq | dk | dv → dx`.
pub(super) fn backward(cx: &Context) -> Result<ProgramSpec, ProgramError> {
    projection::backward(cx, ProgramKind::QkvBwd, &matrix(cx), &[Act::DQ, Act::DK, Act::DV], Act::Dx)
}

pub(super) fn grads(cx: &Context) -> Vec<GradSpec> {
    let dy = [Act::DQ, Act::DK, Act::DV].map(|act| Tap { program: ProgramKind::QkvBwd, dir: Dir::In, act });
    matrix(cx).grads(&dy, Tap { program: ProgramKind::QkvFwd, dir: Dir::In, act: Act::X })
}
