//! Constants and weight files.

use super::scope::Scope;
use super::{Lint, error, warning};
use crate::ir::{Arg, Literal};
use crate::ops::{Kind, OpKind};
use crate::word;

/// The smallest normal number of fp16, 2^-14.
const SMALLEST: f64 = 1.0 / 16_384.0;

pub(super) static LINTS: &[Lint] = &[
    error(
        "blob-path",
        "A weight file outside the model's directory.",
        "write @model_path/ and then plain names",
        "ane-facts 9.21",
        |s, report| {
            for (op, path, _) in s.in_files().filter(|(_, path, _)| !word::is_blob_path(path)) {
                report(op.span, format!("`{}` is in `{path}`", s.name(op)));
            }
        },
    ),
    warning(
        "blob-offset",
        "A weight file of several blobs.",
        "write one file for each constant, its metadata at offset 64",
        "programs.md 1 rule 9",
        |s, report| {
            for (op, path, offset) in s.in_files().filter(|(_, _, offset)| *offset != 64) {
                report(op.span, format!("`{}` is at offset {offset} of `{path}`", s.name(op)));
            }
        },
    ),
    error("inline-literal", "A literal in place of a named constant.", "make it a `const` and name that", "ane-facts 5.1", |s, report| {
        // Constants that are decoded take theirs in the brackets.
        for (_, op) in s.function.ops.iter().filter(|(_, op)| !op.kind.makes_constant()) {
            for (name, _) in op.args.iter().filter(|(_, arg)| matches!(arg, Arg::Literal(_))) {
                report(op.span, format!("`{name}` of `{}` is written in place", s.name(op)));
            }
        }
    }),
    error(
        "computed-size",
        "A shape or offset that is computed.",
        "make it a constant: the device knows fixed shapes only",
        "ane-facts 5.2",
        |s, report| {
            for call in s.every().filter(|call| !call.sizes_known()) {
                let unknown = |&(i, p): &(usize, &crate::ops::Param)| p.kind == Kind::Size && call.has(i) && call.literal(i).is_err();
                let name = call.def.params.iter().enumerate().find(unknown).map_or("", |(_, p)| p.name);
                report(call.op.span, format!("`{name}` of {} `{}` is computed", call.def.name, s.name(call.op)));
            }
        },
    ),
    warning(
        "small-scalar",
        "A scalar below the smallest normal number of fp16, 6.1e-5.",
        "scale the data instead: the device may take it for 0",
        "ane-facts 5.4",
        |s, report| {
            for (_, op) in s.function.ops.iter() {
                for literal in Scope::literals(op) {
                    if let Literal::Floats(ty, values) = literal
                        && ty.shape.is_empty()
                        && let Some(x) = values.first().filter(|x| **x != 0.0 && x.abs() < SMALLEST)
                    {
                        report(op.span, format!("`{}` holds {x:e}", s.name(op)));
                    }
                }
            }
        },
    ),
    warning(
        "zero-scale",
        "A product with the constant 0.",
        "leave it out: the compiler crashes on some",
        "ane-measurements 1.5, ane-facts 5.2",
        |s, report| {
            for call in s.calls(OpKind::Mul) {
                let zero =
                    |i: usize| call.literal(i).is_ok_and(|l| matches!(l, Literal::Floats(ty, v) if ty.shape.is_empty() && v == [0.0]));
                if zero(0) || zero(1) {
                    report(call.op.span, format!("mul `{}` is always 0", s.name(call.op)));
                }
            }
        },
    ),
];
