//! The feed-forward network, `W2·(silu(W1·x) ∘ W3·x)`, forward and backward.

use super::emit::{Emit, Val};
use super::projection::{self, Matrix, packed_product};
use super::{Act, Context, Dir, FfnBackward, GradSpec, ProgramError, ProgramKind, ProgramSpec, Tap, WeightPort, Weights};
use crate::Role;

/// `[2H, D]`: gate projection above up projection.
fn w13(cx: &Context) -> Matrix {
    let l = &cx.layout;
    Matrix { key: WeightPort::W13, blocks: vec![(Role::W1, l.hidden.clone()), (Role::W3, l.hidden.clone())], cols: l.dim.clone() }
}

/// `[D, H]`.
fn w2(cx: &Context) -> Matrix {
    Matrix { key: WeightPort::W2, blocks: vec![(Role::W2, cx.layout.dim.clone())], cols: cx.layout.hidden.clone() }
}

/// Padded dim, padded hidden, columns.
fn sizes(cx: &Context) -> (usize, usize, usize) {
    (cx.layout.dim.padded(), cx.layout.hidden.padded(), cx.columns())
}

/// `x → y | h1 | h3 | gate`.
pub(super) fn forward(cx: &Context) -> Result<ProgramSpec, ProgramError> {
    let (d, h, t) = sizes(cx);
    let mut e = Emit::new(cx, ProgramKind::FfnFwd);
    let x = [(Act::X, d)];
    let (h13, gate, y) = match cx.options.weights {
        Weights::Packed => {
            let fields = [w13(cx).transposed(t), w2(cx).stored(t + 2 * h)].concat();
            let a = e.packed(&x, t, fields)?;
            let h13 = packed_product(&mut e, a, d, t, 2 * h)?;
            let gate = gate(&mut e, h13, h, t)?;
            let w2 = e.window(a, [0, 0, 0, t + 2 * h], [1, d, 1, h])?;
            let w2 = e.reshape(w2, &[1, 1, d, h])?;
            let rows = e.reshape(gate, &[1, 1, h, t])?;
            (h13, gate, e.matmul(w2, rows, false, false)?)
        }
        Weights::Ports | Weights::Baked => {
            let a = e.stacked(&x, t)?;
            let w13 = e.matrix(&w13(cx))?;
            let w2 = e.matrix(&w2(cx))?;
            let x = e.reshape(a, &[1, d, t])?;
            let h13 = e.matmul(w13, x, false, false)?;
            let h13 = e.reshape(h13, &[1, 2 * h, 1, t])?;
            let gate = gate(&mut e, h13, h, t)?;
            let rows = e.reshape(gate, &[1, h, t])?;
            (h13, gate, e.matmul(w2, rows, false, false)?)
        }
    };
    let y = e.reshape(y, &[1, d, 1, t])?;
    let all = e.concat(&[y, h13, gate])?;
    e.finish(all, &[(Act::Y, d), (Act::H1, h), (Act::H3, h), (Act::Gate, h)], t)
}

/// `silu(h1) ∘ h3` of stacked `h1 | h3`.
fn gate(e: &mut Emit<'_>, h13: Val, h: usize, t: usize) -> Result<Val, ProgramError> {
    let h1 = e.window(h13, [0, 0, 0, 0], [1, h, 1, t])?;
    let h3 = e.window(h13, [0, h, 0, 0], [1, h, 1, t])?;
    let s = e.sigmoid(h1)?;
    let silu = e.mul(h1, s)?;
    e.mul(silu, h3)
}

/// One program where weights have ports or are constants; packed, the two matrices need a port each.
pub(super) fn backward(cx: &Context) -> Result<FfnBackward, ProgramError> {
    match cx.options.weights {
        Weights::Packed => Ok(FfnBackward::Apart {
            w2: projection::backward(cx, ProgramKind::FfnBwdW2, &w2(cx), &[Act::Dy], Act::DGate)?,
            w13: projection::backward(cx, ProgramKind::FfnBwdW13, &w13(cx), &[Act::DH1, Act::DH3], Act::Dx)?,
        }),
        Weights::Ports | Weights::Baked => Ok(FfnBackward::Joined { all: joined(cx)? }),
    }
}

/// `dy | h1 | h3 → dx | dh1 | dh3`.
///
/// The loss-scaled `dgate` is multiplied last: the factors beside it, `silu(h1)` and `h3·silu'(h1)`, are of the size of
/// activations, so that no product before it leaves fp16's range at either end.
fn joined(cx: &Context) -> Result<ProgramSpec, ProgramError> {
    let (d, h, t) = sizes(cx);
    let mut e = Emit::new(cx, ProgramKind::FfnBwd);
    let a = e.stacked(&[(Act::Dy, d), (Act::H1, h), (Act::H3, h)], t)?;
    let w13 = e.matrix(&w13(cx))?;
    let w2 = e.matrix(&w2(cx))?;
    let dy = e.window(a, [0, 0, 0, 0], [1, d, 1, t])?;
    let h1 = e.window(a, [0, d, 0, 0], [1, h, 1, t])?;
    let h3 = e.window(a, [0, d + h, 0, 0], [1, h, 1, t])?;
    let dy = e.reshape(dy, &[1, d, t])?;
    let dgate = e.matmul(w2, dy, true, false)?;
    let dgate = e.reshape(dgate, &[1, h, 1, t])?;
    // silu(h1) = h1·s, silu'(h1) = s·(1 + h1·(1 − s))
    let one = e.scalar(1.0)?;
    let s = e.sigmoid(h1)?;
    let silu = e.mul(h1, s)?;
    let rest = e.sub(one, s)?;
    let slope = e.mul(h1, rest)?;
    let slope = e.add(one, slope)?;
    let slope = e.mul(s, slope)?;
    let factor = e.mul(h3, slope)?;
    let dh1 = e.mul(dgate, factor)?;
    let dh3 = e.mul(dgate, silu)?;
    let dh13 = e.concat(&[dh1, dh3])?;
    let rows = e.reshape(dh13, &[1, 2 * h, t])?;
    let dx = e.matmul(w13, rows, true, false)?;
    let dx = e.reshape(dx, &[1, d, 1, t])?;
    let all = e.concat(&[dx, dh13])?;
    e.finish(all, &[(Act::Dx, d), (Act::DH1, h), (Act::DH3, h)], t)
}

pub(super) fn grads(cx: &Context) -> Vec<GradSpec> {
    let tap = |program, dir, act| Tap { program, dir, act };
    let (first, hidden) = match cx.options.weights {
        Weights::Packed => (ProgramKind::FfnBwdW2, (ProgramKind::FfnBwdW13, Dir::In)),
        Weights::Ports | Weights::Baked => (ProgramKind::FfnBwd, (ProgramKind::FfnBwd, Dir::Out)),
    };
    let gate = tap(ProgramKind::FfnFwd, Dir::Out, Act::Gate);
    let x = tap(ProgramKind::FfnFwd, Dir::In, Act::X);
    let down = w2(cx).grads(&[tap(first, Dir::In, Act::Dy)], gate);
    let up = w13(cx).grads(&[Act::DH1, Act::DH3].map(|act| tap(hidden.0, hidden.1, act)), x);
    [down, up].concat()
}
