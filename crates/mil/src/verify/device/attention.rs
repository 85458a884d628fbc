//! Forms of attention.

use super::scope::Scope;
use super::{Lint, Report, warning};
use crate::Handle;
use crate::ir::{Literal, Value};
use crate::ops::OpKind;

pub(super) static LINTS: &[Lint] = &[
    warning(
        "attention-mask",
        "The mask of scaled_dot_product_attention is ignored.",
        "spell attention out: matmul, add, softmax, matmul",
        "ane-facts 5.2",
        |s, report| {
            for call in s.calls(OpKind::ScaledDotProductAttention).filter(|c| c.has(3)) {
                report(call.op.span, format!("the chip ignores the mask of `{}`", s.name(call.op)));
            }
        },
    ),
    warning(
        "attention-length",
        "scaled_dot_product_attention over long sequences gives garbage.",
        "spell attention out",
        "ane-facts 5.2",
        |s, report| {
            for call in s.calls(OpKind::ScaledDotProductAttention) {
                let rows = |i: usize| call.ty(i).ok().and_then(|t| t.shape.iter().nth_back(1).copied()).unwrap_or(0);
                if rows(0).max(rows(1)) > 2048 || rows(0).min(rows(1)) >= 512 {
                    report(call.op.span, format!("`{}` attends from {} to {} positions", s.name(call.op), rows(0), rows(1)));
                }
            }
        },
    ),
    warning(
        "score-scale",
        "Scores are scaled behind the matmul, where they may have overflowed.",
        "scale the queries instead, once, where they are rotated",
        "programs.md 1 rule 6",
        score_scale,
    ),
    warning(
        "softmax-backward",
        "The backward pass recomputes the softmax and returns all gradients.",
        "save the probabilities in the forward pass and pass them in: the compiler finds a \"cycle path\"",
        "ane-measurements 1.5",
        softmax_backward,
    ),
];

/// `softmax(scale · matmul + mask)` with a scalar constant `scale`.
fn score_scale(s: &Scope<'_>, report: &mut Report<'_>) {
    let scalar = |v: Handle<Value>| s.function.constant(v).is_some_and(|l| matches!(l, Literal::Floats(ty, _) if ty.numel() == 1));
    for call in s.calls(OpKind::Softmax) {
        let mut open: Vec<Handle<Value>> = call.value(0).into_iter().collect();
        // A mask may be added, and axes may be moved, between the scaling and the softmax.
        for _ in 0..8 {
            let Some(op) = open.pop().and_then(|v| s.maker(v)) else { break };
            let args = || op.args.iter().flat_map(|(_, arg)| crate::live::values(arg)).copied();
            match op.kind {
                OpKind::Mul | OpKind::RealDiv => {
                    let product = args().any(|v| s.maker(v).is_some_and(|op| op.kind == OpKind::Matmul));
                    if product && args().any(scalar) {
                        report(op.span, format!("`{}` scales the scores of `{}`", s.name(op), s.name(call.op)));
                    }
                }
                OpKind::Add | OpKind::Reshape | OpKind::Transpose => open.extend(args().filter(|v| !s.is_constant(*v))),
                _ => {}
            }
        }
    }
}

/// A softmax of computed scores that is a factor of a matmul and of the product `p · (dp - sum)`, in a program with the matmuls for
/// scores, dv, dp, dq and dk.
fn softmax_backward(s: &Scope<'_>, report: &mut Report<'_>) {
    if s.calls(OpKind::Matmul).count() < 5 {
        return;
    }
    for call in s.calls(OpKind::Softmax) {
        let used = |kind: OpKind| call.op.results.iter().flat_map(|v| s.uses(*v)).any(|(op, _)| op.kind == kind);
        let scores = call.value(0).and_then(|v| s.maker(v)).is_some();
        if scores && used(OpKind::Mul) && used(OpKind::Matmul) {
            report(call.op.span, format!("`{}` is computed again for the backward pass", s.name(call.op)));
        }
    }
}
