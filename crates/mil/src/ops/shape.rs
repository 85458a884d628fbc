//! Ops that give the same elements another shape.

use super::{
    ALL, BOOL, Call, Cost, Domain, FLOATS, FROM_16, FROM_17, I32, INDICES, Lit, MOVABLE, MOVABLE_15, Need, ONLY_16, OpDef, Param, Reject,
    TO_16, constant, list, op, same, sizes, tensor,
};
use crate::ir::{DType, MAX_RANK, Type};

const X_AXES_MOVABLE_15: &[Param] = &[tensor("x", Domain::T(MOVABLE_15)), constant("axes", I32, Need::Optional)];
const X_AXES_MOVABLE: &[Param] = &[tensor("x", Domain::T(MOVABLE)), constant("axes", I32, Need::Optional)];
const X_BLOCK_SIZE_FLOAT: &[Param] = &[tensor("x", Domain::T(FLOATS)), constant("block_size", I32, Need::Required)];

pub(super) const RESHAPE_15: OpDef = op(
    "reshape",
    "The elements of `x`, row-major, in `shape`; one `-1` is worked out, `0` copies the axis of `x`.",
    TO_16,
    &[tensor("x", Domain::T(MOVABLE_15)), sizes("shape", I32)],
    Some(reshape),
    Cost::moves,
);
pub(super) const RESHAPE: OpDef = op(
    "reshape",
    "The elements of `x`, row-major, in `shape`; one `-1` is worked out, `0` copies the axis of `x`.",
    FROM_17,
    &[tensor("x", Domain::T(MOVABLE)), sizes("shape", Domain::Free(INDICES))],
    Some(reshape),
    Cost::moves,
);
pub(super) const RESHAPE_LIKE_16: OpDef = op(
    "reshape_like",
    "`x` with stretches of its axes replaced by axes of `ref_tensors`.",
    ONLY_16,
    &[
        tensor("x", Domain::T(MOVABLE_15)),
        list("ref_tensors", Domain::Free(MOVABLE)),
        list("begins", I32),
        list("ends", I32),
        list("end_masks", BOOL),
    ],
    None,
    Cost::moves,
);
pub(super) const RESHAPE_LIKE: OpDef = op(
    "reshape_like",
    "`x` with stretches of its axes replaced by axes of `ref_tensors`.",
    FROM_17,
    &[
        tensor("x", Domain::T(MOVABLE)),
        list("ref_tensors", Domain::Free(MOVABLE)),
        list("begins", I32),
        list("ends", I32),
        list("end_masks", BOOL),
    ],
    None,
    Cost::moves,
);
pub(super) const TRANSPOSE_15: OpDef = op(
    "transpose",
    "Axis `i` of the result is axis `perm[i]` of `x`.",
    TO_16,
    &[tensor("x", Domain::T(MOVABLE_15)), constant("perm", I32, Need::Required)],
    Some(transpose),
    Cost::moves,
);
pub(super) const TRANSPOSE: OpDef = op(
    "transpose",
    "Axis `i` of the result is axis `perm[i]` of `x`.",
    FROM_17,
    &[tensor("x", Domain::T(MOVABLE)), constant("perm", I32, Need::Required)],
    Some(transpose),
    Cost::moves,
);
pub(super) const EXPAND_DIMS_15: OpDef = op(
    "expand_dims",
    "`x` with axes of length 1 at positions `axes` of the result.",
    TO_16,
    &[tensor("x", Domain::T(MOVABLE_15)), constant("axes", I32, Need::Required)],
    Some(expand_dims),
    Cost::moves,
);
pub(super) const EXPAND_DIMS: OpDef = op(
    "expand_dims",
    "`x` with axes of length 1 at positions `axes` of the result.",
    FROM_17,
    &[tensor("x", Domain::T(MOVABLE)), constant("axes", I32, Need::Required)],
    Some(expand_dims),
    Cost::moves,
);
pub(super) const SQUEEZE_15: OpDef = op(
    "squeeze",
    "`x` without the axes `axes`, each of length 1; without all such axes when none are named.",
    TO_16,
    X_AXES_MOVABLE_15,
    Some(squeeze),
    Cost::moves,
);
pub(super) const SQUEEZE: OpDef = op(
    "squeeze",
    "`x` without the axes `axes`, each of length 1; without all such axes when none are named.",
    FROM_17,
    X_AXES_MOVABLE,
    Some(squeeze),
    Cost::moves,
);
pub(super) const FLATTEN2D: OpDef = op(
    "flatten2d",
    "`x` as a matrix: the axes before `axis` joined, and those from it on.",
    ALL,
    &[tensor("x", Domain::T(MOVABLE_15)), constant("axis", I32, Need::Default(Lit::Int(1)))],
    Some(flatten2d),
    Cost::moves,
);
pub(super) const IDENTITY: OpDef = op("identity", "`x`.", ALL, &[tensor("x", Domain::Free(MOVABLE))], Some(same), Cost::moves);
pub(super) const REVERSE_15: OpDef =
    op("reverse", "`x` backwards along `axes`, or along all.", TO_16, X_AXES_MOVABLE_15, Some(reverse), Cost::moves);
pub(super) const REVERSE: OpDef =
    op("reverse", "`x` backwards along `axes`, or along all.", FROM_17, X_AXES_MOVABLE, Some(reverse), Cost::moves);
pub(super) const REVERSE_SEQUENCE_15: OpDef = op(
    "reverse_sequence",
    "The first `lengths[b]` elements along `seq_axis` backwards, for each `b` of `batch_axis`.",
    TO_16,
    &[
        tensor("x", Domain::T(MOVABLE_15)),
        tensor("lengths", I32),
        constant("seq_axis", I32, Need::Default(Lit::Int(0))),
        constant("batch_axis", I32, Need::Default(Lit::Int(0))),
    ],
    Some(same),
    Cost::moves,
);
pub(super) const REVERSE_SEQUENCE: OpDef = op(
    "reverse_sequence",
    "The first `lengths[b]` elements along `seq_axis` backwards, for each `b` of `batch_axis`.",
    FROM_17,
    &[
        tensor("x", Domain::T(MOVABLE)),
        tensor("lengths", Domain::Free(INDICES)),
        constant("seq_axis", I32, Need::Default(Lit::Int(0))),
        constant("batch_axis", I32, Need::Default(Lit::Int(0))),
    ],
    Some(same),
    Cost::moves,
);
pub(super) const DEPTH_TO_SPACE: OpDef =
    op("depth_to_space", "Channels moved into blocks of space.", ALL, X_BLOCK_SIZE_FLOAT, Some(|call| to_space(call, 1)), Cost::moves);
pub(super) const SPACE_TO_DEPTH: OpDef =
    op("space_to_depth", "Blocks of space moved into channels.", ALL, X_BLOCK_SIZE_FLOAT, Some(|call| to_depth(call, 1)), Cost::moves);
pub(super) const PIXEL_SHUFFLE: OpDef = op(
    "pixel_shuffle",
    "Channels moved into blocks of space, channel-major.",
    ALL,
    &[tensor("x", Domain::T(FLOATS)), constant("upscale_factor", I32, Need::Required)],
    Some(|call| to_space(call, 1)),
    Cost::moves,
);
pub(super) const PIXEL_UNSHUFFLE: OpDef = op(
    "pixel_unshuffle",
    "Blocks of space moved into channels, channel-major.",
    FROM_16,
    &[tensor("x", Domain::T(FLOATS)), constant("downscale_factor", Domain::Free(&[DType::U32]), Need::Required)],
    Some(|call| to_depth(call, 1)),
    Cost::moves,
);
pub(super) const SPACE_TO_BATCH: OpDef = op(
    "space_to_batch",
    "Blocks of space moved into the batch, after padding.",
    ALL,
    &[tensor("x", Domain::T(FLOATS)), constant("block_shape", I32, Need::Required), constant("paddings", I32, Need::Required)],
    None,
    Cost::moves,
);
pub(super) const BATCH_TO_SPACE: OpDef = op(
    "batch_to_space",
    "Blocks of the batch moved into space, then cropped.",
    ALL,
    &[tensor("x", Domain::T(FLOATS)), constant("block_shape", I32, Need::Required), constant("crops", I32, Need::Required)],
    None,
    Cost::moves,
);
pub(super) const SHAPE: OpDef =
    op("shape", "The lengths of the axes of `x`.", ALL, &[tensor("x", Domain::T(MOVABLE_15))], Some(lengths), Cost::moves);

fn transpose(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let x = call.ty(0)?;
    call.ints_of(1, x.shape.len())?;
    let perm = call.axes(1, x.shape.len())?;
    Ok(vec![Type { dtype: x.dtype, shape: perm.iter().map(|&i| x.shape[i]).collect() }])
}

fn expand_dims(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let x = call.ty(0)?;
    let rank = x.shape.len() + call.ints(1)?.len();
    if rank > MAX_RANK {
        return Err(call.reject(1, format!("makes {rank} axes"), "MIL has five at most"));
    }
    let axes = call.axes(1, rank)?;
    let mut old = x.shape.iter().copied();
    let shape = (0..rank).map(|i| if axes.contains(&i) { 1 } else { old.next().unwrap_or(1) }).collect();
    Ok(vec![Type { dtype: x.dtype, shape }])
}

fn squeeze(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let x = call.ty(0)?;
    let axes: Vec<usize> =
        if call.has(1) { call.axes(1, x.shape.len())? } else { (0..x.shape.len()).filter(|&i| x.shape[i] == 1).collect() };
    if let Some(&i) = axes.iter().find(|&&i| x.shape[i] != 1) {
        return Err(call.reject(1, format!("names axis {i}, of length {}", x.shape[i]), "only axes of length 1 can be squeezed"));
    }
    let shape = (0..x.shape.len()).filter(|i| !axes.contains(i)).map(|i| x.shape[i]).collect();
    Ok(vec![Type { dtype: x.dtype, shape }])
}

/// `axis` may be the rank, which joins all axes before it.
fn flatten2d(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let x = call.ty(0)?;
    let rank = x.shape.len();
    let axis = match call.int(1)? {
        n if n == rank as i64 => rank,
        _ => call.axis(1, rank)?,
    };
    let join = |dims: &[u64]| dims.iter().copied().fold(1, u64::saturating_mul);
    Ok(vec![Type { dtype: x.dtype, shape: vec![join(&x.shape[..axis]), join(&x.shape[axis..])] }])
}

fn reverse(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let x = call.ty(0)?;
    if call.has(1) {
        call.axes(1, x.shape.len())?;
    }
    Ok(vec![x])
}

fn lengths(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    Ok(vec![Type { dtype: DType::I32, shape: vec![call.ty(0)?.shape.len() as u64] }])
}

/// [n, c, h, w] and the side of a block, which is positive.
fn blocks(call: &Call<'_>, param: usize) -> Result<(Type, u64), Reject> {
    let x = call.ty(0)?;
    if x.shape.len() != 4 {
        return Err(call.reject(0, format!("has rank {}", x.shape.len()), "give [n, c, h, w]"));
    }
    let side = call.int(param)?;
    match u64::try_from(side).ok().filter(|&n| (1..1 << 16).contains(&n)) {
        Some(side) => Ok((x, side)),
        None => Err(call.reject(param, format!("is {side}"), "give a positive number")),
    }
}

fn to_space(call: &Call<'_>, param: usize) -> Result<Vec<Type>, Reject> {
    let (x, side) = blocks(call, param)?;
    let &[n, c, h, w] = x.shape.as_slice() else { return Ok(vec![x]) };
    if c % (side * side) != 0 {
        return Err(call.reject(param, format!("is {side}, whose square does not divide {c} channels"), "give a side that fits"));
    }
    Ok(vec![Type { dtype: x.dtype, shape: vec![n, c / (side * side), h.saturating_mul(side), w.saturating_mul(side)] }])
}

fn to_depth(call: &Call<'_>, param: usize) -> Result<Vec<Type>, Reject> {
    let (x, side) = blocks(call, param)?;
    let &[n, c, h, w] = x.shape.as_slice() else { return Ok(vec![x]) };
    if h % side != 0 || w % side != 0 {
        return Err(call.reject(param, format!("is {side}, which does not divide {h} and {w}"), "give a side that fits"));
    }
    Ok(vec![Type { dtype: x.dtype, shape: vec![n, c.saturating_mul(side * side), h / side, w / side] }])
}

fn reshape(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let x = call.ty(0)?;
    let wanted = call.ints(1)?;
    let refuse = |message: String, help| Err(call.reject(1, message, help));
    let product = |dims: &[u64]| dims.iter().try_fold(1u64, |n, &d| n.checked_mul(d));
    let Some(total) = product(&x.shape) else {
        return Err(call.reject(0, "has more elements than 64 bits count", "use a smaller tensor"));
    };
    let (mut shape, mut open) = (Vec::with_capacity(wanted.len()), None);
    for (i, &n) in wanted.iter().enumerate() {
        match n {
            -1 if open.is_some() => return refuse("has more than one -1".into(), "leave one axis open at most"),
            -1 => {
                open = Some(i);
                shape.push(1);
            }
            0 => match x.shape.get(i) {
                Some(&d) => shape.push(d),
                None => return refuse(format!("has 0 at axis {i}, which x does not have"), "0 copies the axis of x; write the length"),
            },
            n if n < 0 => return refuse(format!("has length {n} at axis {i}"), "lengths are positive, or -1, or 0"),
            n => shape.push(n as u64),
        }
    }
    let known = product(&shape);
    match (open, known) {
        (Some(i), Some(known)) if known != 0 && total % known == 0 => shape[i] = total / known,
        (None, Some(known)) if known == total => {}
        _ => {
            return refuse(
                format!("is {wanted:?}, which does not hold the {total} elements of x {:?}", x.shape),
                "keep the number of elements",
            );
        }
    }
    Ok(vec![Type { dtype: x.dtype, shape }])
}
