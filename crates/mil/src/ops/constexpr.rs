//! Constants kept in a smaller form and decoded when a program is compiled.

use super::{
    BYTES, Call, Cost, Domain, FLOATS, FROM_16, FROM_18, I32, NARROW, Need, ONLY_16_17, OpDef, PALETTE, Reject, STRING, TABLE, constant, op,
};
use crate::ir::{DType, Type};

pub(super) const CONSTEXPR_AFFINE_DEQUANTIZE: OpDef = op(
    "constexpr_affine_dequantize",
    "A constant: `(quantized_data - zero_point) * scale`, along `axis` where they are vectors.",
    FROM_16,
    &[
        constant("quantized_data", Domain::Free(BYTES), Need::Required),
        constant("zero_point", Domain::Free(&[DType::F32, DType::I8, DType::U8]), Need::Required),
        constant("scale", Domain::Free(FLOATS), Need::Required),
        constant("axis", I32, Need::Required),
    ],
    Some(affine),
    decoded,
);
pub(super) const CONSTEXPR_BLOCKWISE_SHIFT_SCALE: OpDef = op(
    "constexpr_blockwise_shift_scale",
    "A constant: `(data - offset) * scale`, both repeated over blocks of `data`.",
    FROM_18,
    &[
        constant("data", Domain::Free(NARROW), Need::Required),
        constant("scale", Domain::Free(FLOATS), Need::Required),
        constant("offset", Domain::Free(NARROW), Need::Optional),
    ],
    Some(blockwise),
    decoded,
);
pub(super) const CONSTEXPR_CAST: OpDef = op(
    "constexpr_cast",
    "A constant of another element type.",
    FROM_16,
    &[constant("source_val", Domain::Free(&[DType::F16]), Need::Required), constant("output_dtype", STRING, Need::Required)],
    Some(cast),
    decoded,
);
pub(super) const CONSTEXPR_LUT_TO_DENSE_16: OpDef = op(
    "constexpr_lut_to_dense",
    "A constant: entries of `lut` at `indices`.",
    ONLY_16_17,
    &[
        constant("indices", Domain::Free(&[DType::U8]), Need::Required),
        constant("lut", Domain::T(TABLE), Need::Required),
        constant("shape", Domain::Free(&[DType::U32]), Need::Required),
    ],
    Some(lut),
    decoded,
);
pub(super) const CONSTEXPR_LUT_TO_DENSE: OpDef = op(
    "constexpr_lut_to_dense",
    "A constant: entries of `lut` at `indices`.",
    FROM_18,
    &[
        constant("indices", Domain::Free(PALETTE), Need::Required),
        constant("lut", Domain::T(TABLE), Need::Required),
        constant("vector_axis", I32, Need::Optional),
    ],
    Some(lut),
    decoded,
);
pub(super) const CONSTEXPR_LUT_TO_SPARSE: OpDef = op(
    "constexpr_lut_to_sparse",
    "A sparse constant: entries of `lut` at `indices_nonzero_data` where `indices_mask` is set.",
    FROM_18,
    &[
        constant("indices_mask", Domain::Free(&[DType::U1]), Need::Required),
        constant("indices_nonzero_data", Domain::Free(PALETTE), Need::Required),
        constant("lut", Domain::T(TABLE), Need::Required),
        constant("vector_axis", I32, Need::Optional),
    ],
    None,
    decoded,
);
pub(super) const CONSTEXPR_SPARSE_BLOCKWISE_SHIFT_SCALE: OpDef = op(
    "constexpr_sparse_blockwise_shift_scale",
    "A sparse constant: `(nonzero_data - offset) * scale` where `data_mask` is set.",
    FROM_18,
    &[
        constant("data_mask", Domain::Free(&[DType::U1]), Need::Required),
        constant("nonzero_data", Domain::Free(NARROW), Need::Required),
        constant("scale", Domain::Free(FLOATS), Need::Required),
        constant("offset", Domain::Free(NARROW), Need::Optional),
    ],
    Some(sparse_blockwise),
    decoded,
);
pub(super) const CONSTEXPR_SPARSE_TO_DENSE_16: OpDef = op(
    "constexpr_sparse_to_dense",
    "A constant: `nonzero_data`, in order, where `mask` is set, zeros elsewhere.",
    ONLY_16_17,
    &[
        constant("nonzero_data", Domain::T(TABLE), Need::Required),
        constant("mask", Domain::Free(&[DType::U8]), Need::Required),
        constant("shape", Domain::Free(&[DType::U32]), Need::Required),
    ],
    Some(sparse),
    decoded,
);
pub(super) const CONSTEXPR_SPARSE_TO_DENSE: OpDef = op(
    "constexpr_sparse_to_dense",
    "A constant: `nonzero_data`, in order, where `mask` is set, zeros elsewhere.",
    FROM_18,
    &[constant("nonzero_data", Domain::T(NARROW), Need::Required), constant("mask", Domain::Free(&[DType::U1]), Need::Required)],
    Some(sparse),
    decoded,
);

/// What is decoded is read once and written once.
fn decoded(call: &Call<'_>, results: &[Type]) -> Cost {
    let given = (0..call.def.params.len()).filter(|&i| call.has(i)).filter_map(|i| call.ty(i).ok()).map(|t| t.bytes());
    Cost { flops: 0, bytes: given.chain(results.iter().map(Type::bytes)).fold(0, u64::saturating_add) }
}

fn affine(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let data = call.ty(0)?;
    let axis = call.axis(3, data.shape.len())?;
    for i in [1, 2] {
        let shape = call.ty(i)?.shape;
        if !(shape.is_empty() || shape == [data.shape[axis]]) {
            let message = format!("has shape {shape:?} where axis {axis} has {} elements", data.shape[axis]);
            return Err(call.reject(i, message, "a scalar, or one entry along the axis"));
        }
    }
    Ok(vec![Type { dtype: call.ty(2)?.dtype, shape: data.shape }])
}

/// `scale` and `offset` have as many axes as `data`, each dividing its.
fn check_blocks(call: &Call<'_>, data: &[u64], params: [usize; 2]) -> Result<DType, Reject> {
    for i in params.into_iter().filter(|&i| call.has(i)) {
        let shape = call.ty(i)?.shape;
        if shape.len() != data.len() || shape.iter().zip(data).any(|(s, d)| *s == 0 || d % s != 0) {
            return Err(call.reject(i, format!("has shape {shape:?} where data has {data:?}"), "each axis divides that of data"));
        }
    }
    Ok(call.ty(params[0])?.dtype)
}

fn blockwise(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let shape = call.ty(0)?.shape;
    Ok(vec![Type { dtype: check_blocks(call, &shape, [1, 2])?, shape }])
}

fn sparse_blockwise(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let (mask, nonzero) = (call.ty(0)?, call.ty(1)?.shape);
    let dtype = check_blocks(call, &mask.shape, [2, 3])?;
    Ok(vec![mask, Type { dtype, shape: nonzero }])
}

fn cast(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    match call.text(1)?.as_str() {
        "fp32" => Ok(vec![Type { dtype: DType::F32, shape: call.ty(0)?.shape }]),
        other => Err(call.reject(1, format!("is \"{other}\""), "use fp32")),
    }
}

/// Before iOS 18 `shape` is given and everything else is flat and packed; since then the shape is that of `indices`.
fn lut(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let (indices, lut) = (call.ty(0)?, call.ty(1)?);
    if call.def.params[2].name == "shape" {
        let shape = dense_shape(call, 2)?;
        let entries = *vector(call, 1)?.first().unwrap_or(&0);
        if !matches!(entries, 2 | 4 | 16 | 64 | 256) {
            return Err(call.reject(1, format!("has {entries} entries"), "give 2, 4, 16, 64 or 256"));
        }
        let bits = shape.iter().copied().fold(1, u64::saturating_mul).saturating_mul(u64::from(entries.trailing_zeros()));
        if vector(call, 0)? != [bits.div_ceil(8)] {
            let message = format!("has shape {:?} where {} bytes are wanted", indices.shape, bits.div_ceil(8));
            return Err(call.reject(0, message, "indices are packed from the low bits of each byte up"));
        }
        return Ok(vec![Type { dtype: lut.dtype, shape }]);
    }
    let fits = match lut.shape.as_slice() {
        [groups @ .., entries, _] if groups.len() == indices.shape.len() => {
            groups.iter().zip(&indices.shape).all(|(g, n)| *g != 0 && n % g == 0)
                && 1u64.checked_shl(indices.dtype.bits() as u32) == Some(*entries)
        }
        _ => false,
    };
    let Some(&size) = lut.shape.last().filter(|_| fits && !indices.shape.is_empty()) else {
        let message = format!("has shape {:?} where indices are {indices}", lut.shape);
        return Err(call.reject(1, message, "lut is [groups of each axis…, 2^bits, vector]"));
    };
    let mut shape = indices.shape;
    if size > 1 || call.has(2) {
        let axis = call.axis(2, shape.len())?;
        shape[axis] = shape[axis].saturating_mul(size);
    }
    Ok(vec![Type { dtype: lut.dtype, shape }])
}

/// Before iOS 18 `mask` is packed in bytes and `shape` is given; since then `mask` has the shape.
fn sparse(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let (nonzero, mask) = (call.ty(0)?, call.ty(1)?);
    vector(call, 0)?;
    if call.def.params.len() == 2 {
        return Ok(vec![Type { dtype: nonzero.dtype, shape: mask.shape }]);
    }
    let shape = dense_shape(call, 2)?;
    let bytes = shape.iter().copied().fold(1, u64::saturating_mul).div_ceil(8);
    if vector(call, 1)? != [bytes] {
        return Err(call.reject(1, format!("has shape {:?} where {bytes} bytes are wanted", mask.shape), "one bit for each element"));
    }
    Ok(vec![Type { dtype: nonzero.dtype, shape }])
}

fn vector(call: &Call<'_>, i: usize) -> Result<Vec<u64>, Reject> {
    let shape = call.ty(i)?.shape;
    if shape.len() == 1 { Ok(shape) } else { Err(call.reject(i, format!("has rank {}", shape.len()), "give a vector")) }
}

fn dense_shape(call: &Call<'_>, i: usize) -> Result<Vec<u64>, Reject> {
    let given = call.ints(i)?;
    match given.iter().map(|&n| u64::try_from(n).ok().filter(|&n| n > 0)).collect() {
        Some(shape) => Ok(shape),
        None => Err(call.reject(i, format!("is {given:?}"), "lengths are positive")),
    }
}
