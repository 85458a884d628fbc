//! Functions of two numbers, element by element, broadcast; comparisons, logic, `select`.

use super::{ALL, BOOL, Call, Cost, Domain, MOVABLE_15, NUMBERS, OpDef, Param, Reject, broadcast, one_flop, op, tensor};
use crate::ir::{DType, Type};

const X_Y_NUMBER: &[Param] = &[tensor("x", Domain::T(NUMBERS)), tensor("y", Domain::T(NUMBERS))];
const X_Y: &[Param] = &[tensor("x", Domain::T(&[DType::Bool])), tensor("y", Domain::T(&[DType::Bool]))];

pub(super) const ADD: OpDef = op("add", "`x + y`, broadcast.", ALL, X_Y_NUMBER, Some(arithmetic), one_flop);
pub(super) const SUB: OpDef = op("sub", "`x - y`, broadcast.", ALL, X_Y_NUMBER, Some(arithmetic), one_flop);
pub(super) const MUL: OpDef = op("mul", "`x * y`, broadcast.", ALL, X_Y_NUMBER, Some(arithmetic), one_flop);
pub(super) const REAL_DIV: OpDef = op("real_div", "`x / y`, broadcast.", ALL, X_Y_NUMBER, Some(arithmetic), one_flop);
pub(super) const FLOOR_DIV: OpDef = op("floor_div", "`floor(x / y)`, broadcast.", ALL, X_Y_NUMBER, Some(arithmetic), one_flop);
pub(super) const MOD: OpDef = op("mod", "`x - y * floor(x / y)`, broadcast.", ALL, X_Y_NUMBER, Some(arithmetic), one_flop);
pub(super) const MAXIMUM: OpDef = op("maximum", "The larger of `x` and `y`, broadcast.", ALL, X_Y_NUMBER, Some(arithmetic), one_flop);
pub(super) const MINIMUM: OpDef = op("minimum", "The smaller of `x` and `y`, broadcast.", ALL, X_Y_NUMBER, Some(arithmetic), one_flop);
pub(super) const POW: OpDef = op("pow", "`x` to the power `y`, broadcast.", ALL, X_Y_NUMBER, Some(arithmetic), one_flop);
pub(super) const EQUAL: OpDef = op("equal", "Whether `x = y`, broadcast.", ALL, X_Y_NUMBER, Some(comparison), one_flop);
pub(super) const NOT_EQUAL: OpDef =
    op("not_equal", "Whether `x` differs from `y`, broadcast.", ALL, X_Y_NUMBER, Some(comparison), one_flop);
pub(super) const GREATER: OpDef = op("greater", "Whether `x > y`, broadcast.", ALL, X_Y_NUMBER, Some(comparison), one_flop);
pub(super) const GREATER_EQUAL: OpDef = op("greater_equal", "Whether `x >= y`, broadcast.", ALL, X_Y_NUMBER, Some(comparison), one_flop);
pub(super) const LESS: OpDef = op("less", "Whether `x < y`, broadcast.", ALL, X_Y_NUMBER, Some(comparison), one_flop);
pub(super) const LESS_EQUAL: OpDef = op("less_equal", "Whether `x <= y`, broadcast.", ALL, X_Y_NUMBER, Some(comparison), one_flop);
pub(super) const LOGICAL_AND: OpDef = op("logical_and", "Whether both hold, broadcast.", ALL, X_Y, Some(comparison), one_flop);
pub(super) const LOGICAL_OR: OpDef = op("logical_or", "Whether one of both holds, broadcast.", ALL, X_Y, Some(comparison), one_flop);
pub(super) const LOGICAL_XOR: OpDef =
    op("logical_xor", "Whether exactly one of both holds, broadcast.", ALL, X_Y, Some(comparison), one_flop);
pub(super) const SELECT: OpDef = op(
    "select",
    "`a` where `cond` holds, `b` elsewhere, broadcast.",
    ALL,
    &[tensor("cond", BOOL), tensor("a", Domain::T(MOVABLE_15)), tensor("b", Domain::T(MOVABLE_15))],
    Some(choice),
    Cost::moves,
);

fn arithmetic(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    Ok(vec![Type { dtype: call.ty(0)?.dtype, shape: joined(call, &[0, 1])? }])
}

fn comparison(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    Ok(vec![Type { dtype: DType::Bool, shape: joined(call, &[0, 1])? }])
}

fn choice(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    Ok(vec![Type { dtype: call.ty(1)?.dtype, shape: joined(call, &[0, 1, 2])? }])
}

/// The shape that all parameters broadcast to.
fn joined(call: &Call<'_>, params: &[usize]) -> Result<Vec<u64>, Reject> {
    let mut all = Vec::new();
    for (n, &i) in params.iter().enumerate() {
        let shape = call.ty(i)?.shape;
        match broadcast(&all, &shape) {
            Some(shape) => all = shape,
            None => {
                let others: Vec<&str> = params[..n].iter().map(|&i| call.def.params[i].name).collect();
                let message = format!("has shape {shape:?} where {} has {all:?}", others.join(" with "));
                return Err(call.reject(i, message, "axes, aligned at the last, must be equal or 1"));
            }
        }
    }
    Ok(all)
}
