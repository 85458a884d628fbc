//! `matmul`.

use super::{ALL, BOOL, Call, Cost, Domain, Lit, NUMBERS, Need, OpDef, Reject, broadcast, constant, tensor};
use crate::ir::Type;

/// Batched matrix product over the last two axes; leading axes broadcast.
pub(super) const MATMUL: OpDef = OpDef {
    name: "matmul",
    doc: "Batched matrix product over the last two axes; leading axes broadcast.",
    opsets: ALL,
    params: &[
        tensor("x", Domain::T(NUMBERS)),
        tensor("y", Domain::T(NUMBERS)),
        constant("transpose_x", BOOL, Need::Default(Lit::False)),
        constant("transpose_y", BOOL, Need::Default(Lit::False)),
    ],
    infer: Some(infer),
    cost: |call, out| {
        let inner = call.ty(0).ok().and_then(|x| {
            let axis = x.shape.len().checked_sub(if call.flag(2).unwrap_or(false) { 2 } else { 1 })?;
            x.shape.get(axis).copied()
        });
        Cost::each(call, out, inner.unwrap_or(1).saturating_mul(2))
    },
};

fn infer(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
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
