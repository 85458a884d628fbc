//! Ops that make tensors of nothing but a shape, or of chance.

use super::{
    ALL, Call, Cost, Domain, FLOATS, FROM_16, I32, Lit, MOVABLE_15, NUMBERS, Need, OpDef, Reject, STRING, constant, op, same, sizes, tensor,
};
use crate::ir::{DType, MAX_RANK, Type};

pub(super) const FILL: OpDef = op(
    "fill",
    "A tensor of `shape`, each element `value`.",
    ALL,
    &[sizes("shape", I32), constant("value", Domain::T(MOVABLE_15), Need::Optional)],
    Some(fill),
    Cost::moves,
);
pub(super) const FILL_LIKE: OpDef = op(
    "fill_like",
    "A tensor of the shape of `ref_tensor`, each element `value`.",
    FROM_16,
    &[tensor("ref_tensor", Domain::T(MOVABLE_15)), constant("value", Domain::Free(MOVABLE_15), Need::Optional)],
    Some(fill_like),
    Cost::moves,
);
pub(super) const RANGE_1D: OpDef = op(
    "range_1d",
    "`start`, `start + step`, … below `end`.",
    ALL,
    &[tensor("end", Domain::T(NUMBERS)), tensor("start", Domain::T(NUMBERS)), tensor("step", Domain::T(NUMBERS))],
    None,
    Cost::moves,
);
pub(super) const ONE_HOT: OpDef = op(
    "one_hot",
    "`on_value` at positions `indices` of a new axis, `off_value` elsewhere.",
    ALL,
    &[
        tensor("indices", I32),
        tensor("one_hot_vector_size", I32),
        constant("axis", I32, Need::Default(Lit::Int(-1))),
        constant("on_value", Domain::T(MOVABLE_15), Need::Optional),
        constant("off_value", Domain::T(MOVABLE_15), Need::Optional),
    ],
    None,
    Cost::moves,
);
pub(super) const BAND_PART: OpDef = op(
    "band_part",
    "`x` with zeros outside a band around the diagonal of its last two axes.",
    ALL,
    &[
        tensor("x", Domain::T(MOVABLE_15)),
        constant("lower", I32, Need::Default(Lit::Int(-1))),
        constant("upper", I32, Need::Default(Lit::Int(-1))),
    ],
    Some(same),
    Cost::moves,
);
pub(super) const RANDOM_BERNOULLI: OpDef = op(
    "random_bernoulli",
    "Ones with probability `prob`, else zeros.",
    ALL,
    &[tensor("shape", I32), constant("prob", Domain::T(FLOATS), Need::Optional), constant("seed", I32, Need::Default(Lit::Int(-1)))],
    None,
    Cost::moves,
);
pub(super) const RANDOM_CATEGORICAL: OpDef = op(
    "random_categorical",
    "Samples of the distributions in the rows of `x`.",
    ALL,
    &[
        tensor("x", Domain::T(FLOATS)),
        constant("mode", STRING, Need::Default(Lit::Text("logits"))),
        constant("size", I32, Need::Default(Lit::Int(1))),
        constant("seed", I32, Need::Default(Lit::Int(-1))),
    ],
    None,
    Cost::moves,
);
pub(super) const RANDOM_NORMAL: OpDef = op(
    "random_normal",
    "Samples of a normal distribution.",
    ALL,
    &[
        tensor("shape", I32),
        constant("mean", Domain::T(FLOATS), Need::Optional),
        constant("stddev", Domain::T(FLOATS), Need::Optional),
        constant("seed", I32, Need::Default(Lit::Int(-1))),
    ],
    None,
    Cost::moves,
);
pub(super) const RANDOM_UNIFORM: OpDef = op(
    "random_uniform",
    "Samples between `low` and `high`.",
    ALL,
    &[
        tensor("shape", I32),
        constant("low", Domain::T(FLOATS), Need::Optional),
        constant("high", Domain::T(FLOATS), Need::Optional),
        constant("seed", I32, Need::Default(Lit::Int(-1))),
    ],
    None,
    Cost::moves,
);

fn fill(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let given = call.ints(0)?;
    if given.len() > MAX_RANK {
        return Err(call.reject(0, format!("has {} entries", given.len()), "MIL has five axes at most"));
    }
    match given.iter().map(|&n| u64::try_from(n).ok().filter(|&n| n > 0)).collect() {
        Some(shape) => Ok(vec![Type { dtype: filled_with(call)?, shape }]),
        None => Err(call.reject(0, format!("is {given:?}"), "lengths are positive")),
    }
}

fn fill_like(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    Ok(vec![Type { dtype: filled_with(call)?, shape: call.ty(0)?.shape }])
}

/// The element type of `value`; `fp32`, that of its default, when it is left out.
fn filled_with(call: &Call<'_>) -> Result<DType, Reject> {
    if call.has(1) { Ok(call.ty(1)?.dtype) } else { Ok(DType::F32) }
}
