//! Matrix products.

use super::{
    ALL, BOOL, Call, Cost, Domain, FROM_17, Lit, NUMBERS, Need, OpDef, Reject, STRING, TO_16, broadcast, constant, list, op, tensor,
};
use crate::ir::Type;

pub(super) const MATMUL_15: OpDef = op(
    "matmul",
    "Batched matrix product over the last two axes; leading axes broadcast.",
    TO_16,
    &[
        tensor("x", Domain::T(NUMBERS)),
        tensor("y", Domain::T(NUMBERS)),
        constant("transpose_x", BOOL, Need::Default(Lit::False)),
        constant("transpose_y", BOOL, Need::Default(Lit::False)),
    ],
    Some(matmul),
    cost,
);
pub(super) const MATMUL: OpDef = op(
    "matmul",
    "Batched matrix product over the last two axes; leading axes broadcast.",
    FROM_17,
    &[
        tensor("x", Domain::T(NUMBERS)),
        tensor("y", Domain::Free(NUMBERS)),
        constant("transpose_x", BOOL, Need::Default(Lit::False)),
        constant("transpose_y", BOOL, Need::Default(Lit::False)),
    ],
    Some(matmul),
    cost,
);
pub(super) const LINEAR_15: OpDef = op(
    "linear",
    "`x` times the transpose of `weight` [out, in], plus `bias` [out].",
    TO_16,
    &[
        tensor("x", Domain::T(NUMBERS)),
        constant("weight", Domain::T(NUMBERS), Need::Required),
        constant("bias", Domain::T(NUMBERS), Need::Optional),
    ],
    Some(linear),
    linear_cost,
);
pub(super) const LINEAR: OpDef = op(
    "linear",
    "`x` times the transpose of `weight` [out, in], plus `bias` [out].",
    FROM_17,
    &[
        tensor("x", Domain::T(NUMBERS)),
        constant("weight", Domain::U(NUMBERS), Need::Required),
        constant("bias", Domain::U(NUMBERS), Need::Optional),
    ],
    Some(linear),
    linear_cost,
);
pub(super) const EINSUM: OpDef = op(
    "einsum",
    "Sums of products as `equation` writes them.",
    ALL,
    &[list("values", Domain::T(NUMBERS)), constant("equation", STRING, Need::Required)],
    None,
    Cost::moves,
);

fn cost(call: &Call<'_>, out: &[Type]) -> Cost {
    let inner = call.ty(0).ok().and_then(|x| {
        let axis = x.shape.len().checked_sub(if call.flag(2).unwrap_or(false) { 2 } else { 1 })?;
        x.shape.get(axis).copied()
    });
    Cost::each(call, out, inner.unwrap_or(1).saturating_mul(2))
}

fn linear_cost(call: &Call<'_>, out: &[Type]) -> Cost {
    let inner = call.ty(0).ok().and_then(|x| x.shape.last().copied()).unwrap_or(1);
    let one = Cost::each(call, out, inner.saturating_mul(2).saturating_add(u64::from(call.has(2))));
    let weight = call.ty(1).map_or(0, |w| w.bytes());
    Cost { bytes: one.bytes.saturating_add(weight), ..one }
}

fn linear(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let (x, weight) = (call.ty(0)?, call.ty(1)?.shape);
    let &[out, inner] = weight.as_slice() else {
        return Err(call.reject(1, format!("has rank {}", weight.len()), "weight is [out, in]"));
    };
    let mut shape = x.shape;
    match shape.last_mut() {
        Some(last) if *last == inner => *last = out,
        _ => return Err(call.reject(1, format!("takes {inner} elements where x has shape {shape:?}"), "the last axis of x is `in`")),
    }
    if call.has(2) && call.ty(2)?.shape != [out] {
        return Err(call.reject(2, format!("has shape {:?}", call.ty(2)?.shape), "bias is [out]"));
    }
    Ok(vec![Type { dtype: x.dtype, shape }])
}

fn matmul(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let (x, y) = (call.ty(0)?, call.ty(1)?);
    let split = |i: usize, t: &Type, flip: bool| match t.shape.as_slice() {
        [batch @ .., rows, cols] => Ok((batch.to_vec(), if flip { (*cols, *rows) } else { (*rows, *cols) })),
        short => Err(call.reject(i, format!("has rank {}", short.len()), "matmul wants at least two axes: expand_dims first")),
    };
    let (batch_x, (m, k)) = split(0, &x, call.flag(2)?)?;
    let (batch_y, (inner, n)) = split(1, &y, call.flag(3)?)?;
    if k != inner {
        return Err(call.reject(1, format!("has inner length {inner} where x has {k}"), "check transpose_x and transpose_y"));
    }
    let Some(mut shape) = broadcast(&batch_x, &batch_y) else {
        let message = format!("has leading axes {batch_y:?} where x has {batch_x:?}");
        return Err(call.reject(1, message, "leading axes must be equal or 1"));
    };
    shape.extend([m, n]);
    Ok(vec![Type { dtype: x.dtype, shape }])
}
