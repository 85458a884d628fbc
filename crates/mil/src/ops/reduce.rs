//! Ops that combine the elements of axes: reductions and `softmax`.

use super::{ALL, BOOL, Call, Cost, Domain, FLOATS, I32, Lit, NUMBERS, Need, OpDef, Param, Reject, constant, tensor};
use crate::ir::Type;

pub(super) const REDUCE_SUM: OpDef = reduction("reduce_sum", "Sum over `axes`.");
pub(super) const REDUCE_MEAN: OpDef = reduction("reduce_mean", "Mean over `axes`.");
pub(super) const REDUCE_MAX: OpDef = reduction("reduce_max", "Largest element over `axes`.");

/// `exp(x) / sum(exp(x))` along one axis.
pub(super) const SOFTMAX: OpDef = OpDef {
    name: "softmax",
    doc: "`exp(x) / sum(exp(x))` along `axis`.",
    opsets: ALL,
    params: &[tensor("x", Domain::T(FLOATS)), constant("axis", I32, Need::Default(Lit::Int(-1)))],
    infer: Some(|call| {
        let x = call.ty(0)?;
        call.axis(1, x.shape.len())?;
        Ok(vec![x])
    }),
    // Maximum, difference, exponential, sum, quotient.
    cost: |call, out| Cost::each(call, out, 5),
};

const fn reduction(name: &'static str, doc: &'static str) -> OpDef {
    const PARAMS: &[Param] =
        &[tensor("x", Domain::T(NUMBERS)), constant("axes", I32, Need::Optional), constant("keep_dims", BOOL, Need::Default(Lit::False))];
    OpDef { name, doc, opsets: ALL, params: PARAMS, infer: Some(infer), cost }
}

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
