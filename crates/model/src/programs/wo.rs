//! The output projection of attention, forward and backward.

use super::projection::{self, Matrix};
use super::{Act, Context, Dir, GradSpec, ProgramError, ProgramKind, ProgramSpec, Tap, WeightPort};
use crate::Role;

/// `[D, Q]`.
fn matrix(cx: &Context) -> Matrix {
    Matrix { key: WeightPort::Wo, blocks: vec![(Role::Wo, cx.layout.dim.clone())], cols: cx.layout.q.clone() }
}

/// `out → y`.
pub(super) fn forward(cx: &Context) -> Result<ProgramSpec, ProgramError> {
    projection::forward(cx, ProgramKind::WoFwd, &matrix(cx), Act::AttnOut, &[(Act::Y, cx.layout.dim.padded())])
}

/// `dy → dout`.
pub(super) fn backward(cx: &Context) -> Result<ProgramSpec, ProgramError> {
    projection::backward(cx, ProgramKind::WoBwd, &matrix(cx), &[Act::Dy], Act::DAttnOut)
}

pub(super) fn grads(cx: &Context) -> Vec<GradSpec> {
    let dy = Tap { program: ProgramKind::WoBwd, dir: Dir::In, act: Act::Dy };
    matrix(cx).grads(&[dy], Tap { program: ProgramKind::WoFwd, dir: Dir::In, act: Act::AttnOut })
}
