//! Activations.

use super::{
    ALL, Call, Domain, FLOATS, FROM_17, Lit, Need, OpDef, Param, Reject, STRING, TO_16, constant, one_flop, op, per_channel, same, tensor,
};
use crate::ir::Type;

const X_FLOAT: &[Param] = &[tensor("x", Domain::T(FLOATS))];
const X_ALPHA_BETA_FLOAT: &[Param] = &[
    tensor("x", Domain::T(FLOATS)),
    constant("alpha", Domain::T(FLOATS), Need::Required),
    constant("beta", Domain::T(FLOATS), Need::Required),
];
const X_ALPHA_BETA_FLOAT_B: &[Param] = &[
    tensor("x", Domain::T(FLOATS)),
    constant("alpha", Domain::U(FLOATS), Need::Required),
    constant("beta", Domain::U(FLOATS), Need::Required),
];
const X_ALPHA_FLOAT: &[Param] = &[tensor("x", Domain::T(FLOATS)), constant("alpha", Domain::T(FLOATS), Need::Required)];
const X_ALPHA_FLOAT_B: &[Param] = &[tensor("x", Domain::T(FLOATS)), constant("alpha", Domain::Free(FLOATS), Need::Required)];

pub(super) const SIGMOID: OpDef = op("sigmoid", "`1 / (1 + exp(-x))`.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const RELU: OpDef = op("relu", "`max(x, 0)`.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const RELU6: OpDef = op("relu6", "`min(max(x, 0), 6)`.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const SILU: OpDef = op("silu", "`x * sigmoid(x)`.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const SOFTPLUS: OpDef = op("softplus", "`log(1 + exp(x))`.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const SOFTSIGN: OpDef = op("softsign", "`x / (1 + abs(x))`.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const CLAMPED_RELU_15: OpDef = op(
    "clamped_relu",
    "`x` where it is not negative, `alpha * x` elsewhere; at most `beta`.",
    TO_16,
    X_ALPHA_BETA_FLOAT,
    Some(same),
    one_flop,
);
pub(super) const CLAMPED_RELU: OpDef = op(
    "clamped_relu",
    "`x` where it is not negative, `alpha * x` elsewhere; at most `beta`.",
    FROM_17,
    X_ALPHA_BETA_FLOAT_B,
    Some(same),
    one_flop,
);
pub(super) const ELU_15: OpDef =
    op("elu", "`x` where it is not negative, `alpha * (exp(x) - 1)` elsewhere.", TO_16, X_ALPHA_FLOAT, Some(same), one_flop);
pub(super) const ELU: OpDef =
    op("elu", "`x` where it is not negative, `alpha * (exp(x) - 1)` elsewhere.", FROM_17, X_ALPHA_FLOAT_B, Some(same), one_flop);
pub(super) const LEAKY_RELU_15: OpDef =
    op("leaky_relu", "`x` where it is not negative, `alpha * x` elsewhere.", TO_16, X_ALPHA_FLOAT, Some(same), one_flop);
pub(super) const LEAKY_RELU: OpDef =
    op("leaky_relu", "`x` where it is not negative, `alpha * x` elsewhere.", FROM_17, X_ALPHA_FLOAT_B, Some(same), one_flop);
pub(super) const LINEAR_ACTIVATION_15: OpDef =
    op("linear_activation", "`alpha * x + beta`.", TO_16, X_ALPHA_BETA_FLOAT, Some(same), one_flop);
pub(super) const LINEAR_ACTIVATION: OpDef =
    op("linear_activation", "`alpha * x + beta`.", FROM_17, X_ALPHA_BETA_FLOAT_B, Some(same), one_flop);
pub(super) const SCALED_TANH_15: OpDef = op("scaled_tanh", "`alpha * tanh(beta * x)`.", TO_16, X_ALPHA_BETA_FLOAT, Some(same), one_flop);
pub(super) const SCALED_TANH: OpDef = op("scaled_tanh", "`alpha * tanh(beta * x)`.", FROM_17, X_ALPHA_BETA_FLOAT_B, Some(same), one_flop);
pub(super) const SIGMOID_HARD_15: OpDef =
    op("sigmoid_hard", "`min(max(alpha * x + beta, 0), 1)`.", TO_16, X_ALPHA_BETA_FLOAT, Some(same), one_flop);
pub(super) const SIGMOID_HARD: OpDef =
    op("sigmoid_hard", "`min(max(alpha * x + beta, 0), 1)`.", FROM_17, X_ALPHA_BETA_FLOAT_B, Some(same), one_flop);
pub(super) const THRESHOLDED_RELU_15: OpDef =
    op("thresholded_relu", "`x` where it is `alpha` or more, 0 elsewhere.", TO_16, X_ALPHA_FLOAT, Some(same), one_flop);
pub(super) const THRESHOLDED_RELU: OpDef =
    op("thresholded_relu", "`x` where it is `alpha` or more, 0 elsewhere.", FROM_17, X_ALPHA_FLOAT_B, Some(same), one_flop);
pub(super) const GELU: OpDef = op(
    "gelu",
    "`x * P(X <= x)` of the normal distribution: `EXACT`, `TANH_APPROXIMATION` or `SIGMOID_APPROXIMATION`.",
    ALL,
    &[tensor("x", Domain::T(FLOATS)), constant("mode", STRING, Need::Default(Lit::Text("EXACT")))],
    Some(infer_gelu),
    one_flop,
);
pub(super) const PRELU_15: OpDef = op(
    "prelu",
    "`x` where it is not negative, `alpha[c] * x` elsewhere, by channel.",
    TO_16,
    X_ALPHA_FLOAT,
    Some(|call| per_channel(call, &[1])),
    one_flop,
);
pub(super) const PRELU: OpDef = op(
    "prelu",
    "`x` where it is not negative, `alpha[c] * x` elsewhere, by channel.",
    FROM_17,
    X_ALPHA_FLOAT_B,
    Some(|call| per_channel(call, &[1])),
    one_flop,
);
pub(super) const SOFTPLUS_PARAMETRIC_15: OpDef = op(
    "softplus_parametric",
    "`alpha[c] * log(1 + exp(beta[c] * x))`, by channel.",
    TO_16,
    X_ALPHA_BETA_FLOAT,
    Some(|call| per_channel(call, &[1, 2])),
    one_flop,
);
pub(super) const SOFTPLUS_PARAMETRIC: OpDef = op(
    "softplus_parametric",
    "`alpha[c] * log(1 + exp(beta[c] * x))`, by channel.",
    FROM_17,
    X_ALPHA_BETA_FLOAT_B,
    Some(|call| per_channel(call, &[1, 2])),
    one_flop,
);

fn infer_gelu(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let mode = call.text(1)?;
    if !["EXACT", "TANH_APPROXIMATION", "SIGMOID_APPROXIMATION"].contains(&mode.as_str()) {
        return Err(call.reject(1, format!("is \"{mode}\""), "use EXACT, TANH_APPROXIMATION or SIGMOID_APPROXIMATION"));
    }
    same(call)
}
