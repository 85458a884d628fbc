//! `scaled_dot_product_attention`: on the chip its mask is ignored (ane-facts 5.2), and programs of this project spell it out.

use super::{Call, Cost, Domain, FLOATS, FROM_18, OpDef, Reject, broadcast, op, optional, tensor};
use crate::ir::{DType, Type};

pub(super) const SCALED_DOT_PRODUCT_ATTENTION: OpDef = op(
    "scaled_dot_product_attention",
    "`softmax(query * key^T / sqrt(E) + attn_mask) * value` over the last two axes; a boolean mask keeps where true.",
    FROM_18,
    &[
        tensor("query", Domain::T(FLOATS)),
        tensor("key", Domain::T(FLOATS)),
        tensor("value", Domain::T(FLOATS)),
        optional("attn_mask", Domain::Free(&[DType::Bool, DType::F16, DType::F32])),
    ],
    Some(infer),
    cost,
);

fn cost(call: &Call<'_>, out: &[Type]) -> Cost {
    let dims = |i: usize| call.ty(i).ok().and_then(|t| Some((*t.shape.iter().nth_back(1)?, *t.shape.last()?)));
    let (Some((_, e)), Some((s, v))) = (dims(0), dims(2)) else { return Cost::moves(call, out) };
    // One row of the result: a row of scores, its softmax, and the sum of `s` rows of values.
    let row = s.saturating_mul(e.saturating_add(v).saturating_mul(2).saturating_add(5));
    let rows = out.iter().map(|t| t.numel() as u64 / v.max(1)).fold(0, u64::saturating_add);
    Cost { flops: rows.saturating_mul(row), ..Cost::moves(call, out) }
}

fn infer(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let query = call.ty(0)?;
    let parts = |i: usize| {
        let shape = call.ty(i)?.shape;
        match shape.as_slice() {
            [batch @ .., rows, cols] if shape.len() == query.shape.len() && !batch.is_empty() => Ok((batch.to_vec(), *rows, *cols)),
            _ => Err(call.reject(i, format!("has shape {shape:?}"), "query, key and value have the same rank, 3 or more")),
        }
    };
    let ((batch_q, l, e), (batch_k, s, ek), (batch_v, sv, ev)) = (parts(0)?, parts(1)?, parts(2)?);
    if ek != e {
        return Err(call.reject(1, format!("has rows of length {ek} where query has {e}"), "query and key must agree in the last axis"));
    }
    if sv != s {
        return Err(call.reject(2, format!("has {sv} rows where key has {s}"), "key and value must agree in the axis before the last"));
    }
    for (i, batch) in [(1, &batch_k), (2, &batch_v)] {
        if *batch != batch_q {
            let message = format!("has leading axes {batch:?} where query has {batch_q:?}");
            return Err(call.reject(i, message, "leading axes must be equal: tile key and value"));
        }
    }
    let with = |tail: [u64; 2]| [batch_q.as_slice(), &tail].concat();
    if call.has(3) {
        let (mask, scores) = (call.ty(3)?.shape, with([l, s]));
        if broadcast(&mask, &scores).as_ref() != Some(&scores) {
            return Err(call.reject(
                3,
                format!("has shape {mask:?} where scores have {scores:?}"),
                "the mask must broadcast to the scores",
            ));
        }
    }
    Ok(vec![Type { dtype: query.dtype, shape: with([l, ev]) }])
}
