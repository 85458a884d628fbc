//! Ops that join, part or repeat tensors along an axis.

use super::{ALL, BOOL, Call, Cost, Domain, I32, Lit, MOVABLE, MOVABLE_15, Need, OpDef, Reject, constant, list, op, sizes, tensor};
use crate::ir::{MAX_RANK, Type};

pub(super) const CONCAT: OpDef = op(
    "concat",
    "`values` one after another along `axis`; with `interleave`, their slices by turns.",
    ALL,
    &[list("values", Domain::T(MOVABLE)), constant("axis", I32, Need::Required), constant("interleave", BOOL, Need::Default(Lit::False))],
    Some(concat),
    Cost::moves,
);
pub(super) const STACK: OpDef = op(
    "stack",
    "`values` along a new axis at position `axis`.",
    ALL,
    &[list("values", Domain::T(MOVABLE)), constant("axis", I32, Need::Required)],
    Some(stack),
    Cost::moves,
);
pub(super) const SPLIT: OpDef = op(
    "split",
    "Consecutive parts of `x` along `axis`: `num_splits` equal ones, or of lengths `split_sizes`.",
    ALL,
    &[
        tensor("x", Domain::T(MOVABLE_15)),
        constant("num_splits", I32, Need::Optional),
        constant("split_sizes", I32, Need::Optional),
        constant("axis", I32, Need::Required),
    ],
    Some(split),
    Cost::moves,
);
pub(super) const TILE: OpDef = op(
    "tile",
    "`x` repeated `reps[i]` times along axis `i`.",
    ALL,
    &[tensor("x", Domain::T(MOVABLE_15)), sizes("reps", I32)],
    Some(tile),
    Cost::moves,
);

/// Most results of one `split`: far more than any program names, and a bound on what a hostile one makes us allocate.
const MAX_PARTS: usize = 4096;

fn tile(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let x = call.ty(0)?;
    let reps = call.ints_of(1, x.shape.len())?;
    let mut shape = Vec::with_capacity(reps.len());
    for (i, (&n, &r)) in x.shape.iter().zip(&reps).enumerate() {
        match u64::try_from(r).ok().filter(|&r| r > 0).and_then(|r| n.checked_mul(r)) {
            Some(length) => shape.push(length),
            None => return Err(call.reject(1, format!("is {r} on axis {i}, of length {n}"), "repeat each axis at least once")),
        }
    }
    Ok(vec![Type { dtype: x.dtype, shape }])
}

fn stack(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let types: Vec<&Type> = call.list(0).iter().map(|v| &call.function.values[*v].ty).collect();
    let Some((first, rest)) = types.split_first() else {
        return Err(call.reject(0, "is empty", "give at least one tensor"));
    };
    if let Some((i, t)) = rest.iter().enumerate().find(|(_, t)| t.shape != first.shape) {
        let message = format!("has {:?} at position {} where the first has {:?}", t.shape, i + 1, first.shape);
        return Err(call.reject(0, message, "stacked tensors have the same shape"));
    }
    if first.shape.len() >= MAX_RANK {
        return Err(call.reject(0, format!("has rank {}", first.shape.len()), "MIL has five axes at most"));
    }
    let mut shape = first.shape.clone();
    shape.insert(call.axis(1, first.shape.len() + 1)?, types.len() as u64);
    Ok(vec![Type { dtype: first.dtype, shape }])
}

fn concat(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let types: Vec<&Type> = call.list(0).iter().map(|v| &call.function.values[*v].ty).collect();
    let Some((first, rest)) = types.split_first() else {
        return Err(call.reject(0, "is empty", "give at least one tensor"));
    };
    let axis = call.axis(1, first.shape.len())?;
    let interleave = call.flag(2)?;
    let mut length = first.shape[axis];
    for (i, t) in rest.iter().enumerate() {
        let fits = t.shape.len() == first.shape.len()
            && t.shape.iter().zip(&first.shape).enumerate().all(|(j, (a, b))| a == b || (j == axis && !interleave));
        if !fits {
            let message = format!("has {:?} at position {} where the first has {:?}", t.shape, i + 1, first.shape);
            return Err(call.reject(0, message, "all axes but the joined one must agree, and that one too with interleave"));
        }
        match length.checked_add(t.shape[axis]) {
            Some(sum) => length = sum,
            None => return Err(call.reject(0, "has more elements than 64 bits count", "use smaller tensors")),
        }
    }
    let mut shape = first.shape.clone();
    shape[axis] = length;
    Ok(vec![Type { dtype: first.dtype, shape }])
}

fn split(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let x = call.ty(0)?;
    let axis = call.axis(3, x.shape.len())?;
    let length = x.shape[axis];
    let sizes: Vec<u64> = if call.has(2) {
        let given = call.ints(2)?;
        let sizes: Option<Vec<u64>> = given.iter().map(|&n| u64::try_from(n).ok().filter(|&n| n > 0)).collect();
        let sum = sizes.as_deref().and_then(|s| s.iter().try_fold(0u64, |sum, &n| sum.checked_add(n)));
        match sizes {
            Some(sizes) if sum == Some(length) => sizes,
            _ => {
                return Err(call.reject(
                    2,
                    format!("is {given:?} for an axis of length {length}"),
                    "positive lengths that add up to the axis",
                ));
            }
        }
    } else if call.has(1) {
        let parts = call.int(1)?;
        match u64::try_from(parts).ok().filter(|&n| n > 0 && n <= MAX_PARTS as u64 && length % n == 0) {
            Some(n) => vec![length / n; n as usize],
            None => {
                return Err(call.reject(
                    1,
                    format!("is {parts} for an axis of length {length}"),
                    "give a divisor of the axis, or split_sizes",
                ));
            }
        }
    } else {
        return Err(call.reject(2, "is missing, and num_splits too", "give one of the two"));
    };
    if sizes.len() > MAX_PARTS {
        return Err(call.reject(2, format!("has {} parts", sizes.len()), "split in several steps"));
    }
    if call.has(1) && call.int(1)? != sizes.len() as i64 {
        return Err(call.reject(1, format!("is {} where split_sizes has {}", call.int(1)?, sizes.len()), "leave num_splits out"));
    }
    let part = |n: u64| {
        let mut shape = x.shape.clone();
        shape[axis] = n;
        Type { dtype: x.dtype, shape }
    };
    Ok(sizes.into_iter().map(part).collect())
}
