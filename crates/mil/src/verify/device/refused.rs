//! Ops and element types that the device does not take.

use super::scope::Scope;
use super::{Lint, Report, error, warning};
use crate::Handle;
use crate::ir::{Chip, DType, Def, Value};
use crate::ops::OpKind::{self, *};

/// No chip has a form of these.
const REFUSED: &[OpKind] = &[
    ReduceProd,
    Scatter,
    ScatterAlongAxis,
    ScatterNd,
    Mod,
    OneHot,
    NonZero,
    BandPart,
    LogicalAnd,
    LogicalOr,
    LogicalXor,
    LogicalNot,
    Gru,
    Lstm,
];
/// M1 has no form of these.
const REFUSED_H13: &[OpKind] = &[Topk, Argsort, CropResize, Resample, Affine];
/// Before M3 there is no form of these.
const REFUSED_H14: &[OpKind] = &[Sin, Cos];
/// States.
const STATES: &[OpKind] = &[ReadState, WriteState, SliceUpdate];
/// Compiled by other routes, refused by that of programs in memory.
const ROUTE: &[OpKind] = &[Select, Gather, GatherAlongAxis, GatherNd, Cumsum];
/// Reported to compile and compute.
const PROVEN: &[OpKind] = &[
    Const,
    Conv,
    Matmul,
    Add,
    Sub,
    Mul,
    RealDiv,
    Maximum,
    Minimum,
    Abs,
    Pow,
    Rsqrt,
    Log,
    Sqrt,
    Exp,
    Tanh,
    Sigmoid,
    Silu,
    Gelu,
    Relu,
    Clip,
    Softmax,
    ReduceSum,
    ReduceMean,
    ReduceMax,
    LayerNorm,
    InstanceNorm,
    BatchNorm,
    Concat,
    Split,
    SliceBySize,
    SliceByIndex,
    Reshape,
    Transpose,
    ExpandDims,
    Squeeze,
    Tile,
    Pad,
    UpsampleBilinear,
    UpsampleNearestNeighbor,
    AvgPool,
    MaxPool,
    L2Pool,
    ConvTranspose,
    ConstexprBlockwiseShiftScale,
    ConstexprAffineDequantize,
    ConstexprLutToDense,
    ConstexprSparseToDense,
    ConstexprCast,
    ScaledDotProductAttention,
    Cast,
    Quantize,
    Dequantize,
];

pub(super) static LINTS: &[Lint] = &[
    error(
        "refused-op",
        "An op that no chip has.",
        "spell it out in other ops, or compute it on the CPU",
        "ane-facts 5.2, ane-measurements 1.5",
        |s, report| each(s, REFUSED, "is refused by every chip", report),
    ),
    Lint {
        chips: (Chip::H13, Chip::H13),
        ..error("refused-op-m1", "An op that M1 lacks.", "compute it on the CPU", "ane-measurements 1.5", |s, report| {
            each(s, REFUSED_H13, "is refused by M1", report);
        })
    },
    Lint {
        chips: (Chip::H13, Chip::H14),
        ..warning(
            "no-native-form",
            "An op that M1 and M2 have no form of their own for.",
            "make tables on the CPU and pass them in",
            "ane-measurements 1.5",
            |s, report| each(s, REFUSED_H14, "has no form of its own before M3", report),
        )
    },
    error(
        "state",
        "A state, or a tensor updated in part.",
        "pass the state in and return it: programs in memory have none",
        "ane-facts 5.2",
        |s, report| {
            for port in s.function.params.iter().map(|v| &s.function.values[*v]).filter(|v| v.state) {
                report(port.span, format!("`{}` is a state", port.name));
            }
            each(s, STATES, "belongs to states", report);
        },
    ),
    warning(
        "route",
        "An op that only other routes to the device take.",
        "compute it on the CPU, or as an additive mask",
        "ane-measurements 5",
        |s, report| each(s, ROUTE, "is refused in programs that are compiled in memory", report),
    ),
    warning(
        "unproven-op",
        "An op of which no report says that the device takes it.",
        "spell it out in other ops, or try it with `doctor`",
        "ane-facts 5.2",
        |s, report| {
            let judged = [REFUSED, REFUSED_H13, REFUSED_H14, STATES, ROUTE, PROVEN];
            for (_, op) in s.function.ops.iter().filter(|(_, op)| !judged.iter().any(|list| list.contains(&op.kind))) {
                report(op.span, format!("nobody reports {} on the device, as in `{}`", op.kind.name(), s.name(op)));
            }
        },
    ),
    error(
        "compute-type",
        "Numbers other than fp16 and fp32 are computed or passed in.",
        "compute in fp16; keep integers and conditions on the CPU",
        "ane-facts 5.2",
        |s, report| {
            for (v, value) in s.function.values.iter().filter(|(v, _)| !s.is_constant(*v)) {
                if !matches!(value.ty.dtype, DType::F16 | DType::F32) && !is_quantized(s, v) {
                    let how = if matches!(value.def, Def::Param(_)) { "an input" } else { "computed" };
                    report(value.span, format!("`{}`, {how}, has elements of {}", value.name, value.ty.dtype));
                }
            }
        },
    ),
];

fn each(s: &Scope<'_>, kinds: &[OpKind], what: &str, report: &mut Report<'_>) {
    for (_, op) in s.function.ops.iter().filter(|(_, op)| kinds.contains(&op.kind)) {
        report(op.span, format!("{} `{}` {what}", op.kind.name(), s.name(op)));
    }
}

/// Bytes that `quantize` makes, or that only `dequantize` takes.
fn is_quantized(s: &Scope<'_>, v: Handle<Value>) -> bool {
    let byte = matches!(s.function.values[v].ty.dtype, DType::I8 | DType::U8);
    let uses = s.uses(v);
    let read = !uses.is_empty() && uses.iter().all(|(op, _)| op.kind == Dequantize);
    byte && (read || s.maker(v).is_some_and(|op| op.kind == Quantize))
}
