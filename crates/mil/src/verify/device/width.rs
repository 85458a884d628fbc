//! The last axis, along which the device moves data: what is cut or joined there.

use super::scope::Scope;
use super::{Lint, Report, warning};
use crate::Handle;
use crate::ir::{Chip, Op, Value};
use crate::ops::{Call, Cut, OpKind};

/// Ops that are looked at behind a slice before giving up.
const STEPS: usize = 64;

pub(super) static LINTS: &[Lint] = &[
    Lint {
        chips: (Chip::H13, Chip::H14),
        ..warning(
            "slice-width-clamp",
            "A slice at a width offset turns numbers above 4094 into infinity; of anything but weights that may happen.",
            "put the field with large values first",
            "ane-facts 5.2, ane-measurements 5",
            slice_width,
        )
    },
    Lint {
        chips: (Chip::H15, Chip::H15),
        ..warning(
            "width-reshape",
            "Halves or pairs of the last axis are parted and joined, as rotary embeddings are written.",
            "multiply by a constant permutation matrix, or rotate on the CPU",
            "ane-facts 1.3, 5.2",
            width_reshape,
        )
    },
];

/// Values that an op cuts out of a tensor behind the first element of its last axis, and where each begins.
fn offset_parts(s: &Scope<'_>, op: &Op) -> Vec<(Handle<Value>, u64)> {
    let Ok(call) = Call::new(s.function, op) else { return Vec::new() };
    match op.kind {
        OpKind::SliceBySize | OpKind::SliceByIndex => {
            let offset = Cut::of(&call).ok().and_then(|cuts| cuts.last().map(|c| c.begin)).filter(|&b| b != 0);
            op.results.iter().filter_map(|v| Some((*v, offset?))).collect()
        }
        OpKind::Split => {
            let rank = call.ty(0).map_or(0, |x| x.shape.len());
            if !call.axis(3, rank).is_ok_and(|axis| axis + 1 == rank) {
                return Vec::new();
            }
            let length = |v: &Handle<Value>| s.function.values[*v].ty.shape.last().copied().unwrap_or(0);
            let starts = op.results.iter().scan(0u64, |at, v| {
                let begin = *at;
                *at = at.saturating_add(length(v));
                Some((*v, begin))
            });
            starts.skip(1).collect()
        }
        _ => Vec::new(),
    }
}

fn moves_data(kind: OpKind) -> bool {
    matches!(kind, OpKind::Reshape | OpKind::Transpose | OpKind::ExpandDims | OpKind::Squeeze | OpKind::Identity)
}

/// Whether all that becomes of a part is a factor of matrix products with something that is no such part: a weight, which is small.
fn is_weight(s: &Scope<'_>, part: Handle<Value>) -> bool {
    let mut open = vec![part];
    let mut steps = 0;
    while let Some(v) = open.pop() {
        if s.function.results.contains(&v) || s.uses(v).is_empty() {
            return false;
        }
        for (op, _) in s.uses(v) {
            steps += 1;
            match op.kind {
                _ if steps > STEPS => return false,
                kind if moves_data(kind) || matches!(kind, OpKind::SliceBySize | OpKind::SliceByIndex) => open.extend(&op.results),
                OpKind::Matmul | OpKind::Conv => {
                    let others = op.args.iter().filter(|(name, _)| matches!(name.as_str(), "x" | "y" | "weight"));
                    let other = others.flat_map(|(_, arg)| crate::live::values(arg)).find(|u| **u != v);
                    if other.is_none_or(|&u| is_offset(s, u)) {
                        return false;
                    }
                }
                _ => return false,
            }
        }
    }
    true
}

/// Whether a value is such a part, but for its layout.
fn is_offset(s: &Scope<'_>, mut v: Handle<Value>) -> bool {
    for _ in 0..STEPS {
        let Some(op) = s.maker(v) else { return false };
        if offset_parts(s, op).iter().any(|(part, _)| *part == v) {
            return true;
        }
        match op.args.iter().find(|(name, _)| name == "x").and_then(|(_, arg)| crate::live::values(arg).first()) {
            Some(&x) if moves_data(op.kind) => v = x,
            _ => return false,
        }
    }
    false
}

fn slice_width(s: &Scope<'_>, report: &mut Report<'_>) {
    for (_, op) in s.function.ops.iter() {
        for (part, begin) in offset_parts(s, op).into_iter().filter(|(v, _)| !is_weight(s, *v)) {
            report(op.span, format!("`{}` starts at {begin} on the last axis", s.function.values[part].name));
        }
    }
}

/// A concat along the last axis of what was cut there, scaled or not; a reshape that parts the last axis in pairs.
fn width_reshape(s: &Scope<'_>, report: &mut Report<'_>) {
    for call in s.calls(OpKind::Concat) {
        let rank = call.list(0).first().map_or(0, |v| s.function.values[*v].ty.shape.len());
        let last = call.axis(1, rank).is_ok_and(|axis| axis + 1 == rank);
        let cut = |v: &Handle<Value>| {
            is_offset(s, *v)
                || s.maker(*v).is_some_and(|op| {
                    matches!(op.kind, OpKind::Mul | OpKind::Sub)
                        && op.args.iter().flat_map(|(_, arg)| crate::live::values(arg)).any(|u| is_offset(s, *u))
                })
        };
        if last && call.list(0).iter().any(cut) {
            report(call.op.span, format!("concat `{}` joins along the last axis what was parted there", s.name(call.op)));
        }
    }
    for call in s.calls(OpKind::Reshape) {
        let (Ok(x), Some(y)) = (call.ty(0), call.op.results.first().map(|v| &s.function.values[*v].ty)) else { continue };
        if let ([.., n], [.., a, b]) = (x.shape.as_slice(), y.shape.as_slice())
            && (*a == 2 || *b == 2)
            && *n > 2
            && a.checked_mul(*b) == Some(*n)
        {
            report(call.op.span, format!("reshape `{}` parts the last axis in pairs or halves", s.name(call.op)));
        }
    }
}
