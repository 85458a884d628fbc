//! Element types and opsets that entries share, and the check of arguments against them.

use super::{Call, Domain, Kind, Reject};
use crate::ir::{DType, Opset};

/// Checks the element types of all arguments against the table: in their domains, and equal where a letter is shared.
///
/// # Errors
/// Names the first parameter that does not fit.
pub fn check_domains(call: &Call<'_>) -> Result<(), Reject> {
    let (mut t, mut u): (Option<DType>, Option<DType>) = (None, None);
    for (i, param) in call.def.params.iter().enumerate().filter(|(i, _)| call.has(*i)) {
        let types = match param.kind {
            Kind::List => call.list(i).iter().map(|v| call.function.values[*v].ty.dtype).collect(),
            Kind::Tensor | Kind::Size | Kind::Const => vec![call.ty(i)?.dtype],
        };
        for dtype in types {
            if !param.domain.dtypes().contains(&dtype) {
                let known: Vec<&str> = param.domain.dtypes().iter().map(|d| d.word()).collect();
                return Err(call.reject(i, format!("has elements of {dtype}, not of {}", known.join(", ")), "cast it, or use another op"));
            }
            let bound = match param.domain {
                Domain::T(_) => t.get_or_insert(dtype),
                Domain::U(_) => u.get_or_insert(dtype),
                Domain::Free(_) => continue,
            };
            if *bound != dtype {
                return Err(call.reject(i, format!("has elements of {dtype} where another argument has {bound}"), "cast one of them"));
            }
        }
    }
    Ok(())
}

/// Every opset.
pub(super) const ALL: (Opset, Opset) = (Opset::Ios15, Opset::Ios18);
pub(super) const TO_16: (Opset, Opset) = (Opset::Ios15, Opset::Ios16);
pub(super) const FROM_16: (Opset, Opset) = (Opset::Ios16, Opset::Ios18);
pub(super) const FROM_17: (Opset, Opset) = (Opset::Ios17, Opset::Ios18);
pub(super) const FROM_18: (Opset, Opset) = (Opset::Ios18, Opset::Ios18);
pub(super) const ONLY_15: (Opset, Opset) = (Opset::Ios15, Opset::Ios15);
pub(super) const ONLY_16: (Opset, Opset) = (Opset::Ios16, Opset::Ios16);
pub(super) const ONLY_16_17: (Opset, Opset) = (Opset::Ios16, Opset::Ios17);
pub(super) const ONLY_17: (Opset, Opset) = (Opset::Ios17, Opset::Ios17);
/// What arithmetic takes.
pub(super) const NUMBERS: &[DType] = &[DType::F16, DType::F32, DType::I32];
/// What functions of real numbers take.
pub(super) const FLOATS: &[DType] = &[DType::F16, DType::F32];
/// What ops that only move data take.
pub(super) const MOVABLE: &[DType] = &[DType::Bool, DType::F16, DType::F32, DType::I16, DType::I32, DType::I8, DType::U16, DType::U8];
/// What older ops that only move data take.
pub(super) const MOVABLE_15: &[DType] = &[DType::Bool, DType::F16, DType::F32, DType::I32];
/// What can be gathered.
pub(super) const GATHERABLE: &[DType] = &[DType::F16, DType::F32, DType::I16, DType::I32, DType::I8, DType::U16, DType::U8];
/// What positions to gather are written in.
pub(super) const POSITIONS: &[DType] = &[DType::I16, DType::I32, DType::I8, DType::U16, DType::U8];
/// The same in iOS 16.
pub(super) const POSITIONS_16: &[DType] = &[DType::I16, DType::I32, DType::U16];
/// What shapes and offsets are written in.
pub(super) const INDICES: &[DType] = &[DType::I16, DType::I32, DType::I8];
/// What numbers are quantized to.
pub(super) const BYTES: &[DType] = &[DType::I8, DType::U8];
/// What constants are decoded to.
pub(super) const TABLE: &[DType] = &[DType::F16, DType::F32, DType::I8, DType::U8];
/// What constants are decoded from, block by block.
pub(super) const NARROW: &[DType] = &[DType::F16, DType::F32, DType::I4, DType::I8, DType::U4, DType::U8];
/// What positions in a palette are written in.
pub(super) const PALETTE: &[DType] = &[DType::U1, DType::U2, DType::U3, DType::U4, DType::U6, DType::U8];
pub(super) const I32: Domain = Domain::Free(&[DType::I32]);
pub(super) const BOOL: Domain = Domain::Free(&[DType::Bool]);
pub(super) const STRING: Domain = Domain::Free(&[DType::String]);
