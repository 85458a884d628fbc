//! Ops that work element by element: arithmetic with broadcasting, functions of one number, `cast`.

use super::{ALL, Call, Cost, Domain, FLOATS, Lit, MOVABLE, NUMBERS, Need, OpDef, Reject, STRING, broadcast, constant, tensor};
use crate::ir::Type;

pub(super) const ADD: OpDef = binary("add", "`x + y`, broadcast.");
pub(super) const SUB: OpDef = binary("sub", "`x - y`, broadcast.");
pub(super) const MUL: OpDef = binary("mul", "`x * y`, broadcast.");
pub(super) const REAL_DIV: OpDef = binary("real_div", "`x / y`, broadcast.");
pub(super) const MAXIMUM: OpDef = binary("maximum", "The larger of `x` and `y`, broadcast.");
pub(super) const MINIMUM: OpDef = binary("minimum", "The smaller of `x` and `y`, broadcast.");
pub(super) const POW: OpDef = binary("pow", "`x` to the power `y`, broadcast.");

pub(super) const SIGMOID: OpDef = unary("sigmoid", "`1 / (1 + exp(-x))`.");
pub(super) const TANH: OpDef = unary("tanh", "Hyperbolic tangent.");
pub(super) const RELU: OpDef = unary("relu", "`max(x, 0)`.");
pub(super) const SILU: OpDef = unary("silu", "`x * sigmoid(x)`.");
pub(super) const EXP: OpDef = unary("exp", "`e` to the power `x`.");
pub(super) const SQRT: OpDef = unary("sqrt", "Square root.");

/// `epsilon`'s default is coremltools'; in fp16 it rounds to 0.
pub(super) const RSQRT: OpDef = OpDef {
    name: "rsqrt",
    doc: "`1 / sqrt(x + epsilon)`.",
    opsets: ALL,
    params: &[tensor("x", Domain::T(FLOATS)), constant("epsilon", Domain::U(FLOATS), Need::Default(Lit::Float(1e-12)))],
    infer: Some(infer_epsilon),
    cost: |call, out| Cost::each(call, out, 2),
};

/// `epsilon`'s default is coremltools'; in fp16 it rounds to 0.
pub(super) const LOG: OpDef = OpDef {
    name: "log",
    doc: "Natural logarithm of `x + epsilon`.",
    params: &[tensor("x", Domain::T(FLOATS)), constant("epsilon", Domain::U(FLOATS), Need::Default(Lit::Float(1e-45)))],
    ..RSQRT
};

/// Conversion of the element type, named by a string such as `fp16`.
pub(super) const CAST: OpDef = OpDef {
    name: "cast",
    doc: "`x` with elements of type `dtype`.",
    opsets: ALL,
    params: &[tensor("x", Domain::T(MOVABLE)), constant("dtype", STRING, Need::Required)],
    infer: Some(|call| {
        let word = call.text(1)?;
        match MOVABLE.iter().find(|d| d.word() == word) {
            Some(&dtype) => Ok(vec![Type { dtype, ..call.ty(0)? }]),
            None => Err(call.reject(1, format!("is \"{word}\""), "cast knows fp16, fp32, int32, int16, uint16, int8, uint8 and bool")),
        }
    }),
    cost: Cost::moves,
};

const fn binary(name: &'static str, doc: &'static str) -> OpDef {
    let params: &[super::Param] = const { &[tensor("x", Domain::T(NUMBERS)), tensor("y", Domain::T(NUMBERS))] };
    OpDef { name, doc, opsets: ALL, params, infer: Some(infer_binary), cost: one_flop }
}

const fn unary(name: &'static str, doc: &'static str) -> OpDef {
    let params: &[super::Param] = const { &[tensor("x", Domain::T(FLOATS))] };
    OpDef { name, doc, opsets: ALL, params, infer: Some(same), cost: one_flop }
}

fn infer_epsilon(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let epsilon = call.float(1)?;
    if !(epsilon >= 0.0 && epsilon.is_finite()) {
        return Err(call.reject(1, format!("is {epsilon}"), "give a small number that is not negative"));
    }
    same(call)
}

fn one_flop(call: &Call<'_>, results: &[Type]) -> Cost {
    Cost::each(call, results, 1)
}

fn same(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    Ok(vec![call.ty(0)?])
}

fn infer_binary(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let (x, y) = (call.ty(0)?, call.ty(1)?);
    match broadcast(&x.shape, &y.shape) {
        Some(shape) => Ok(vec![Type { dtype: x.dtype, shape }]),
        None => {
            let message = format!("has shape {:?} where x has {:?}", y.shape, x.shape);
            Err(call.reject(1, message, "axes, aligned at the last, must be equal or 1"))
        }
    }
}
