//! Constants as fp16 elements.

use cpu::f16;
use mil::{Blobs, DType, Literal};
use std::sync::Arc;

/// The elements of a constant, row-major.
pub(super) fn decode(literal: &Literal, blobs: &Blobs) -> Result<Arc<[f16]>, String> {
    match literal {
        // An `epsilon` may be written in fp32; it is rounded like everything else.
        Literal::Floats(ty, values) if ty.dtype == DType::F32 && ty.shape.is_empty() => {
            Ok(values.iter().map(|&x| f16::from_f64(x)).collect())
        }
        _ if literal.ty().dtype == DType::F16 => blobs.f16s(literal).map(|data| data.into()).map_err(|e| e.to_string()),
        _ => Err(format!("is {}: the fast arithmetic has fp16 alone; the exact one has other types too", literal.ty())),
    }
}
