//! The rules of chips: what the language allows and the Neural Engine refuses, or does otherwise than is meant.

use super::{Found, remark};
use crate::diagnostic::Severity;
use crate::ir::{Arg, Chip, DType, Def, Function, Literal, Op, Program, Span, Value};
use crate::live::dead_values;
use crate::ops::{Call, Cut, OpKind};
use crate::{Handle, word};

/// One rule of some chips.
#[derive(Debug)]
pub struct Lint {
    /// Its name.
    pub code: &'static str,
    /// Whether breaking it is an error.
    pub severity: Severity,
    /// First and last chip that has it.
    pub chips: (Chip, Chip),
    /// What it is about, in one line.
    pub doc: &'static str,
    /// What to do.
    pub help: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    check: fn(&Scope<'_>, &mut Report<'_>),
}

/// What a rule looks at.
struct Scope<'a> {
    program: &'a Program,
    function: &'a Function,
    chip: Chip,
}

/// Takes what a rule finds.
type Report<'r> = dyn FnMut(Span, String) + 'r;

const ALL: (Chip, Chip) = (Chip::H13, Chip::H17);

const fn error(
    code: &'static str,
    doc: &'static str,
    help: &'static str,
    source: &'static str,
    check: fn(&Scope<'_>, &mut Report<'_>),
) -> Lint {
    Lint { code, severity: Severity::Error, chips: ALL, doc, help, source, check }
}

const fn warning(
    code: &'static str,
    doc: &'static str,
    help: &'static str,
    source: &'static str,
    check: fn(&Scope<'_>, &mut Report<'_>),
) -> Lint {
    Lint { code, severity: Severity::Warning, chips: ALL, doc, help, source, check }
}

pub(super) fn check(program: &Program, chip: Chip, found: &mut Found) {
    for function in &program.functions {
        let scope = Scope { program, function, chip };
        for lint in LINTS.iter().filter(|l| l.chips.0 <= chip && chip <= l.chips.1) {
            (lint.check)(&scope, &mut |span, message| remark(found, lint, span, message));
        }
    }
}

impl<'a> Scope<'a> {
    /// Ops of a kind, resolved.
    fn calls(&self, kind: OpKind) -> impl Iterator<Item = Call<'a>> {
        let function = self.function;
        function.ops.iter().filter(move |(_, op)| op.kind == kind).filter_map(|(_, op)| Call::new(function, op).ok())
    }

    fn name(&self, op: &Op) -> &'a str {
        op.results.first().map_or("", |v| self.function.values[*v].name.as_str())
    }

    /// Parameters and results.
    fn ports(&self) -> impl Iterator<Item = (Handle<Value>, &'a Value)> {
        let function = self.function;
        function.params.iter().chain(&function.results).map(|v| (*v, &function.values[*v]))
    }

    fn is_constant(&self, v: Handle<Value>) -> bool {
        self.function.is_constant(v)
    }

    /// Whether `v` is used as the weight of `conv` and not otherwise: a port whose width is 1, kernels being 1 × 1.
    fn is_conv_weight(&self, v: Handle<Value>) -> bool {
        let args = self.function.ops.iter().flat_map(|(_, op)| op.args.iter().map(move |(name, arg)| (op, name, arg)));
        let mut uses = args.filter(|(_, _, arg)| crate::live::values(arg).contains(&v)).peekable();
        uses.peek().is_some()
            && uses.all(|(op, name, _)| op.kind == OpKind::Conv && name == "weight")
            && !self.function.results.contains(&v)
    }

    /// Paths and offsets of constants in weight files.
    fn blobs(&self) -> impl Iterator<Item = (&'a Op, &'a str, u64)> {
        let literals = |op: &'a Op| {
            let args = op.args.iter().filter_map(|(_, arg)| if let Arg::Literal(l) = arg { Some(l) } else { None });
            op.attrs.iter().map(|(_, l)| l).chain(args)
        };
        self.function.ops.iter().flat_map(move |(_, op)| {
            literals(op)
                .filter_map(move |l| if let Literal::Blob { path, offset, .. } = l { Some((op, path.as_str(), *offset)) } else { None })
        })
    }
}

/// Constants in weight files that one program takes.
const MAX_BLOBS: usize = 16;
/// Ops near which programs fail.
const MAX_OPS: usize = 3200;

/// The rules of all chips.
pub static LINTS: &[Lint] = &[
    error(
        "axis-cap",
        "An axis of a port or intermediate is too long.",
        "split the program: FFN by matrix, classifier by vocabulary slice, attention by query tile",
        "ane-facts 5.3, ane-measurements 1.5",
        axis_cap,
    ),
    error("matmul-rank", "A matmul of rank 5.", "merge leading axes with reshape", "ane-facts 5.5", |s, report| {
        for call in s.calls(OpKind::Matmul) {
            if (0..2).any(|i| call.ty(i).is_ok_and(|t| t.shape.len() > 4)) {
                report(call.op.span, format!("matmul `{}` has operands of rank 5", s.name(call.op)));
            }
        }
    }),
    error(
        "port-width",
        "The last axis of a port is no multiple of 32.",
        "pad it with zeros",
        "programs.md 1 rule 2, 4 habit 8",
        |s, report| {
            for (_, port) in s.ports().filter(|(v, _)| !s.is_conv_weight(*v)) {
                let width = port.ty.shape.last().copied().unwrap_or(1);
                if width % 32 != 0 {
                    report(port.span, format!("port `{}` has {width} elements in its last axis, no multiple of 32", port.name));
                }
            }
        },
    ),
    warning(
        "port-width-64",
        "The width of an activation port is no multiple of 64.",
        "pad it with zeros",
        "programs.md 1 rule 2",
        |s, report| {
            for (_, port) in s.ports() {
                if let [1, _, 1, width] = port.ty.shape[..]
                    && width % 64 == 32
                {
                    report(port.span, format!("port `{}` has a width of {width}, no multiple of 64", port.name));
                }
            }
        },
    ),
    error(
        "port-order",
        "Ports are not declared in alphabetical order.",
        "rename or reorder them: the device binds by name order",
        "ane-facts 4, 9.8",
        |s, report| {
            for (what, list) in [("input", &s.function.params), ("output", &s.function.results)] {
                for pair in list.windows(2) {
                    let (a, b) = (&s.function.values[pair[0]], &s.function.values[pair[1]]);
                    if a.name >= b.name {
                        report(b.span, format!("{what} `{}` stands after `{}`", b.name, a.name));
                    }
                }
            }
        },
    ),
    warning("blob-count", "More constants in weight files than one program takes.", "split the program", "ane-facts 5.3", |s, report| {
        let n = s.blobs().count();
        if n > MAX_BLOBS {
            report(s.function.span, format!("`{}` has {n} constants in weight files, more than {MAX_BLOBS}", s.function.name));
        }
    }),
    error(
        "blob-path",
        "A weight file outside the model's directory.",
        "write @model_path/ and then plain names",
        "ane-facts 9.21",
        |s, report| {
            for (op, path, _) in s.blobs().filter(|(_, path, _)| !word::is_blob_path(path)) {
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
            for (op, path, offset) in s.blobs().filter(|(_, _, offset)| *offset != 64) {
                report(op.span, format!("`{}` is at offset {offset} of `{path}`", s.name(op)));
            }
        },
    ),
    error("inline-literal", "A literal in place of a named constant.", "make it a `const` and name that", "ane-facts 5.1", |s, report| {
        for (_, op) in s.function.ops.iter() {
            for (name, _) in op.args.iter().filter(|(_, arg)| matches!(arg, Arg::Literal(_))) {
                report(op.span, format!("`{name}` of `{}` is written in place", s.name(op)));
            }
        }
    }),
    error(
        "compute-type",
        "Numbers other than fp16 and fp32 are computed or passed in.",
        "compute in fp16; keep integers and conditions on the CPU",
        "ane-facts 5.2",
        |s, report| {
            for (v, value) in s.function.values.iter().filter(|(v, _)| !s.is_constant(*v)) {
                if !matches!(value.ty.dtype, DType::F16 | DType::F32) {
                    let how = if matches!(s.function.values[v].def, Def::Param(_)) { "an input" } else { "computed" };
                    report(value.span, format!("`{}`, {how}, has elements of {}", value.name, value.ty.dtype));
                }
            }
        },
    ),
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
    Lint {
        chips: (Chip::H13, Chip::H14),
        ..warning(
            "slice-width-clamp",
            "A slice at a width offset turns numbers above 4094 into infinity.",
            "put the field with large values first",
            "ane-facts 5.2, ane-measurements 5",
            slice_width,
        )
    },
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
    error("returned-input", "An input is returned as it is.", "return the result of a computation", "ane-measurements 5", |s, report| {
        for (_, value) in s.ports().skip(s.function.params.len()).filter(|(_, value)| matches!(value.def, Def::Param(_))) {
            report(value.span, format!("`{}`, an input, is returned", value.name));
        }
    }),
    error(
        "runtime-conv",
        "A conv with a computed weight in batches or groups.",
        "use batch 1 and groups 1, or matmul",
        "ane-facts 5.5",
        |s, report| {
            for call in s.calls(OpKind::Conv).filter(|c| c.value(1).is_some_and(|w| !s.is_constant(w))) {
                let batch = call.ty(0).map_or(1, |x| x.shape[0]);
                let groups = call.int(7).unwrap_or(1);
                if batch > 1 || groups > 1 {
                    report(call.op.span, format!("conv `{}` has a computed weight, batch {batch} and {groups} group(s)", s.name(call.op)));
                }
            }
        },
    ),
    error("conv-bias", "A conv with a bias.", "add it afterwards", "ane-facts 5.2", |s, report| {
        for call in s.calls(OpKind::Conv).filter(|c| c.has(2)) {
            report(call.op.span, format!("conv `{}` has a bias", s.name(call.op)));
        }
    }),
    error(
        "conv-channels",
        "A conv over 32,000 input channels or more.",
        "split the channels, or use matmul",
        "ane-facts 5.2",
        |s, report| {
            for call in s.calls(OpKind::Conv) {
                if let Some(n) = call.ty(0).ok().map(|x| x.shape[1]).filter(|&n| n >= 32_000) {
                    report(call.op.span, format!("conv `{}` has {n} input channels", s.name(call.op)));
                }
            }
        },
    ),
    error("conv-kernel", "A kernel wider than the chip has.", "split the kernel", "ane-measurements 5", |s, report| {
        let limit = if s.chip == Chip::H13 { 13 } else { 15 };
        for call in s.calls(OpKind::Conv) {
            if let Some(n) = call.ty(1).ok().and_then(|w| w.shape.last().copied()).filter(|&n| n > limit) {
                report(call.op.span, format!("conv `{}` has a kernel of width {n}, above {limit}", s.name(call.op)));
            }
        }
    }),
    warning("reduce-mean", "reduce_mean fails on some systems.", "use reduce_sum and multiply by 1/n", "ane-facts 5.2", |s, report| {
        for call in s.calls(OpKind::ReduceMean) {
            report(call.op.span, format!("`{}` is a reduce_mean", s.name(call.op)));
        }
    }),
    error("epsilon", "rsqrt or log without epsilon.", "give epsilon", "ane-facts 5.2", |s, report| {
        for call in s.calls(OpKind::Rsqrt).chain(s.calls(OpKind::Log)).filter(|c| !c.has(1)) {
            report(call.op.span, format!("{} `{}` has no epsilon", call.def.name, s.name(call.op)));
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
    error("program-size", "More ops than compile.", "split the program", "ane-facts 5.3", |s, report| {
        let n = s.function.ops.iter().filter(|(_, op)| op.kind != OpKind::Const).count();
        if n > MAX_OPS {
            report(s.function.span, format!("`{}` has {n} ops, more than {MAX_OPS}", s.function.name));
        }
    }),
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

fn slice_width(s: &Scope<'_>, report: &mut Report<'_>) {
    for call in s.calls(OpKind::SliceBySize).chain(s.calls(OpKind::SliceByIndex)) {
        let offset = Cut::of(&call).ok().and_then(|cuts| cuts.last().map(|c| c.begin)).unwrap_or(0);
        if offset != 0 {
            report(call.op.span, format!("`{}` starts at {offset} on the last axis", s.name(call.op)));
        }
    }
}

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
