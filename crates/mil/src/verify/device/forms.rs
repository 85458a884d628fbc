//! Ops that the device takes in some forms only.

use super::scope::Scope;
use super::{Lint, Report, error, warning};
use crate::ir::Chip;
use crate::ops::OpKind;

pub(super) static LINTS: &[Lint] = &[
    error("matmul-rank", "A matmul of rank 5.", "merge leading axes with reshape", "ane-facts 5.5", |s, report| {
        for call in s.calls(OpKind::Matmul) {
            if (0..2).any(|i| call.ty(i).is_ok_and(|t| t.shape.len() > 4)) {
                report(call.op.span, format!("matmul `{}` has operands of rank 5", s.name(call.op)));
            }
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
    error("conv-rank", "A conv over three spatial axes.", "use two, and add over the third", "ane-measurements 1.5", |s, report| {
        for call in s.calls(OpKind::Conv).filter(|c| c.ty(0).is_ok_and(|x| x.shape.len() > 4)) {
            report(call.op.span, format!("conv `{}` has three spatial axes", s.name(call.op)));
        }
    }),
    warning("reduce-mean", "reduce_mean fails on some systems.", "use reduce_sum and multiply by 1/n", "ane-facts 5.2", |s, report| {
        for call in s.calls(OpKind::ReduceMean) {
            report(call.op.span, format!("`{}` is a reduce_mean", s.name(call.op)));
        }
    }),
    warning(
        "layer-norm",
        "layer_norm fails for some widths and some values of gamma and beta.",
        "spell it out: reduce_sum, sub, mul, pow",
        "ane-facts 5.2, ane-measurements 1.5",
        |s, report| {
            for call in s.calls(OpKind::LayerNorm) {
                report(call.op.span, format!("`{}` is a layer_norm", s.name(call.op)));
            }
        },
    ),
    error("epsilon", "rsqrt or log without epsilon.", "give epsilon", "ane-facts 5.2", |s, report| {
        for call in s.calls(OpKind::Rsqrt).chain(s.calls(OpKind::Log)).filter(|c| !c.has(1)) {
            report(call.op.span, format!("{} `{}` has no epsilon", call.def.name, s.name(call.op)));
        }
    }),
    error("gelu-mode", "gelu without mode.", "give mode, such as TANH_APPROXIMATION", "ane-facts 5.2", |s, report| {
        for call in s.calls(OpKind::Gelu).filter(|c| !c.has(1)) {
            report(call.op.span, format!("gelu `{}` has no mode", s.name(call.op)));
        }
    }),
    error("concat-interleave", "concat without interleave.", "write interleave = false, as a constant", "ane-facts 5.2", |s, report| {
        for call in s.calls(OpKind::Concat).filter(|c| !c.has(2)) {
            report(call.op.span, format!("concat `{}` has no interleave", s.name(call.op)));
        }
    }),
    warning(
        "tile-factor",
        "A tile by a factor that is not made of 2, 3, 4 and 8.",
        "tile in steps of these, or group heads as rows",
        "issue 3",
        |s, report| {
            for call in s.calls(OpKind::Tile) {
                for (axis, &n) in call.ints(1).unwrap_or_default().iter().enumerate() {
                    if !is_made_of_2_and_3(n) {
                        report(call.op.span, format!("tile `{}` repeats axis {axis} {n} times", s.name(call.op)));
                    }
                }
            }
        },
    ),
    error("slice-bounds", "A slice that ends beyond its tensor.", "end it where the tensor ends", "ane-facts 5.2", slice_bounds),
];

fn is_made_of_2_and_3(mut n: i64) -> bool {
    for p in [2, 3] {
        while n > 0 && n % p == 0 {
            n /= p;
        }
    }
    n == 1
}

/// The language clamps ends to the axis; the chip's compiler checks them.
fn slice_bounds(s: &Scope<'_>, report: &mut Report<'_>) {
    for call in s.calls(OpKind::SliceByIndex) {
        let Ok(x) = call.ty(0) else { continue };
        let rank = x.shape.len();
        let (begin, end) = (call.ints_of(1, rank), call.ints_of(2, rank));
        let (open_begin, open_end) = (call.mask(4, rank), call.mask(5, rank));
        if let (Ok(begin), Ok(end), Ok(open_begin), Ok(open_end)) = (begin, end, open_begin, open_end) {
            for (axis, &n) in x.shape.iter().enumerate() {
                let outside = |v: i64, open: bool| !open && (i128::from(v) > i128::from(n) || i128::from(v) < -i128::from(n));
                if outside(begin[axis], open_begin[axis]) || outside(end[axis], open_end[axis]) {
                    let range = format!("{}..{}", begin[axis], end[axis]);
                    report(call.op.span, format!("slice `{}` takes {range} of axis {axis}, of length {n}", s.name(call.op)));
                }
            }
        }
    }
}
