//! Weight files in Apple's storage format.
//!
//! Layout, little-endian, as coremltools' `StorageFormat.hpp` has it (ane-facts 3): a 64-byte header (`u32` number of
//! blobs, `u32` version 2, zeros); then, each at a multiple of 64, 64 bytes of metadata (`u32` sentinel `0xDEADBEEF`, `u32`
//! type code, `u64` bytes of data, `u64` absolute offset of the data, `u64` padding in bits, zeros) and the data.
//! `offset` in a program's `BLOBFILE` is that of the metadata: 64 for the first blob.

mod packed;

pub use packed::{pack, unpack};

use crate::ir::{Blobs, DType, Literal, Type};
use half::f16;
use std::borrow::Cow;
use std::ops::Range;

/// Everything in the file lies at multiples of this.
const ALIGN: usize = 64;
const VERSION: u32 = 2;
const SENTINEL: u32 = 0xDEAD_BEEF;

/// Element types of blobs; the discriminant is the file's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
#[allow(missing_docs)]
pub enum BlobType {
    F16 = 1,
    F32 = 2,
    U8 = 3,
    I8 = 4,
    BF16 = 5,
    I16 = 6,
    U16 = 7,
    I4 = 8,
    U1 = 9,
    U2 = 10,
    U4 = 11,
    U3 = 12,
    U6 = 13,
    I32 = 14,
    U32 = 15,
    F8E4M3FN = 16,
    F8E5M2 = 17,
}

impl BlobType {
    /// Every type, in the order of codes.
    pub const ALL: [BlobType; 17] = {
        use BlobType::*;
        [F16, F32, U8, I8, BF16, I16, U16, I4, U1, U2, U4, U3, U6, I32, U32, F8E4M3FN, F8E5M2]
    };

    /// The type with this code.
    pub fn from_code(code: u32) -> Option<BlobType> {
        Self::ALL.into_iter().find(|t| *t as u32 == code)
    }

    /// The element type in programs; the 8-bit floating-point types have none.
    pub fn dtype(self) -> Option<DType> {
        Some(match self {
            BlobType::F16 => DType::F16,
            BlobType::F32 => DType::F32,
            BlobType::U8 => DType::U8,
            BlobType::I8 => DType::I8,
            BlobType::BF16 => DType::BF16,
            BlobType::I16 => DType::I16,
            BlobType::U16 => DType::U16,
            BlobType::I4 => DType::I4,
            BlobType::U1 => DType::U1,
            BlobType::U2 => DType::U2,
            BlobType::U4 => DType::U4,
            BlobType::U3 => DType::U3,
            BlobType::U6 => DType::U6,
            BlobType::I32 => DType::I32,
            BlobType::U32 => DType::U32,
            BlobType::F8E4M3FN | BlobType::F8E5M2 => return None,
        })
    }

    /// Bits of one element.
    pub fn bits(self) -> u64 {
        self.dtype().map_or(8, DType::bits)
    }
}

/// What is wrong with a weight file. Offsets are in bytes from its start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum BlobError {
    #[error("no file `{path}`; add it under the path that the program names")]
    NoFile { path: String },
    #[error("the file ends at {len}, before the {what} at {offset}; it was cut short, or the offset is wrong")]
    Short { what: &'static str, offset: u64, len: usize },
    #[error("version {found} instead of {VERSION}; this is no weight file, or of a format not known here")]
    Version { found: u32 },
    #[error("offset {offset} is no multiple of {ALIGN}; a program's offset is that of the metadata, 64 for the first blob")]
    Unaligned { offset: u64 },
    #[error("no metadata at {offset}: {found:#010x} instead of {SENTINEL:#010x}; a program's offset is that of the metadata")]
    Sentinel { offset: u64, found: u32 },
    #[error("type code {code} at {offset} is none of 1 to 17")]
    Code { offset: u64, code: u32 },
    #[error("{padding} padding bits in {bytes} bytes of {kind:?} at {offset} do not leave whole elements")]
    Padding { offset: u64, padding: u64, bytes: u64, kind: BlobType },
    #[error("the blob at {offset} holds {found:?}, the program wants {wanted}")]
    Kind { offset: u64, found: BlobType, wanted: DType },
    #[error("the blob at {offset} holds {found} bytes, the program's {ty} has {wanted}")]
    Size { offset: u64, found: u64, wanted: u64, ty: Type },
    #[error("{elements} elements of {kind:?} take {wanted} bytes, {found} were given")]
    Given { kind: BlobType, elements: u64, wanted: u64, found: usize },
    #[error("a constant of {found} where fp16 numbers are wanted")]
    NotF16 { found: DType },
    #[error("a constant of {found} where whole numbers are wanted")]
    NotInts { found: DType },
    #[error("{kind:?} holds no {value}; whole numbers in its range are packed")]
    Value { kind: BlobType, value: i64 },
}

/// One blob of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// Offset of the metadata.
    pub offset: u64,
    /// Element type.
    pub kind: BlobType,
    /// Where the data lies in the file.
    pub data: Range<usize>,
    /// Bits at the end of the data that belong to no element.
    pub padding_bits: u64,
}

/// Writes files of any number of blobs.
#[derive(Clone, Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    count: u32,
}

impl Default for Writer {
    fn default() -> Self {
        Writer::new()
    }
}

impl Writer {
    /// An empty file.
    pub fn new() -> Writer {
        let mut bytes = vec![0; ALIGN];
        bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
        Writer { bytes, count: 0 }
    }

    /// Appends a blob of `elements` elements, packed from the low bits of each byte up; gives the offset that programs name.
    ///
    /// # Errors
    /// When `data` is not as long as the elements take.
    pub fn push(&mut self, kind: BlobType, elements: u64, data: &[u8]) -> Result<u64, BlobError> {
        let bits = elements.saturating_mul(kind.bits());
        let wanted = bits.div_ceil(8);
        if data.len() as u64 != wanted {
            return Err(BlobError::Given { kind, elements, wanted, found: data.len() });
        }
        let offset = self.bytes.len().next_multiple_of(ALIGN);
        self.bytes.reserve_exact(offset - self.bytes.len() + ALIGN + data.len());
        self.bytes.resize(offset, 0);
        for word in [SENTINEL, kind as u32] {
            self.bytes.extend(word.to_le_bytes());
        }
        for word in [wanted, (offset + ALIGN) as u64, wanted * 8 - bits, 0, 0, 0, 0] {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.extend(data);
        self.count += 1;
        Ok(offset as u64)
    }

    /// The file.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes[..4].copy_from_slice(&self.count.to_le_bytes());
        self.bytes
    }
}

/// A file of one `fp16` blob: metadata at offset 64, data at 128.
pub fn single_f16(data: &[f16]) -> Vec<u8> {
    let bytes: Cow<'_, [u8]> = if cfg!(target_endian = "little") {
        Cow::Borrowed(bytemuck::cast_slice(data))
    } else {
        Cow::Owned(data.iter().flat_map(|x| x.to_le_bytes()).collect())
    };
    let mut writer = Writer::new();
    // The length is right by construction.
    let _ = writer.push(BlobType::F16, data.len() as u64, &bytes);
    writer.finish()
}

/// All blobs of a file, in order.
///
/// # Errors
/// When the header or a blob does not fit the format; a count beyond the file is a blob that is missing.
pub fn read(file: &[u8]) -> Result<Vec<Blob>, BlobError> {
    let count = header(file)?;
    let (mut blobs, mut offset) = (Vec::new(), ALIGN as u64);
    for _ in 0..count {
        let blob = metadata(file, offset)?;
        // Data ends inside the file, so this cannot overflow.
        offset = (blob.data.end.max(offset as usize + ALIGN) as u64).next_multiple_of(ALIGN as u64);
        blobs.push(blob);
    }
    Ok(blobs)
}

/// The blob whose metadata is at `offset`.
///
/// # Errors
/// When the header or the blob does not fit the format.
pub fn read_at(file: &[u8], offset: u64) -> Result<Blob, BlobError> {
    header(file)?;
    metadata(file, offset)
}

impl Blobs {
    /// The data of a blob, checked against the type that the program declares.
    ///
    /// # Errors
    /// When the file is missing, is no weight file, or holds something else at `offset`.
    pub fn data(&self, path: &str, offset: u64, ty: &Type) -> Result<&[u8], BlobError> {
        let file = self.0.get(path).ok_or_else(|| BlobError::NoFile { path: path.into() })?;
        let blob = read_at(file, offset)?;
        if blob.kind.dtype() != Some(ty.dtype) {
            return Err(BlobError::Kind { offset, found: blob.kind, wanted: ty.dtype });
        }
        let found = blob.data.len() as u64;
        if found != ty.bytes() {
            return Err(BlobError::Size { offset, found, wanted: ty.bytes(), ty: ty.clone() });
        }
        Ok(&file[blob.data])
    }

    /// The elements of an `fp16` constant, borrowed from its file where memory allows.
    ///
    /// # Errors
    /// When it is no constant of `fp16`, or its file does not hold it.
    pub fn f16s(&self, literal: &Literal) -> Result<Cow<'_, [f16]>, BlobError> {
        match literal {
            Literal::Floats(ty, values) if ty.dtype == DType::F16 => Ok(values.iter().map(|&x| f16::from_f64(x)).collect()),
            Literal::Blob { ty, path, offset } if ty.dtype == DType::F16 => {
                let bytes = self.data(path, *offset, ty)?;
                Ok(match bytemuck::try_cast_slice(bytes) {
                    Ok(elements) if cfg!(target_endian = "little") => Cow::Borrowed(elements),
                    _ => bytes.chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]])).collect(),
                })
            }
            other => Err(BlobError::NotF16 { found: other.ty().dtype }),
        }
    }
}

impl Blobs {
    /// The elements of a constant of whole numbers or booleans, wherever they are written and however few bits they take.
    ///
    /// # Errors
    /// When it is no such constant, or its file does not hold it.
    pub fn ints(&self, literal: &Literal) -> Result<Vec<i64>, BlobError> {
        match literal {
            Literal::Ints(_, values) => Ok(values.clone()),
            Literal::Blob { ty, path, offset } => {
                let bytes = self.data(path, *offset, ty)?;
                let kind = BlobType::ALL.into_iter().find(|k| k.dtype() == Some(ty.dtype)).filter(|_| !ty.dtype.is_float());
                let kind = kind.ok_or(BlobError::NotInts { found: ty.dtype })?;
                unpack(kind, bytes, ty.numel())
            }
            other => Err(BlobError::NotInts { found: other.ty().dtype }),
        }
    }
}

/// The number of blobs that the header announces.
fn header(file: &[u8]) -> Result<u32, BlobError> {
    if file.len() < ALIGN {
        return Err(BlobError::Short { what: "end of the header", offset: ALIGN as u64, len: file.len() });
    }
    match word(file, 4) {
        VERSION => Ok(word(file, 0)),
        found => Err(BlobError::Version { found }),
    }
}

fn metadata(file: &[u8], offset: u64) -> Result<Blob, BlobError> {
    let short = |what, offset| BlobError::Short { what, offset, len: file.len() };
    let at = usize::try_from(offset).unwrap_or(usize::MAX);
    if !at.is_multiple_of(ALIGN) || at == 0 {
        return Err(BlobError::Unaligned { offset });
    }
    if at.checked_add(ALIGN).is_none_or(|end| end > file.len()) {
        return Err(short("metadata", offset));
    }
    let found = word(file, at);
    if found != SENTINEL {
        return Err(BlobError::Sentinel { offset, found });
    }
    let code = word(file, at + 4);
    let kind = BlobType::from_code(code).ok_or(BlobError::Code { offset, code })?;
    let long = |i: usize| u64::from(word(file, i)) | u64::from(word(file, i + 4)) << 32;
    let (bytes, start, padding_bits) = (long(at + 8), long(at + 16), long(at + 24));
    let end = start.checked_add(bytes).filter(|&end| end <= file.len() as u64);
    let Some(end) = end else { return Err(short("end of the data", start.saturating_add(bytes))) };
    if start < ALIGN as u64 {
        return Err(short("data", start));
    }
    // Below one byte of padding, and whole elements before it. The data lies in memory, so 8 × bytes fits.
    if padding_bits >= 8 || padding_bits > bytes * 8 || !(bytes * 8 - padding_bits).is_multiple_of(kind.bits()) {
        return Err(BlobError::Padding { offset, padding: padding_bits, bytes, kind });
    }
    Ok(Blob { offset, kind, data: start as usize..end as usize, padding_bits })
}

/// The little-endian word at `at`, which lies in the file.
fn word(file: &[u8], at: usize) -> u32 {
    file[at..at + 4].iter().rev().fold(0, |w, &b| w << 8 | u32::from(b))
}

#[cfg(test)]
mod tests;
