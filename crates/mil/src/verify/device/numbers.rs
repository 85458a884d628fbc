//! What the device's arithmetic makes of numbers.

use super::bounds::bounds;
use super::scope::Scope;
use super::{Lint, Report, warning};
use crate::ir::Chip;
use crate::ops::OpKind;

/// Results and partial sums of matmul and conv from here on are infinite.
const OVERFLOW: f64 = 32_752.0;

pub(super) static LINTS: &[Lint] = &[
    Lint {
        chips: (Chip::H13, Chip::H13),
        ..warning(
            "contraction",
            "A contraction that is no multiple of 32 may give zeros.",
            "pad it with zeros",
            "programs.md 4 habit 8",
            contraction,
        )
    },
    warning(
        "overflow",
        "A matmul or conv that may pass 32752.",
        "scale its operands down: from 2^15 on, sums in part too, it is infinite",
        "ane-facts 5.4, ane-measurements 1.1",
        overflow,
    ),
];

fn contraction(s: &Scope<'_>, report: &mut Report<'_>) {
    for call in s.calls(OpKind::Matmul).chain(s.calls(OpKind::Conv)) {
        let flip = call.op.kind == OpKind::Matmul && call.flag(2).unwrap_or(false);
        let n = match (call.op.kind, call.ty(0)) {
            (OpKind::Conv, Ok(x)) => x.shape.get(1).copied(),
            (_, Ok(x)) => x.shape.iter().nth_back(usize::from(flip)).copied(),
            _ => None,
        };
        if let Some(n) = n.filter(|n| n % 32 != 0) {
            report(call.op.span, format!("{} `{}` contracts over {n} elements, no multiple of 32", call.def.name, s.name(call.op)));
        }
    }
}

/// Only where operands have bounds: inputs have none, and nothing is said of what follows from them alone.
fn overflow(s: &Scope<'_>, report: &mut Report<'_>) {
    let mut known = None;
    for (_, op) in s.function.ops.iter().filter(|(_, op)| matches!(op.kind, OpKind::Matmul | OpKind::Conv)) {
        let known = known.get_or_insert_with(|| bounds(s));
        if let Some(bound) = op.results.first().and_then(|v| known[v.index()]).filter(|&b| b >= OVERFLOW) {
            report(op.span, format!("{} `{}` may reach {bound:.0}", op.kind.name(), s.name(op)));
        }
    }
}
