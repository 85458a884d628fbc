//! Functions of one number, element by element; `cast`.

use super::{
    ALL, BOOL, Call, Cost, Domain, FLOATS, FROM_17, Lit, MOVABLE, MOVABLE_15, NUMBERS, Need, OpDef, Param, Reject, STRING, TO_16, constant,
    one_flop, op, same, tensor, two_flops,
};
use crate::ir::{Opset, Type};

const X_NUMBER: &[Param] = &[tensor("x", Domain::T(NUMBERS))];
const X_FLOAT: &[Param] = &[tensor("x", Domain::T(FLOATS))];

pub(super) const ABS: OpDef = op("abs", "Absolute value.", ALL, X_NUMBER, Some(same), one_flop);
pub(super) const ACOS: OpDef = op("acos", "Arc cosine.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const ASIN: OpDef = op("asin", "Arc sine.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const ATAN: OpDef = op("atan", "Arc tangent.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const ATANH: OpDef = op("atanh", "Inverse hyperbolic tangent.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const CEIL: OpDef = op("ceil", "The nearest whole number that is not below `x`.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const COS: OpDef = op("cos", "Cosine.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const COSH: OpDef = op("cosh", "Hyperbolic cosine.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const ERF: OpDef = op("erf", "Gauss error function.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const EXP: OpDef = op("exp", "`e` to the power `x`.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const EXP2: OpDef = op("exp2", "2 to the power `x`.", ALL, X_NUMBER, Some(same), one_flop);
pub(super) const FLOOR: OpDef = op("floor", "The nearest whole number that is not above `x`.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const ROUND: OpDef = op("round", "The nearest whole number; ties to even.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const SIGN: OpDef = op("sign", "-1, 0 or 1, as `x` is negative, zero or positive.", ALL, X_NUMBER, Some(same), one_flop);
pub(super) const SIN: OpDef = op("sin", "Sine.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const SINH: OpDef = op("sinh", "Hyperbolic sine.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const SQRT: OpDef = op("sqrt", "Square root.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const SQUARE: OpDef = op("square", "`x * x`.", ALL, X_NUMBER, Some(same), one_flop);
pub(super) const TAN: OpDef = op("tan", "Tangent.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const TANH: OpDef = op("tanh", "Hyperbolic tangent.", ALL, X_FLOAT, Some(same), one_flop);
pub(super) const LOGICAL_NOT: OpDef = op("logical_not", "`true` where `x` is false.", ALL, &[tensor("x", BOOL)], Some(same), one_flop);
pub(super) const INVERSE_15: OpDef = op(
    "inverse",
    "`1 / (x + epsilon)`.",
    TO_16,
    &[tensor("x", Domain::T(FLOATS)), constant("epsilon", Domain::T(FLOATS), Need::Default(Lit::Float(1e-4)))],
    Some(infer_epsilon),
    two_flops,
);
pub(super) const INVERSE: OpDef = op(
    "inverse",
    "`1 / (x + epsilon)`.",
    FROM_17,
    &[tensor("x", Domain::T(FLOATS)), constant("epsilon", Domain::Free(FLOATS), Need::Default(Lit::Float(1e-4)))],
    Some(infer_epsilon),
    two_flops,
);
pub(super) const RSQRT_15: OpDef = op(
    "rsqrt",
    "`1 / sqrt(x + epsilon)`.",
    TO_16,
    &[tensor("x", Domain::T(FLOATS)), constant("epsilon", Domain::T(FLOATS), Need::Default(Lit::Float(1e-12)))],
    Some(infer_epsilon),
    two_flops,
);
pub(super) const RSQRT: OpDef = op(
    "rsqrt",
    "`1 / sqrt(x + epsilon)`.",
    FROM_17,
    &[tensor("x", Domain::T(FLOATS)), constant("epsilon", Domain::Free(FLOATS), Need::Default(Lit::Float(1e-12)))],
    Some(infer_epsilon),
    two_flops,
);
pub(super) const LOG_15: OpDef = op(
    "log",
    "Natural logarithm of `x + epsilon`.",
    TO_16,
    &[tensor("x", Domain::T(FLOATS)), constant("epsilon", Domain::T(FLOATS), Need::Default(Lit::Float(1e-45)))],
    Some(infer_epsilon),
    two_flops,
);
pub(super) const LOG: OpDef = op(
    "log",
    "Natural logarithm of `x + epsilon`.",
    FROM_17,
    &[tensor("x", Domain::T(FLOATS)), constant("epsilon", Domain::Free(FLOATS), Need::Default(Lit::Float(1e-45)))],
    Some(infer_epsilon),
    two_flops,
);
pub(super) const CLIP: OpDef = op(
    "clip",
    "`min(max(x, alpha), beta)`.",
    ALL,
    &[
        tensor("x", Domain::T(FLOATS)),
        constant("alpha", Domain::T(FLOATS), Need::Required),
        constant("beta", Domain::T(FLOATS), Need::Required),
    ],
    Some(infer_clip),
    two_flops,
);
pub(super) const THRESHOLD: OpDef = op(
    "threshold",
    "`max(x, alpha)`.",
    ALL,
    &[tensor("x", Domain::T(NUMBERS)), constant("alpha", Domain::T(NUMBERS), Need::Required)],
    Some(same),
    one_flop,
);
pub(super) const CAST_15: OpDef = op(
    "cast",
    "`x` with elements of type `dtype`.",
    TO_16,
    &[tensor("x", Domain::T(MOVABLE_15)), constant("dtype", STRING, Need::Required)],
    Some(infer_cast),
    Cost::moves,
);
pub(super) const CAST: OpDef = op(
    "cast",
    "`x` with elements of type `dtype`.",
    FROM_17,
    &[tensor("x", Domain::T(MOVABLE)), constant("dtype", STRING, Need::Required)],
    Some(infer_cast),
    Cost::moves,
);

fn infer_epsilon(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let epsilon = call.float(1)?;
    if !(epsilon >= 0.0 && epsilon.is_finite()) {
        return Err(call.reject(1, format!("is {epsilon}"), "give a small number that is not negative"));
    }
    same(call)
}

fn infer_clip(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let (alpha, beta) = (call.float(1)?, call.float(2)?);
    if alpha > beta {
        return Err(call.reject(2, format!("is {beta} where alpha is {alpha}"), "alpha is the lower end, beta the upper"));
    }
    same(call)
}

fn infer_cast(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let word = call.text(1)?;
    let known = if call.function.opset >= Opset::Ios17 { MOVABLE } else { MOVABLE_15 };
    match known.iter().find(|d| d.word() == word) {
        Some(&dtype) => Ok(vec![Type { dtype, ..call.ty(0)? }]),
        None if call.function.opset >= Opset::Ios17 => {
            Err(call.reject(1, format!("is \"{word}\""), "cast knows fp16, fp32, int32, int16, uint16, int8, uint8 and bool"))
        }
        None => Err(call.reject(1, format!("is \"{word}\""), "cast knows fp16, fp32, int32 and bool before ios17")),
    }
}
