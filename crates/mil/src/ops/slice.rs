//! Windows into a tensor.

use super::{
    BOOL, Call, Cost, Domain, FROM_17, FROM_18, I32, INDICES, Lit, MOVABLE, MOVABLE_15, NUMBERS, Need, OpDef, OpKind, Reject, TO_16,
    constant, op, same, sizes, tensor,
};
use crate::ir::Type;

pub(super) const SLICE_BY_SIZE_15: OpDef = op(
    "slice_by_size",
    "The window of `x` that starts at `begin` and has `size`; size -1 runs to the end of the axis.",
    TO_16,
    &[tensor("x", Domain::T(MOVABLE_15)), sizes("begin", I32), sizes("size", I32)],
    Some(infer),
    window_cost,
);
pub(super) const SLICE_BY_SIZE: OpDef = op(
    "slice_by_size",
    "The window of `x` that starts at `begin` and has `size`; size -1 runs to the end of the axis.",
    FROM_17,
    &[tensor("x", Domain::T(MOVABLE)), sizes("begin", Domain::U(INDICES)), sizes("size", Domain::U(INDICES))],
    Some(infer),
    window_cost,
);
pub(super) const SLICE_BY_INDEX_15: OpDef = op(
    "slice_by_index",
    "Strided window of `x`: `x[begin[i] : end[i] : stride[i]]` on each axis; negative counts from the end.",
    TO_16,
    &[
        tensor("x", Domain::T(MOVABLE_15)),
        sizes("begin", I32),
        sizes("end", I32),
        constant("stride", I32, Need::Default(Lit::Ones)),
        constant("begin_mask", BOOL, Need::Default(Lit::Falses)),
        constant("end_mask", BOOL, Need::Default(Lit::Falses)),
        constant("squeeze_mask", BOOL, Need::Default(Lit::Falses)),
    ],
    Some(infer),
    window_cost,
);
pub(super) const SLICE_BY_INDEX: OpDef = op(
    "slice_by_index",
    "Strided window of `x`: `x[begin[i] : end[i] : stride[i]]` on each axis; negative counts from the end.",
    FROM_17,
    &[
        tensor("x", Domain::T(MOVABLE)),
        sizes("begin", Domain::U(INDICES)),
        sizes("end", Domain::U(INDICES)),
        constant("stride", Domain::U(INDICES), Need::Default(Lit::Ones)),
        constant("begin_mask", BOOL, Need::Default(Lit::Falses)),
        constant("end_mask", BOOL, Need::Default(Lit::Falses)),
        constant("squeeze_mask", BOOL, Need::Default(Lit::Falses)),
    ],
    Some(infer),
    window_cost,
);
pub(super) const SLICE_UPDATE: OpDef = op(
    "slice_update",
    "`x` with a strided window replaced by `update`.",
    FROM_18,
    &[
        tensor("x", Domain::T(MOVABLE)),
        tensor("update", Domain::T(MOVABLE)),
        tensor("begin", Domain::U(INDICES)),
        tensor("end", Domain::U(INDICES)),
        constant("stride", Domain::U(INDICES), Need::Default(Lit::Ones)),
        constant("begin_mask", BOOL, Need::Default(Lit::Falses)),
        constant("end_mask", BOOL, Need::Default(Lit::Falses)),
        constant("squeeze_mask", BOOL, Need::Default(Lit::Falses)),
    ],
    Some(same),
    Cost::moves,
);
pub(super) const SLIDING_WINDOWS_15: OpDef = op(
    "sliding_windows",
    "Overlapping windows of `size` along `axis`, as a new axis.",
    TO_16,
    &[
        tensor("x", Domain::T(NUMBERS)),
        constant("axis", I32, Need::Required),
        constant("size", I32, Need::Required),
        constant("stride", I32, Need::Default(Lit::Int(1))),
    ],
    Some(sliding_windows),
    Cost::moves,
);
pub(super) const SLIDING_WINDOWS: OpDef = op(
    "sliding_windows",
    "Overlapping windows of `size` along `axis`, as a new axis.",
    FROM_17,
    &[
        tensor("x", Domain::T(MOVABLE)),
        constant("axis", I32, Need::Required),
        constant("size", I32, Need::Required),
        constant("stride", I32, Need::Default(Lit::Int(1))),
    ],
    Some(sliding_windows),
    Cost::moves,
);

/// One axis of a window: elements `begin`, `begin + step`, …, `len` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// First element.
    pub begin: u64,
    /// Distance to the next; negative runs backwards.
    pub step: i64,
    /// Number of elements, at least 1.
    pub len: u64,
    /// The axis is dropped from the result.
    pub squeeze: bool,
}

impl Cut {
    /// The window that a `slice_by_size` or `slice_by_index` takes, one entry for each axis of `x`.
    ///
    /// # Errors
    /// When the window does not lie inside `x`, or the op is no slice.
    pub fn of(call: &Call<'_>) -> Result<Vec<Cut>, Reject> {
        match call.op.kind {
            OpKind::SliceBySize => by_size(call),
            OpKind::SliceByIndex => by_index(call),
            _ => Err(Reject { param: "", message: "is no slice".into(), help: "ask slices only" }),
        }
    }
}

fn infer(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let shape = Cut::of(call)?.iter().filter(|c| !c.squeeze).map(|c| c.len).collect();
    Ok(vec![Type { dtype: call.ty(0)?.dtype, shape }])
}

/// A window reads what it gives, not all of `x`.
fn window_cost(_: &Call<'_>, results: &[Type]) -> Cost {
    Cost { flops: 0, bytes: results.iter().map(|t| t.bytes().saturating_mul(2)).fold(0, u64::saturating_add) }
}

fn by_size(call: &Call<'_>) -> Result<Vec<Cut>, Reject> {
    let x = call.ty(0)?.shape;
    let (begin, size) = (call.ints_of(1, x.len())?, call.ints_of(2, x.len())?);
    let mut cuts = Vec::with_capacity(x.len());
    for (i, &d) in x.iter().enumerate() {
        let (b, n) = (i128::from(begin[i]), i128::from(size[i]));
        if !(0..i128::from(d)).contains(&b) {
            return Err(call.reject(1, format!("is {b} on axis {i}, of length {d}"), "begin must lie inside the axis"));
        }
        let room = i128::from(d) - b;
        let len = if n == -1 { room } else { n };
        if !(1..=room).contains(&len) {
            let message = format!("is {n} on axis {i}, which has {room} elements from {b} on");
            return Err(call.reject(2, message, "the window must be non-empty and inside x"));
        }
        cuts.push(Cut { begin: b as u64, step: 1, len: len as u64, squeeze: false });
    }
    Ok(cuts)
}

/// As coremltools works it out: ends are clamped to the axis, and so are begins on the far side. A negative end before the
/// axis counts as its first element, whichever way the window runs.
fn by_index(call: &Call<'_>) -> Result<Vec<Cut>, Reject> {
    let x = call.ty(0)?.shape;
    let rank = x.len();
    let (begin, end, stride) = (call.ints_of(1, rank)?, call.ints_of(2, rank)?, call.ints_of(3, rank)?);
    let (open_begin, open_end, squeeze) = (call.mask(4, rank)?, call.mask(5, rank)?, call.mask(6, rank)?);
    let mut cuts = Vec::with_capacity(rank);
    for (i, &length) in x.iter().enumerate() {
        let (d, s) = (i128::from(length), i128::from(stride[i]));
        if s == 0 {
            return Err(call.reject(3, format!("is 0 on axis {i}"), "use a stride that is not zero"));
        }
        let wrap = |v: i64| if v < 0 { i128::from(v) + d } else { i128::from(v) };
        let b = match open_begin[i] {
            true if s > 0 => 0,
            true => d - 1,
            false if s > 0 => wrap(begin[i]).max(0),
            false => wrap(begin[i]).max(0).min(d - 1),
        };
        if !(0..d).contains(&b) {
            return Err(call.reject(1, format!("is {} on axis {i}, of length {d}", begin[i]), "begin must lie inside the axis"));
        }
        if squeeze[i] {
            cuts.push(Cut { begin: b as u64, step: 1, len: 1, squeeze: true });
            continue;
        }
        let e = match open_end[i] {
            true if s > 0 => d,
            true => -1,
            false => wrap(end[i]).max(0).min(if s > 0 { d } else { d - 1 }),
        };
        let n = if s > 0 { (e - b + s - 1).div_euclid(s) } else { (b - e - s - 1).div_euclid(-s) };
        if n <= 0 {
            let message = format!("is {}: the window {b}..{e} step {s} on axis {i} of length {d} is empty", end[i]);
            return Err(call.reject(2, message, "the window must be non-empty and inside x"));
        }
        cuts.push(Cut { begin: b as u64, step: stride[i], len: n as u64, squeeze: false });
    }
    Ok(cuts)
}

fn sliding_windows(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let x = call.ty(0)?;
    let axis = call.axis(1, x.shape.len())?;
    let (size, stride) = (call.int(2)?, call.int(3)?);
    let length = x.shape[axis];
    let Some(size) = u64::try_from(size).ok().filter(|n| (1..=length).contains(n)) else {
        return Err(call.reject(2, format!("is {size} on an axis of length {length}"), "windows are not empty and lie inside x"));
    };
    let Some(stride) = u64::try_from(stride).ok().filter(|&n| n > 0) else {
        return Err(call.reject(3, format!("is {stride}"), "give a positive number"));
    };
    let mut shape = x.shape;
    shape[axis] = (length - size) / stride + 1;
    shape.insert(axis + 1, size);
    Ok(vec![Type { dtype: x.dtype, shape }])
}
