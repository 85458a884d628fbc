//! Numbers to bytes and back, while a program runs.

use super::{BYTES, Call, Domain, FLOATS, FROM_17, I32, Need, OpDef, Reject, STRING, constant, op, tensor, two_flops};
use crate::ir::Type;

pub(super) const QUANTIZE: OpDef = op(
    "quantize",
    "`round(input / scale) + zero_point`, clamped to the range of `output_dtype`.",
    FROM_17,
    &[
        tensor("input", Domain::T(FLOATS)),
        constant("zero_point", Domain::Free(BYTES), Need::Optional),
        constant("scale", Domain::T(FLOATS), Need::Required),
        constant("axis", I32, Need::Optional),
        constant("output_dtype", STRING, Need::Required),
    ],
    Some(quantize),
    two_flops,
);
pub(super) const DEQUANTIZE: OpDef = op(
    "dequantize",
    "`(input - zero_point) * scale`.",
    FROM_17,
    &[
        tensor("input", Domain::T(BYTES)),
        constant("zero_point", Domain::T(BYTES), Need::Optional),
        constant("scale", Domain::Free(FLOATS), Need::Required),
        constant("axis", I32, Need::Optional),
    ],
    Some(dequantize),
    two_flops,
);

/// `scale` and `zero_point` are scalars without `axis`, or vectors as long as the axis.
fn check_scale(call: &Call<'_>) -> Result<Type, Reject> {
    let (input, scale) = (call.ty(0)?, call.ty(2)?.shape);
    let wanted = match (scale.as_slice(), call.has(3)) {
        ([], false) => vec![],
        ([_], true) => vec![input.shape[call.axis(3, input.shape.len())?]],
        ([], true) => return Err(call.reject(3, "is given where scale is a scalar", "leave it out, or give vectors")),
        _ => return Err(call.reject(2, format!("has shape {scale:?} and axis is missing or useless"), "a scalar, or a vector and axis")),
    };
    for i in [1, 2] {
        if call.has(i) && call.ty(i)?.shape != wanted {
            return Err(call.reject(i, format!("has shape {:?}, not {wanted:?}", call.ty(i)?.shape), "one entry along the axis"));
        }
    }
    Ok(input)
}

fn quantize(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let input = check_scale(call)?;
    let word = call.text(4)?;
    let Some(dtype) = BYTES.iter().copied().find(|d| d.word() == word) else {
        return Err(call.reject(4, format!("is \"{word}\""), "use int8 or uint8"));
    };
    if call.has(1) && call.ty(1)?.dtype != dtype {
        return Err(call.reject(1, format!("has elements of {} where output_dtype is {word}", call.ty(1)?.dtype), "they must agree"));
    }
    Ok(vec![Type { dtype, shape: input.shape }])
}

fn dequantize(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    Ok(vec![Type { dtype: call.ty(2)?.dtype, shape: check_scale(call)?.shape }])
}
