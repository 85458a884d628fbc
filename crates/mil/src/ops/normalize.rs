//! Ops that shift and scale elements by the statistics of others.

use super::{Call, Cost, Domain, FLOATS, FROM_17, I32, Lit, Need, OpDef, Reject, TO_16, constant, op, per_channel, same, tensor};
use crate::ir::Type;

pub(super) const BATCH_NORM_15: OpDef = op(
    "batch_norm",
    "`(x - mean) / sqrt(variance + epsilon) * gamma + beta`, by channel.",
    TO_16,
    &[
        tensor("x", Domain::T(FLOATS)),
        constant("mean", Domain::T(FLOATS), Need::Required),
        constant("variance", Domain::T(FLOATS), Need::Required),
        constant("gamma", Domain::T(FLOATS), Need::Optional),
        constant("beta", Domain::T(FLOATS), Need::Optional),
        constant("epsilon", Domain::T(FLOATS), Need::Default(Lit::Float(1e-5))),
    ],
    Some(|call| per_channel(call, &[1, 2, 3, 4])),
    five_flops,
);
pub(super) const BATCH_NORM: OpDef = op(
    "batch_norm",
    "`(x - mean) / sqrt(variance + epsilon) * gamma + beta`, by channel.",
    FROM_17,
    &[
        tensor("x", Domain::T(FLOATS)),
        constant("mean", Domain::U(FLOATS), Need::Required),
        constant("variance", Domain::U(FLOATS), Need::Required),
        constant("gamma", Domain::U(FLOATS), Need::Optional),
        constant("beta", Domain::U(FLOATS), Need::Optional),
        constant("epsilon", Domain::U(FLOATS), Need::Default(Lit::Float(1e-5))),
    ],
    Some(|call| per_channel(call, &[1, 2, 3, 4])),
    five_flops,
);
pub(super) const INSTANCE_NORM_15: OpDef = op(
    "instance_norm",
    "`x` normalized over its spatial axes, by sample and channel.",
    TO_16,
    &[
        tensor("x", Domain::T(FLOATS)),
        constant("gamma", Domain::T(FLOATS), Need::Optional),
        constant("beta", Domain::T(FLOATS), Need::Optional),
        constant("epsilon", Domain::T(FLOATS), Need::Default(Lit::Float(1e-5))),
    ],
    Some(|call| per_channel(call, &[1, 2])),
    five_flops,
);
pub(super) const INSTANCE_NORM: OpDef = op(
    "instance_norm",
    "`x` normalized over its spatial axes, by sample and channel.",
    FROM_17,
    &[
        tensor("x", Domain::T(FLOATS)),
        constant("gamma", Domain::U(FLOATS), Need::Optional),
        constant("beta", Domain::U(FLOATS), Need::Optional),
        constant("epsilon", Domain::U(FLOATS), Need::Default(Lit::Float(1e-5))),
    ],
    Some(|call| per_channel(call, &[1, 2])),
    five_flops,
);
pub(super) const L2_NORM_15: OpDef = op(
    "l2_norm",
    "`x` divided by the square root of its sum of squares over all axes but the first.",
    TO_16,
    &[tensor("x", Domain::T(FLOATS)), constant("epsilon", Domain::T(FLOATS), Need::Default(Lit::Float(1e-6)))],
    Some(same),
    five_flops,
);
pub(super) const L2_NORM: OpDef = op(
    "l2_norm",
    "`x` divided by the square root of its sum of squares over all axes but the first.",
    FROM_17,
    &[tensor("x", Domain::T(FLOATS)), constant("epsilon", Domain::Free(FLOATS), Need::Default(Lit::Float(1e-6)))],
    Some(same),
    five_flops,
);
pub(super) const LAYER_NORM_15: OpDef = op(
    "layer_norm",
    "`x` normalized over `axes`, then scaled by `gamma` and shifted by `beta`.",
    TO_16,
    &[
        tensor("x", Domain::T(FLOATS)),
        constant("axes", I32, Need::Optional),
        constant("gamma", Domain::T(FLOATS), Need::Optional),
        constant("beta", Domain::T(FLOATS), Need::Optional),
        constant("epsilon", Domain::T(FLOATS), Need::Default(Lit::Float(1e-5))),
    ],
    Some(infer_layer_norm),
    five_flops,
);
pub(super) const LAYER_NORM: OpDef = op(
    "layer_norm",
    "`x` normalized over `axes`, then scaled by `gamma` and shifted by `beta`.",
    FROM_17,
    &[
        tensor("x", Domain::T(FLOATS)),
        constant("axes", I32, Need::Optional),
        constant("gamma", Domain::U(FLOATS), Need::Optional),
        constant("beta", Domain::U(FLOATS), Need::Optional),
        constant("epsilon", Domain::U(FLOATS), Need::Default(Lit::Float(1e-5))),
    ],
    Some(infer_layer_norm),
    five_flops,
);
pub(super) const LOCAL_RESPONSE_NORM_15: OpDef = op(
    "local_response_norm",
    "`x` divided by a power of the squares of `size` neighbouring channels.",
    TO_16,
    &[
        tensor("x", Domain::T(FLOATS)),
        constant("size", I32, Need::Required),
        constant("alpha", Domain::T(FLOATS), Need::Default(Lit::Float(1e-4))),
        constant("beta", Domain::T(FLOATS), Need::Default(Lit::Float(0.75))),
        constant("k", Domain::T(FLOATS), Need::Default(Lit::Float(1.0))),
    ],
    Some(same),
    five_flops,
);
pub(super) const LOCAL_RESPONSE_NORM: OpDef = op(
    "local_response_norm",
    "`x` divided by a power of the squares of `size` neighbouring channels.",
    FROM_17,
    &[
        tensor("x", Domain::T(FLOATS)),
        constant("size", I32, Need::Required),
        constant("alpha", Domain::U(FLOATS), Need::Default(Lit::Float(1e-4))),
        constant("beta", Domain::U(FLOATS), Need::Default(Lit::Float(0.75))),
        constant("k", Domain::U(FLOATS), Need::Default(Lit::Float(1.0))),
    ],
    Some(same),
    five_flops,
);

/// Maximum or mean, difference, square, sum, quotient.
fn five_flops(call: &Call<'_>, results: &[Type]) -> Cost {
    Cost::each(call, results, 5)
}

/// `gamma` and `beta` have the shape of the axes that are normalized.
fn infer_layer_norm(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let x = call.ty(0)?;
    let axes = normalized_axes(call)?;
    let wanted: Vec<u64> = axes.iter().map(|&i| x.shape[i]).collect();
    for i in [2, 3] {
        if call.has(i) && call.ty(i)?.shape != wanted {
            let message = format!("has shape {:?} where the normalized axes have {wanted:?}", call.ty(i)?.shape);
            return Err(call.reject(i, message, "give one entry for each normalized element"));
        }
    }
    Ok(vec![x])
}

/// The axes that a `layer_norm` normalizes, in the order of the tensor; all of them when none are named.
fn normalized_axes(call: &Call<'_>) -> Result<Vec<usize>, Reject> {
    let rank = call.ty(0)?.shape.len();
    let mut axes = if call.has(1) { call.axes(1, rank)? } else { (0..rank).collect() };
    axes.sort_unstable();
    Ok(axes)
}
