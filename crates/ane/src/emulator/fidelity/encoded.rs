//! Numbers in smaller forms: constants decoded when a program is compiled, bytes made and read while it runs.

use super::args::Args;
use super::constants::packed;
use super::pointwise::clamp;
use super::tensor::{Tensor, position};
use std::sync::Arc;

/// A scale or zero point: one for all, or one for each place along an axis.
fn along(t: &Option<Arc<Tensor>>, axis: Option<usize>, i: &[usize], absent: f64) -> f64 {
    match (t, axis) {
        (None, _) => absent,
        (Some(t), Some(axis)) if t.data.len() > 1 => t.data[i[axis]],
        (Some(t), _) => t.data[0],
    }
}

/// `(data − zero) · scale` for both ops that undo a quantisation; `data` is the name of their first parameter.
fn affine(args: &Args<'_>, data: &str) -> Result<Vec<Tensor>, String> {
    let q = args.tensor(data)?;
    let (scale, zero) = (args.optional("scale")?, args.optional("zero_point")?);
    let axis = if args.has("axis") { Some(args.axis("axis", q.dims.len())?) } else { None };
    Ok(vec![args.make(0, |i| (q.at(i) - along(&zero, axis, i, 0.0)) * along(&scale, axis, i, 1.0))])
}

pub(super) fn affine_dequantize(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    affine(args, "quantized_data")
}

pub(super) fn dequantize(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    affine(args, "input")
}

/// `round(input / scale) + zero`, ties to even, moved into the range of the type.
pub(super) fn quantize(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("input")?;
    let (scale, zero) = (args.optional("scale")?, args.optional("zero_point")?);
    let axis = if args.has("axis") { Some(args.axis("axis", x.dims.len())?) } else { None };
    let dtype = args.result(0).dtype;
    Ok(vec![args.make(0, |i| {
        let y = (x.at(i) / along(&scale, axis, i, 1.0)).round_ties_even();
        clamp(dtype, y + along(&zero, axis, i, 0.0))
    })])
}

/// The block of `grid` that an index of a tensor of `dims` lies in.
fn block(grid: &[usize], dims: &[usize], i: &[usize]) -> Vec<usize> {
    i.iter().zip(grid).zip(dims).map(|((&i, &g), &d)| i * g / d).collect()
}

/// `(data − offset) · scale`, a scale for each block.
pub(super) fn blockwise(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let (data, scale, offset) = (args.tensor("data")?, args.tensor("scale")?, args.optional("offset")?);
    let offset = |i: &[usize]| offset.as_ref().map_or(0.0, |o| o.at(&block(&o.dims, &data.dims, i)));
    Ok(vec![args.make(0, |i| (data.at(i) - offset(i)) * scale.at(&block(&scale.dims, &data.dims, i)))])
}

pub(super) fn constant_cast(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("source_val")?;
    Ok(vec![args.make(0, |i| x.at(i))])
}

fn bytes_of(t: &Tensor) -> Vec<u8> {
    t.data.iter().map(|&x| x as u8).collect()
}

/// Entries of a table. Before iOS 18 indices are packed; since then each group of elements has a table of its own, and an index
/// stands for a vector.
pub(super) fn lut_to_dense(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let (indices, lut) = (args.tensor("indices")?, args.tensor("lut")?);
    let dims = args.result(0).dims();
    if args.index("shape").is_ok() {
        let bits = lut.data.len().trailing_zeros() as usize;
        let bytes = bytes_of(&indices);
        let entries = packed(&bytes, bits, dims.iter().product())?;
        return Ok(vec![args.make(0, |i| lut.data[entries[position(&dims, i)] as usize])]);
    }
    let (rank, vector) = (indices.dims.len(), lut.dims.last().copied().unwrap_or(1));
    let axis = if args.has("vector_axis") { args.axis("vector_axis", rank)? } else { 0 };
    Ok(vec![args.make(0, |i| {
        let mut from = i.to_vec();
        from[axis] /= vector;
        let mut entry = block(&lut.dims[..rank], &indices.dims, &from);
        entry.extend([indices.at(&from) as usize, i[axis] % vector]);
        lut.at(&entry)
    })])
}

/// Elements in order where a mask is set, zeros elsewhere.
pub(super) fn sparse_to_dense(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let (values, mask) = (args.tensor("nonzero_data")?, args.tensor("mask")?);
    let count = args.result(0).numel();
    let set: Vec<bool> = if args.index("shape").is_ok() {
        packed(&bytes_of(&mask), 1, count)?.iter().map(|&b| b != 0).collect()
    } else {
        mask.data.iter().map(|&b| b != 0.0).collect()
    };
    if set.iter().filter(|s| **s).count() != values.data.len() {
        return Err(format!("nonzero_data has {} elements, mask sets {}", values.data.len(), set.iter().filter(|s| **s).count()));
    }
    let (mut set, mut values) = (set.into_iter(), values.data.iter().copied());
    // Indices come row-major, as the elements do.
    Ok(vec![args.make(0, |_| if set.next() == Some(true) { values.next().unwrap_or(0.0) } else { 0.0 })])
}
