//! Ops that combine the elements of axes: reductions and `softmax`.

use super::{
    ALL, BOOL, Call, Cost, Domain, FLOATS, FROM_17, I32, Lit, NUMBERS, Need, OpDef, Param, Reject, STRING, TO_16, constant, one_flop, op,
    tensor,
};
use crate::ir::{DType, Type};

const X_AXES_KEEP_DIMS_NUMBER: &[Param] =
    &[tensor("x", Domain::T(NUMBERS)), constant("axes", I32, Need::Optional), constant("keep_dims", BOOL, Need::Default(Lit::False))];
const X_AXIS_KEEP_DIMS_NUMBER: &[Param] = &[
    tensor("x", Domain::T(NUMBERS)),
    constant("axis", I32, Need::Default(Lit::Int(-1))),
    constant("keep_dims", BOOL, Need::Default(Lit::False)),
];
const X_AXIS_KEEP_DIMS_ETC_NUMBER: &[Param] = &[
    tensor("x", Domain::T(NUMBERS)),
    constant("axis", I32, Need::Default(Lit::Int(-1))),
    constant("keep_dims", BOOL, Need::Default(Lit::False)),
    constant("output_dtype", STRING, Need::Default(Lit::Text("int32"))),
];

pub(super) const REDUCE_SUM: OpDef = op("reduce_sum", "Sum over `axes`.", ALL, X_AXES_KEEP_DIMS_NUMBER, Some(infer), cost);
pub(super) const REDUCE_MEAN: OpDef = op("reduce_mean", "Mean over `axes`.", ALL, X_AXES_KEEP_DIMS_NUMBER, Some(infer), cost);
pub(super) const REDUCE_MAX: OpDef = op("reduce_max", "Largest element over `axes`.", ALL, X_AXES_KEEP_DIMS_NUMBER, Some(infer), cost);
pub(super) const REDUCE_MIN: OpDef = op("reduce_min", "Smallest element over `axes`.", ALL, X_AXES_KEEP_DIMS_NUMBER, Some(infer), cost);
pub(super) const REDUCE_PROD: OpDef = op("reduce_prod", "Product over `axes`.", ALL, X_AXES_KEEP_DIMS_NUMBER, Some(infer), cost);
pub(super) const REDUCE_L1_NORM: OpDef =
    op("reduce_l1_norm", "Sum of absolute values over `axes`.", ALL, X_AXES_KEEP_DIMS_NUMBER, Some(infer), cost);
pub(super) const REDUCE_L2_NORM: OpDef =
    op("reduce_l2_norm", "Square root of the sum of squares over `axes`.", ALL, X_AXES_KEEP_DIMS_NUMBER, Some(infer), cost);
pub(super) const REDUCE_LOG_SUM: OpDef =
    op("reduce_log_sum", "Logarithm of the sum over `axes`.", ALL, X_AXES_KEEP_DIMS_NUMBER, Some(infer), cost);
pub(super) const REDUCE_LOG_SUM_EXP: OpDef =
    op("reduce_log_sum_exp", "Logarithm of the sum of exponentials over `axes`.", ALL, X_AXES_KEEP_DIMS_NUMBER, Some(infer), cost);
pub(super) const REDUCE_SUM_SQUARE: OpDef =
    op("reduce_sum_square", "Sum of squares over `axes`.", ALL, X_AXES_KEEP_DIMS_NUMBER, Some(infer), cost);
pub(super) const REDUCE_ARGMAX_15: OpDef =
    op("reduce_argmax", "Position of the largest element along `axis`.", TO_16, X_AXIS_KEEP_DIMS_NUMBER, Some(infer_position), cost);
pub(super) const REDUCE_ARGMAX: OpDef =
    op("reduce_argmax", "Position of the largest element along `axis`.", FROM_17, X_AXIS_KEEP_DIMS_ETC_NUMBER, Some(infer_position), cost);
pub(super) const REDUCE_ARGMIN_15: OpDef =
    op("reduce_argmin", "Position of the smallest element along `axis`.", TO_16, X_AXIS_KEEP_DIMS_NUMBER, Some(infer_position), cost);
pub(super) const REDUCE_ARGMIN: OpDef =
    op("reduce_argmin", "Position of the smallest element along `axis`.", FROM_17, X_AXIS_KEEP_DIMS_ETC_NUMBER, Some(infer_position), cost);
pub(super) const SOFTMAX: OpDef = op(
    "softmax",
    "`exp(x) / sum(exp(x))` along `axis`.",
    ALL,
    &[tensor("x", Domain::T(FLOATS)), constant("axis", I32, Need::Default(Lit::Int(-1)))],
    Some(infer_softmax),
    |call, out| Cost::each(call, out, 5),
);
pub(super) const CUMSUM: OpDef = op(
    "cumsum",
    "Running sum along `axis`.",
    ALL,
    &[
        tensor("x", Domain::T(NUMBERS)),
        constant("axis", I32, Need::Default(Lit::Int(0))),
        constant("exclusive", BOOL, Need::Default(Lit::False)),
        constant("reverse", BOOL, Need::Default(Lit::False)),
    ],
    Some(infer_cumsum),
    one_flop,
);

fn infer(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let x = call.ty(0)?;
    let (axes, keep) = (reduced_axes(call)?, call.flag(2)?);
    let kept = |(i, &n): (usize, &u64)| match (axes.contains(&i), keep) {
        (false, _) => Some(n),
        (true, keep) => keep.then_some(1),
    };
    Ok(vec![Type { dtype: x.dtype, shape: x.shape.iter().enumerate().filter_map(kept).collect() }])
}

fn cost(call: &Call<'_>, results: &[Type]) -> Cost {
    Cost { flops: call.ty(0).map_or(0, |x| x.numel() as u64), ..Cost::moves(call, results) }
}

/// The axes that a reduction removes, in the order written; all of them when none are named.
pub(super) fn reduced_axes(call: &Call<'_>) -> Result<Vec<usize>, Reject> {
    let rank = call.ty(0)?.shape.len();
    if !call.has(1) {
        return Ok((0..rank).collect());
    }
    let axes = call.axes(1, rank)?;
    if axes.is_empty() {
        return Err(call.reject(1, "names no axis", "name the axes, or leave `axes` out to reduce all"));
    }
    Ok(axes)
}

fn infer_softmax(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let x = call.ty(0)?;
    call.axis(1, x.shape.len())?;
    Ok(vec![x])
}

/// The axis goes, or stays with length 1; positions are `int32`, or what `output_dtype` says from iOS 17 on.
fn infer_position(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let x = call.ty(0)?;
    let (axis, keep) = (call.axis(1, x.shape.len())?, call.flag(2)?);
    let dtype = match call.def.params.len() {
        3 => DType::I32,
        _ => {
            let word = call.text(3)?;
            match DType::from_word(&word).filter(|d| matches!(d, DType::I32 | DType::U16)) {
                Some(dtype) => dtype,
                None => return Err(call.reject(3, format!("is \"{word}\""), "use int32 or uint16")),
            }
        }
    };
    let mut shape = x.shape;
    if keep {
        shape[axis] = 1;
    } else {
        shape.remove(axis);
    }
    Ok(vec![Type { dtype, shape }])
}

fn infer_cumsum(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    infer_softmax(call)
}
