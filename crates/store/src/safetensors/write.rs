//! The writer: sorted names, one metadata entry, data on an 8-byte boundary, one pass.

use crate::error::Result;
use crate::files::{Digest, HashWriter};
use crate::fs::FileSystem;
use crate::rope::Rows;
use crate::{StoreError, error::Context};
use half::{bf16, f16};
use std::io::{self, Write};
use std::path::Path;

/// Element type of a written file; values are rounded to nearest, ties to even.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    /// 32-bit floats, bit for bit.
    F32,
    /// IEEE half precision.
    F16,
    /// The upper half of an fp32.
    BF16,
}

impl Dtype {
    fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "F32",
            Dtype::F16 => "F16",
            Dtype::BF16 => "BF16",
        }
    }

    fn size(self) -> u64 {
        match self {
            Dtype::F32 => 4,
            Dtype::F16 | Dtype::BF16 => 2,
        }
    }
}

/// One tensor to write.
#[derive(Clone, Debug)]
pub struct Tensor<'a> {
    /// Its name in the file.
    pub name: String,
    /// Its shape, outermost axis first.
    pub shape: Vec<usize>,
    /// Its values, row-major, in memory's order of rows.
    pub data: &'a [f32],
    /// How its rows lie in the file.
    pub(crate) rows: Rows,
}

impl<'a> Tensor<'a> {
    /// A tensor whose rows are written as they are.
    pub fn new(name: impl Into<String>, shape: Vec<usize>, data: &'a [f32]) -> Tensor<'a> {
        Tensor { name: name.into(), shape, data, rows: Rows::Same }
    }
}

/// Tensors in the order of the file, and its header. Offsets are in u64, so nothing overflows before the disk is full.
fn layout<'a, 'b>(tensors: &'b [Tensor<'a>], dtype: Dtype) -> Result<(Vec<&'b Tensor<'a>>, Vec<u8>)> {
    let mut sorted: Vec<_> = tensors.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let mut header = String::from(r#"{"__metadata__":{"format":"pt"}"#);
    let mut at = 0;
    for (i, t) in sorted.iter().enumerate() {
        if t.name == "__metadata__" || i > 0 && sorted[i - 1].name == t.name {
            return Err(StoreError::Input(format!("tensor `{}` cannot be written: the name is taken", t.name)));
        }
        if t.shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d)) != Some(t.data.len()) {
            return Err(StoreError::Input(format!("tensor `{}` has shape {:?} but {} values", t.name, t.shape, t.data.len())));
        }
        let end = at + t.data.len() as u64 * dtype.size();
        let name = serde_json::Value::from(t.name.as_str());
        let shape: Vec<String> = t.shape.iter().map(usize::to_string).collect();
        header += &format!(r#",{name}:{{"dtype":"{}","shape":[{}],"data_offsets":[{at},{end}]}}"#, dtype.name(), shape.join(","));
        at = end;
    }
    header.push('}');
    let mut header = header.into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    Ok((sorted, header))
}

/// Exact length in bytes of the file that [`write()`] makes of these tensors.
///
/// # Errors
/// Names that clash, or a shape that does not fit its values.
pub fn encoded_len(tensors: &[Tensor<'_>], dtype: Dtype) -> std::result::Result<u64, StoreError> {
    let (_, header) = layout(tensors, dtype)?;
    Ok(8 + header.len() as u64 + tensors.iter().map(|t| t.data.len() as u64 * dtype.size()).sum::<u64>())
}

/// Writes tensors, in any order, to a safetensors file and syncs it. The same tensors give the same bytes.
///
/// # Errors
/// As [`encoded_len`], and the system's.
pub fn write(fs: &dyn FileSystem, path: &Path, tensors: &[Tensor<'_>], dtype: Dtype) -> std::result::Result<(), StoreError> {
    write_hashed(fs, path, tensors, dtype).map(|_| ())
}

pub(crate) fn write_hashed(fs: &dyn FileSystem, path: &Path, tensors: &[Tensor<'_>], dtype: Dtype) -> Result<Digest> {
    let (sorted, header) = layout(tensors, dtype)?;
    let mut out = HashWriter::create(fs, path)?;
    encode(&mut out, &sorted, &header, dtype).doing("write", path)?;
    out.finish(path)
}

fn encode(out: &mut impl Write, sorted: &[&Tensor<'_>], header: &[u8], dtype: Dtype) -> io::Result<()> {
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(header)?;
    for t in sorted {
        let width = match t.rows {
            Rows::Same => t.data.len(),
            Rows::HalvesOfPairs { .. } => t.shape[1..].iter().product(),
        };
        if width == 0 {
            continue;
        }
        for row in 0..t.data.len() / width {
            let from = t.rows.in_memory(row) * width;
            let values = &t.data[from..from + width];
            match dtype {
                Dtype::F32 => encode_row(out, values, f32::to_le_bytes)?,
                Dtype::F16 => encode_row(out, values, |v| f16::from_f32(v).to_le_bytes())?,
                Dtype::BF16 => encode_row(out, values, |v| bf16::from_f32(v).to_le_bytes())?,
            }
        }
    }
    Ok(())
}

fn encode_row<const N: usize>(out: &mut impl Write, values: &[f32], bytes_of: impl Fn(f32) -> [u8; N]) -> io::Result<()> {
    let mut bytes = [[0; N]; 1 << 12];
    for chunk in values.chunks(bytes.len()) {
        for (to, value) in bytes.iter_mut().zip(chunk) {
            *to = bytes_of(*value);
        }
        out.write_all(bytes[..chunk.len()].as_flattened())?;
    }
    Ok(())
}
