//! How much of everything there may be.

use super::scope::Scope;
use super::{Lint, Report, error, warning};
use crate::live::dead_values;
use crate::ops::OpKind;

/// Constants in weight files that one program takes.
const MAX_BLOBS: usize = 16;
/// Ops near which programs fail.
const MAX_OPS: usize = 3200;
/// Ports of a function.
const MAX_PORTS: usize = 255;
/// Programs that a run may load; a process takes no more than about 120.
const MAX_PROGRAMS: usize = 100;
/// Tensors joined by one op.
const MAX_BRANCHES: usize = 11;

pub(super) static LINTS: &[Lint] = &[
    error(
        "axis-cap",
        "An axis of a port or intermediate is too long.",
        "split the program: FFN by matrix, classifier by vocabulary slice, attention by query tile",
        "ane-facts 5.3, ane-measurements 1.5",
        axis_cap,
    ),
    warning("blob-count", "More constants in weight files than one program takes.", "split the program", "ane-facts 5.3", |s, report| {
        let n = s.in_files().count();
        if n > MAX_BLOBS {
            report(s.function.span, format!("`{}` has {n} constants in weight files, more than {MAX_BLOBS}", s.function.name));
        }
    }),
    error("program-size", "More ops than compile.", "split the program", "ane-facts 5.3", |s, report| {
        let n = s.function.ops.iter().filter(|(_, op)| op.kind != OpKind::Const).count();
        if n > MAX_OPS {
            report(s.function.span, format!("`{}` has {n} ops, more than {MAX_OPS}", s.function.name));
        }
    }),
    error(
        "program-count",
        "More functions than a process may load.",
        "use runtime weights, so that one program serves all layers",
        "programs.md 2, ane-facts 6.1",
        |s, report| {
            let n = s.program.functions.len();
            // Said once, of the first function beyond.
            if n > MAX_PROGRAMS && std::ptr::eq(s.function, &s.program.functions[MAX_PROGRAMS]) {
                report(s.function.span, format!("the program has {n} functions, more than {MAX_PROGRAMS}"));
            }
        },
    ),
    error("port-count", "More ports than a program may have.", "pack several in one", "ane-facts 5.3", |s, report| {
        let n = s.function.params.len();
        if n > MAX_PORTS {
            report(s.function.span, format!("`{}` has {n} inputs, more than {MAX_PORTS}", s.function.name));
        }
    }),
    warning("branches", "Many tensors joined by one op.", "join them in steps of a few", "issue 3", |s, report| {
        for call in s.every() {
            let n = call.op.args.iter().map(|(_, arg)| crate::live::values(arg).len()).max().unwrap_or(0);
            if n > MAX_BRANCHES {
                report(call.op.span, format!("{} `{}` joins {n} tensors", call.def.name, s.name(call.op)));
            }
        }
    }),
    warning(
        "dead-result",
        "A value that no result needs.",
        "remove it: programs with unused values fail on some systems",
        "ane-facts 5.1",
        |s, report| {
            for value in dead_values(s.function).into_iter().map(|v| &s.function.values[v]) {
                report(value.span, format!("`{}` is never used", value.name));
            }
        },
    ),
    warning("build-info", "No buildInfo.", "copy it from any program that `print` writes", "ane-facts 5.1", |s, report| {
        if s.program.build_info.is_empty() {
            report(s.function.span, "the program has no buildInfo, which some systems demand".into());
        }
    }),
];

fn axis_cap(s: &Scope<'_>, report: &mut Report<'_>) {
    let limit = s.chip.axis_limit();
    for (_, value) in s.function.values.iter().filter(|(v, _)| !s.is_constant(*v)) {
        for (axis, &n) in value.ty.shape.iter().enumerate() {
            // Channels, axis 1 of [n, c, h, w], go to 65,536 everywhere.
            let limit = if value.ty.shape.len() == 4 && axis == 1 { 65_536 } else { limit };
            if n > limit {
                report(value.span, format!("`{}` has {n} elements in axis {axis}, more than the {limit} of {:?}", value.name, s.chip));
            }
        }
    }
}
