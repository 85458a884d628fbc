//! `pad`.

use super::{ALL, Call, Cost, Domain, FLOATS, I32, Lit, Need, OpDef, Reject, STRING, constant, op, sizes, tensor};
use crate::ir::Type;

pub(super) const PAD: OpDef = op(
    "pad",
    "`x` with elements added at both ends of its last axes: a constant, `reflect`ed ones, or the edge, `replicate`d.",
    ALL,
    &[
        tensor("x", Domain::T(FLOATS)),
        sizes("pad", I32),
        constant("mode", STRING, Need::Default(Lit::Text("constant"))),
        constant("constant_val", Domain::T(FLOATS), Need::Default(Lit::Float(0.0))),
    ],
    Some(infer),
    Cost::moves,
);

/// Where padding takes its elements from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PadMode {
    /// From `constant_val`.
    Constant,
    /// From inside `x`, mirrored at the edge, which is not repeated.
    Reflect,
    /// From the edge.
    Replicate,
}

/// How a `pad` pads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Padding {
    /// Where added elements come from.
    pub mode: PadMode,
    /// Elements before and after, one entry for each axis of `x`.
    pub pads: Vec<(u64, u64)>,
}

impl Padding {
    /// The padding of a `pad`, axes that it does not name filled in with none.
    ///
    /// # Errors
    /// When the arguments do not fit each other.
    pub fn of(call: &Call<'_>) -> Result<Padding, Reject> {
        let x = call.ty(0)?.shape;
        let given = call.ints(1)?;
        if !given.len().is_multiple_of(2) || given.len() > 2 * x.len() {
            let message = format!("has {} entries for {} axes", given.len(), x.len());
            return Err(call.reject(1, message, "give two entries for each axis, or for each of the last ones"));
        }
        let Some(given) = given.iter().map(|&n| u64::try_from(n).ok()).collect::<Option<Vec<u64>>>() else {
            return Err(call.reject(1, format!("is {given:?}"), "pads are not negative: use a slice"));
        };
        let mode = match call.text(2)?.as_str() {
            "constant" => PadMode::Constant,
            "reflect" => PadMode::Reflect,
            "replicate" => PadMode::Replicate,
            other => return Err(call.reject(2, format!("is \"{other}\""), "use constant, reflect or replicate")),
        };
        let mut pads = vec![(0, 0); x.len() - given.len() / 2];
        pads.extend(given.chunks_exact(2).map(|p| (p[0], p[1])));
        if mode == PadMode::Reflect
            && let Some(i) = (0..x.len()).find(|&i| pads[i].0.max(pads[i].1) >= x[i] && pads[i] != (0, 0))
        {
            let message = format!("is {:?} on axis {i}, of length {}", pads[i], x[i]);
            return Err(call.reject(1, message, "reflection adds less than the axis has"));
        }
        Ok(Padding { mode, pads })
    }
}

fn infer(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let x = call.ty(0)?;
    let padded = |(&n, &(before, after)): (&u64, &(u64, u64))| n.checked_add(before)?.checked_add(after);
    match x.shape.iter().zip(&Padding::of(call)?.pads).map(padded).collect() {
        Some(shape) => Ok(vec![Type { dtype: x.dtype, shape }]),
        None => Err(call.reject(1, "makes an axis longer than 64 bits count", "pad less")),
    }
}
