//! Whole numbers as bytes: elements one after another from the low bits of each byte up, across bytes where they do not divide.

use super::{BlobError, BlobType};
use crate::ir::DType;

/// The bytes of whole numbers; the bits behind the last one are zero.
///
/// # Errors
/// When the type is none of whole numbers, or does not hold one of them.
pub fn pack(kind: BlobType, values: &[i64]) -> Result<Vec<u8>, BlobError> {
    let bits = kind.bits() as usize;
    let mut bytes = vec![0u8; (values.len() * bits).div_ceil(8)];
    for (i, &value) in values.iter().enumerate() {
        if !kind.dtype().is_some_and(|d| d.holds(value)) {
            return Err(BlobError::Value { kind, value });
        }
        for bit in 0..bits {
            let at = i * bits + bit;
            bytes[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
        }
    }
    Ok(bytes)
}

/// `count` whole numbers from their bytes.
///
/// # Errors
/// When the type is none of whole numbers, or there are too few bytes.
pub fn unpack(kind: BlobType, bytes: &[u8], count: usize) -> Result<Vec<i64>, BlobError> {
    let dtype = kind.dtype().filter(|d| !d.is_float()).ok_or(BlobError::NotInts { found: kind.dtype().unwrap_or(DType::F16) })?;
    let bits = kind.bits() as usize;
    if count.checked_mul(bits).is_none_or(|n| n > bytes.len() * 8) {
        let wanted = (count as u64).saturating_mul(kind.bits()).div_ceil(8);
        return Err(BlobError::Given { kind, elements: count as u64, wanted, found: bytes.len() });
    }
    let signed = dtype.holds(-1);
    let one = |i: usize| {
        let word = (0..bits).fold(0u64, |word, bit| {
            let at = i * bits + bit;
            word | u64::from(bytes[at / 8] >> (at % 8) & 1) << bit
        });
        if signed { (word << (64 - bits)) as i64 >> (64 - bits) } else { word as i64 }
    };
    Ok((0..count).map(one).collect())
}
