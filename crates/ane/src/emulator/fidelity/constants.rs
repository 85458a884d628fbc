//! Constants of any type as tensors.

use super::tensor::Tensor;
use cpu::f16;
use mil::{Blobs, DType, Literal};

/// The elements of a constant, row-major.
pub(super) fn decode(literal: &Literal, blobs: &Blobs) -> Result<Tensor, String> {
    let ty = literal.ty();
    let data = match literal {
        Literal::Ints(_, values) => values.iter().map(|&n| n as f64).collect(),
        Literal::Floats(_, values) => values.clone(),
        Literal::Text(_) | Literal::Texts(..) => return Err("is a string where a tensor is wanted".into()),
        Literal::Blob { path, offset, .. } => {
            let bytes = blobs.data(path, *offset, &ty).map_err(|e| e.to_string())?;
            numbers(ty.dtype, bytes, ty.numel())?
        }
    };
    Ok(Tensor { dtype: ty.dtype, dims: ty.dims(), data })
}

/// `count` little-endian elements, those below a byte packed from the low bits up.
pub(super) fn numbers(dtype: DType, bytes: &[u8], count: usize) -> Result<Vec<f64>, String> {
    let bits = dtype.bits() as usize;
    let signed = |w: u64| ((w << (64 - bits)) as i64 >> (64 - bits)) as f64;
    let number = |w: u64| match dtype {
        DType::F16 => f16::from_bits(w as u16).to_f64(),
        DType::BF16 => half::bf16::from_bits(w as u16).to_f64(),
        DType::F32 => f64::from(f32::from_bits(w as u32)),
        DType::F64 => f64::from_bits(w),
        DType::I4 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => signed(w),
        DType::Bool => f64::from(u8::from(w != 0)),
        _ => w as f64,
    };
    Ok(packed(bytes, bits, count)?.into_iter().map(number).collect())
}

/// `count` words of `bits` bits, from the low bits of each byte up.
pub(super) fn packed(bytes: &[u8], bits: usize, count: usize) -> Result<Vec<u64>, String> {
    if bits == 0 || bits > 64 || count.checked_mul(bits).is_none_or(|all| all > bytes.len() * 8) {
        return Err(format!("has {} bytes, too few for {count} elements of {bits} bits", bytes.len()));
    }
    let word = |i: usize| {
        let first = i * bits;
        let taken = bytes[first / 8..(first + bits).div_ceil(8)].iter().rev().fold(0u128, |w, &b| w << 8 | u128::from(b));
        (taken >> (first % 8)) as u64 & (u64::MAX >> (64 - bits))
    };
    Ok((0..count).map(word).collect())
}

/// One element as its little-endian bytes, for types of whole bytes.
pub(super) fn bytes(dtype: DType, x: f64) -> [u8; 8] {
    let word = match dtype {
        DType::F16 => u64::from(f16::from_f64(x).to_bits()),
        DType::BF16 => u64::from(half::bf16::from_f64(x).to_bits()),
        DType::F32 => u64::from((x as f32).to_bits()),
        DType::F64 => x.to_bits(),
        _ => x as i64 as u64,
    };
    word.to_le_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn small_types_are_packed_from_the_low_bits() {
        assert_eq!(numbers(DType::U4, &[0x21, 0x43], 3).unwrap(), [1.0, 2.0, 3.0]);
        assert_eq!(numbers(DType::I4, &[0x8f], 2).unwrap(), [-1.0, -8.0]);
        assert_eq!(numbers(DType::U1, &[0b101], 3).unwrap(), [1.0, 0.0, 1.0]);
        // 6-bit: 1, 2, 3, 63 cross byte borders.
        let packed = 1u32 | 2 << 6 | 3 << 12 | 63 << 18;
        assert_eq!(numbers(DType::U6, &packed.to_le_bytes()[..3], 4).unwrap(), [1.0, 2.0, 3.0, 63.0]);
        assert!(numbers(DType::U6, &[0], 2).is_err());
    }

    #[test]
    fn elements_come_back_from_their_bytes() {
        for (dtype, x) in [
            (DType::F16, -1.5),
            (DType::F32, 0.1f32.into()),
            (DType::I32, -7.0),
            (DType::I8, -128.0),
            (DType::U8, 200.0),
            (DType::U16, 65535.0),
            (DType::Bool, 1.0),
        ] {
            let bytes = bytes(dtype, x);
            assert_eq!(numbers(dtype, &bytes[..dtype.bits() as usize / 8], 1).unwrap(), [x], "{dtype}");
        }
    }
}
