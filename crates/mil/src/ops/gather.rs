//! Ops that take elements from computed positions, or put them there.

use super::{
    BOOL, Call, Cost, Domain, FROM_17, GATHERABLE, I32, Lit, NUMBERS, Need, ONLY_15, ONLY_16, OpDef, POSITIONS, POSITIONS_16, Param,
    Reject, STRING, TO_16, constant, op, same, tensor,
};
use crate::ir::Type;

const X_INDICES_AXIS_NUMBER: &[Param] =
    &[tensor("x", Domain::T(NUMBERS)), tensor("indices", I32), constant("axis", I32, Need::Default(Lit::Int(0)))];
const DATA_INDICES_UPDATES_ETC_NUMBER: &[Param] = &[
    tensor("data", Domain::T(NUMBERS)),
    tensor("indices", I32),
    tensor("updates", Domain::T(NUMBERS)),
    constant("axis", I32, Need::Default(Lit::Int(0))),
    constant("mode", STRING, Need::Default(Lit::Text("add"))),
];
const DATA_INDICES_UPDATES_ETC_NUMBER_B: &[Param] = &[
    tensor("data", Domain::T(NUMBERS)),
    tensor("indices", I32),
    tensor("updates", Domain::T(NUMBERS)),
    constant("axis", I32, Need::Default(Lit::Int(0))),
    constant("mode", STRING, Need::Default(Lit::Text("add"))),
    constant("validate_indices", BOOL, Need::Default(Lit::False)),
];

pub(super) const GATHER_15: OpDef =
    op("gather", "Slices of `x` at positions `indices` along `axis`.", ONLY_15, X_INDICES_AXIS_NUMBER, Some(gather), Cost::moves);
pub(super) const GATHER_16: OpDef = op(
    "gather",
    "Slices of `x` at positions `indices` along `axis`.",
    ONLY_16,
    &[
        tensor("x", Domain::T(NUMBERS)),
        tensor("indices", Domain::Free(POSITIONS_16)),
        constant("axis", I32, Need::Default(Lit::Int(0))),
        constant("batch_dims", I32, Need::Default(Lit::Int(0))),
    ],
    Some(gather),
    Cost::moves,
);
pub(super) const GATHER: OpDef = op(
    "gather",
    "Slices of `x` at positions `indices` along `axis`.",
    FROM_17,
    &[
        tensor("x", Domain::T(GATHERABLE)),
        tensor("indices", Domain::Free(POSITIONS)),
        constant("axis", I32, Need::Default(Lit::Int(0))),
        constant("batch_dims", I32, Need::Default(Lit::Int(0))),
        constant("validate_indices", BOOL, Need::Default(Lit::False)),
    ],
    Some(gather),
    Cost::moves,
);
pub(super) const GATHER_ALONG_AXIS_15: OpDef = op(
    "gather_along_axis",
    "Elements of `x` at positions `indices` along `axis`, all other positions kept.",
    ONLY_15,
    X_INDICES_AXIS_NUMBER,
    Some(along_axis),
    Cost::moves,
);
pub(super) const GATHER_ALONG_AXIS_16: OpDef = op(
    "gather_along_axis",
    "Elements of `x` at positions `indices` along `axis`, all other positions kept.",
    ONLY_16,
    &[tensor("x", Domain::T(NUMBERS)), tensor("indices", Domain::Free(POSITIONS_16)), constant("axis", I32, Need::Default(Lit::Int(0)))],
    Some(along_axis),
    Cost::moves,
);
pub(super) const GATHER_ALONG_AXIS: OpDef = op(
    "gather_along_axis",
    "Elements of `x` at positions `indices` along `axis`, all other positions kept.",
    FROM_17,
    &[
        tensor("x", Domain::T(GATHERABLE)),
        tensor("indices", Domain::Free(POSITIONS)),
        constant("axis", I32, Need::Default(Lit::Int(0))),
        constant("validate_indices", BOOL, Need::Default(Lit::False)),
    ],
    Some(along_axis),
    Cost::moves,
);
pub(super) const GATHER_ND_15: OpDef = op(
    "gather_nd",
    "Slices of `x` at the positions that the rows of `indices` hold.",
    ONLY_15,
    &[tensor("x", Domain::T(NUMBERS)), tensor("indices", I32)],
    Some(gather_nd),
    Cost::moves,
);
pub(super) const GATHER_ND_16: OpDef = op(
    "gather_nd",
    "Slices of `x` at the positions that the rows of `indices` hold.",
    ONLY_16,
    &[
        tensor("x", Domain::T(NUMBERS)),
        tensor("indices", Domain::Free(POSITIONS_16)),
        constant("batch_dims", I32, Need::Default(Lit::Int(0))),
    ],
    Some(gather_nd),
    Cost::moves,
);
pub(super) const GATHER_ND: OpDef = op(
    "gather_nd",
    "Slices of `x` at the positions that the rows of `indices` hold.",
    FROM_17,
    &[
        tensor("x", Domain::T(GATHERABLE)),
        tensor("indices", Domain::Free(POSITIONS)),
        constant("batch_dims", I32, Need::Default(Lit::Int(0))),
        constant("validate_indices", BOOL, Need::Default(Lit::False)),
    ],
    Some(gather_nd),
    Cost::moves,
);
pub(super) const SCATTER_15: OpDef = op(
    "scatter",
    "`data` with slices at positions `indices` along `axis` combined with `updates`.",
    TO_16,
    DATA_INDICES_UPDATES_ETC_NUMBER,
    Some(same),
    Cost::moves,
);
pub(super) const SCATTER: OpDef = op(
    "scatter",
    "`data` with slices at positions `indices` along `axis` combined with `updates`.",
    FROM_17,
    DATA_INDICES_UPDATES_ETC_NUMBER_B,
    Some(same),
    Cost::moves,
);
pub(super) const SCATTER_ALONG_AXIS_15: OpDef = op(
    "scatter_along_axis",
    "`data` with elements at positions `indices` along `axis` combined with `updates`.",
    TO_16,
    DATA_INDICES_UPDATES_ETC_NUMBER,
    Some(same),
    Cost::moves,
);
pub(super) const SCATTER_ALONG_AXIS: OpDef = op(
    "scatter_along_axis",
    "`data` with elements at positions `indices` along `axis` combined with `updates`.",
    FROM_17,
    DATA_INDICES_UPDATES_ETC_NUMBER_B,
    Some(same),
    Cost::moves,
);
pub(super) const SCATTER_ND_15: OpDef = op(
    "scatter_nd",
    "`data` with slices at the positions that the rows of `indices` hold combined with `updates`.",
    TO_16,
    &[
        tensor("data", Domain::T(NUMBERS)),
        tensor("indices", I32),
        tensor("updates", Domain::T(NUMBERS)),
        constant("mode", STRING, Need::Default(Lit::Text("add"))),
    ],
    Some(same),
    Cost::moves,
);
pub(super) const SCATTER_ND: OpDef = op(
    "scatter_nd",
    "`data` with slices at the positions that the rows of `indices` hold combined with `updates`.",
    FROM_17,
    &[
        tensor("data", Domain::T(NUMBERS)),
        tensor("indices", I32),
        tensor("updates", Domain::T(NUMBERS)),
        constant("mode", STRING, Need::Default(Lit::Text("add"))),
        constant("validate_indices", BOOL, Need::Default(Lit::False)),
    ],
    Some(same),
    Cost::moves,
);

/// The axes that `x` and `indices` share at the front, of parameter `i` if the form has it.
fn batch_dims(call: &Call<'_>, i: usize, x: &[u64], indices: &[u64]) -> Result<usize, Reject> {
    if call.def.params.get(i).is_none_or(|p| p.name != "batch_dims") {
        return Ok(0);
    }
    let n = call.int(i)?;
    match usize::try_from(n).ok().filter(|&n| n <= x.len() && n <= indices.len() && x[..n] == indices[..n]) {
        Some(n) => Ok(n),
        None => Err(call.reject(i, format!("is {n} where x has {x:?} and indices {indices:?}"), "the first axes of both must be equal")),
    }
}

fn gather(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let (x, indices) = (call.ty(0)?, call.ty(1)?.shape);
    let axis = call.axis(2, x.shape.len())?;
    let batch = batch_dims(call, 3, &x.shape, &indices)?;
    if axis < batch {
        return Err(call.reject(2, format!("is {axis}, among {batch} batch axes"), "gather along an axis behind them"));
    }
    Ok(vec![Type { dtype: x.dtype, shape: [&x.shape[..axis], &indices[batch..], &x.shape[axis + 1..]].concat() }])
}

fn along_axis(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let (x, indices) = (call.ty(0)?, call.ty(1)?.shape);
    let axis = call.axis(2, x.shape.len())?;
    if indices.len() != x.shape.len() || (0..indices.len()).any(|i| i != axis && indices[i] != x.shape[i]) {
        let message = format!("has shape {indices:?} where x has {:?}", x.shape);
        return Err(call.reject(1, message, "all axes but the gathered one must agree"));
    }
    Ok(vec![Type { dtype: x.dtype, shape: indices }])
}

fn gather_nd(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let (x, indices) = (call.ty(0)?, call.ty(1)?.shape);
    let batch = batch_dims(call, 2, &x.shape, &indices)?;
    let rest = |k: u64| usize::try_from(k).ok().and_then(|k| x.shape.get(batch + k..));
    match indices.split_last().and_then(|(&k, rows)| Some([rows, rest(k)?].concat())) {
        Some(shape) if indices.len() > batch => Ok(vec![Type { dtype: x.dtype, shape }]),
        _ => Err(call.reject(1, format!("has shape {indices:?} where x has {:?}", x.shape), "rows of indices address the axes of x")),
    }
}
