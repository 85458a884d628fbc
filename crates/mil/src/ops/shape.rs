//! Ops that give the same elements another shape.

use super::{ALL, Call, Cost, Domain, I32, INDICES, MOVABLE, Need, OpDef, Reject, constant, tensor};
use crate::ir::{MAX_RANK, Type};

/// The same elements, row-major, in another shape.
pub(super) const RESHAPE: OpDef = OpDef {
    name: "reshape",
    doc: "The elements of `x`, row-major, in `shape`; one `-1` is worked out, `0` copies the axis of `x`.",
    opsets: ALL,
    params: &[tensor("x", Domain::T(MOVABLE)), constant("shape", Domain::U(INDICES), Need::Required)],
    infer: Some(reshape),
    cost: Cost::moves,
};

/// Axes in another order.
pub(super) const TRANSPOSE: OpDef = OpDef {
    name: "transpose",
    doc: "Axis `i` of the result is axis `perm[i]` of `x`.",
    opsets: ALL,
    params: &[tensor("x", Domain::T(MOVABLE)), constant("perm", I32, Need::Required)],
    infer: Some(|call| {
        let x = call.ty(0)?;
        call.ints_of(1, x.shape.len())?;
        let perm = call.axes(1, x.shape.len())?;
        Ok(vec![Type { dtype: x.dtype, shape: perm.iter().map(|&i| x.shape[i]).collect() }])
    }),
    cost: Cost::moves,
};

/// New axes of length 1.
pub(super) const EXPAND_DIMS: OpDef = OpDef {
    name: "expand_dims",
    doc: "`x` with axes of length 1 at positions `axes` of the result.",
    opsets: ALL,
    params: &[tensor("x", Domain::T(MOVABLE)), constant("axes", I32, Need::Required)],
    infer: Some(|call| {
        let x = call.ty(0)?;
        let rank = x.shape.len() + call.ints(1)?.len();
        if rank > MAX_RANK {
            return Err(call.reject(1, format!("makes {rank} axes"), "MIL has five at most"));
        }
        let axes = call.axes(1, rank)?;
        let mut old = x.shape.iter().copied();
        let shape = (0..rank).map(|i| if axes.contains(&i) { 1 } else { old.next().unwrap_or(1) }).collect();
        Ok(vec![Type { dtype: x.dtype, shape }])
    }),
    cost: Cost::moves,
};

/// Axes of length 1 removed.
pub(super) const SQUEEZE: OpDef = OpDef {
    name: "squeeze",
    doc: "`x` without the axes `axes`, each of length 1; without all such axes when none are named.",
    opsets: ALL,
    params: &[tensor("x", Domain::T(MOVABLE)), constant("axes", I32, Need::Optional)],
    infer: Some(|call| {
        let x = call.ty(0)?;
        let axes: Vec<usize> =
            if call.has(1) { call.axes(1, x.shape.len())? } else { (0..x.shape.len()).filter(|&i| x.shape[i] == 1).collect() };
        if let Some(&i) = axes.iter().find(|&&i| x.shape[i] != 1) {
            return Err(call.reject(1, format!("names axis {i}, of length {}", x.shape[i]), "only axes of length 1 can be squeezed"));
        }
        let shape = (0..x.shape.len()).filter(|i| !axes.contains(i)).map(|i| x.shape[i]).collect();
        Ok(vec![Type { dtype: x.dtype, shape }])
    }),
    cost: Cost::moves,
};

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
