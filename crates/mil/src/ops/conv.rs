//! `conv`.

use super::{ALL, Call, Cost, Domain, FLOATS, I32, Kind, Lit, Need, OpDef, Param, Reject, STRING, constant, tensor};
use crate::ir::Type;

/// Convolution over one to three spatial axes, in groups.
pub(super) const CONV: OpDef = OpDef {
    name: "conv",
    doc: "Convolution of `x` [n, c, spatial…] with `weight` [out, c / groups, kernel…], plus `bias` [out].",
    opsets: ALL,
    params: &[
        tensor("x", Domain::T(FLOATS)),
        tensor("weight", Domain::U(FLOATS)),
        Param { name: "bias", kind: Kind::Tensor, domain: Domain::U(FLOATS), need: Need::Optional },
        constant("strides", I32, Need::Optional),
        constant("pad_type", STRING, Need::Default(Lit::Text("valid"))),
        constant("pad", I32, Need::Optional),
        constant("dilations", I32, Need::Optional),
        constant("groups", I32, Need::Default(Lit::Int(1))),
    ],
    infer: Some(infer),
    cost: |call, out| {
        let taps = call.ty(1).map_or(1, |w| w.shape.iter().skip(1).copied().fold(1, u64::saturating_mul));
        let bias = u64::from(call.has(2));
        Cost::each(call, out, taps.saturating_mul(2).saturating_add(bias))
    },
};

/// How a `conv` walks over its input: one entry for each spatial axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Elements between neighbouring positions.
    pub strides: Vec<u64>,
    /// Elements between neighbouring taps of the kernel.
    pub dilations: Vec<u64>,
    /// Zeros before and after each axis.
    pub pads: Vec<(u64, u64)>,
    /// Groups of channels that do not see each other.
    pub groups: u64,
}

impl Window {
    /// The window of a `conv`, defaults filled in and `pad_type` resolved.
    ///
    /// # Errors
    /// When the arguments do not fit each other.
    pub fn of(call: &Call<'_>) -> Result<Window, Reject> {
        let (x, weight) = (call.ty(0)?.shape, call.ty(1)?.shape);
        let spatial = x.len().saturating_sub(2);
        if !(1..=3).contains(&spatial) {
            return Err(call.reject(0, format!("has rank {}", x.len()), "conv wants [n, c] and one to three spatial axes"));
        }
        if weight.len() != x.len() {
            return Err(call.reject(
                1,
                format!("has rank {} where x has {}", weight.len(), x.len()),
                "give as many kernel axes as spatial ones",
            ));
        }
        let positive = |i: usize| -> Result<Vec<u64>, Reject> {
            if !call.has(i) {
                return Ok(vec![1; spatial]);
            }
            let values = call.ints_of(i, spatial)?;
            match values.iter().map(|&n| u64::try_from(n).ok().filter(|&n| n > 0)).collect() {
                Some(values) => Ok(values),
                None => Err(call.reject(i, format!("is {values:?}"), "give positive numbers")),
            }
        };
        let (strides, dilations) = (positive(3)?, positive(6)?);
        let groups = call.int(7)?;
        let Some(groups) = u64::try_from(groups).ok().filter(|&g| g > 0) else {
            return Err(call.reject(7, format!("is {groups}"), "give a positive number"));
        };
        let reach = |i: usize| weight[i + 2].checked_sub(1)?.checked_mul(dilations[i])?.checked_add(1);
        let pad_type = call.text(4)?;
        let pads = match pad_type.as_str() {
            "valid" => vec![(0, 0); spatial],
            "custom" => {
                let given = if call.has(5) { call.ints_of(5, 2 * spatial)? } else { vec![0; 2 * spatial] };
                match given.iter().map(|&n| u64::try_from(n).ok()).collect::<Option<Vec<u64>>>() {
                    Some(pads) => pads.chunks_exact(2).map(|p| (p[0], p[1])).collect(),
                    None => return Err(call.reject(5, format!("is {given:?}"), "pads are not negative")),
                }
            }
            "same" | "same_lower" => {
                let mut pads = Vec::with_capacity(spatial);
                for i in 0..spatial {
                    // Zeros so that the result has ceil(length / stride) positions; the odd one goes after, or before.
                    let steps = x[i + 2].div_ceil(strides[i]).saturating_sub(1);
                    let total = steps.checked_mul(strides[i]).zip(reach(i)).and_then(|(s, r)| s.checked_add(r));
                    let Some(total) = total.map(|t| t.saturating_sub(x[i + 2])) else {
                        return Err(call.reject(1, "reaches further than 64 bits count", "use a smaller kernel or dilation"));
                    };
                    let (less, more) = (total / 2, total - total / 2);
                    pads.push(if pad_type == "same" { (less, more) } else { (more, less) });
                }
                pads
            }
            other => return Err(call.reject(4, format!("is \"{other}\""), "use valid, custom, same or same_lower")),
        };
        Ok(Window { strides, dilations, pads, groups })
    }
}

fn infer(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let window = Window::of(call)?;
    let (x, weight) = (call.ty(0)?, call.ty(1)?.shape);
    let channels = x.shape[1];
    if weight[1].checked_mul(window.groups) != Some(channels) {
        let message = format!("takes {} channels in {} group(s) where x has {channels}", weight[1], window.groups);
        return Err(call.reject(1, message, "weight is [out, channels / groups, kernel…]"));
    }
    if weight[0] % window.groups != 0 {
        return Err(call.reject(7, format!("is {}, which does not divide {} outputs", window.groups, weight[0]), "give a divisor of both"));
    }
    if call.has(2) && call.ty(2)?.shape != weight[..1] {
        return Err(call.reject(2, format!("has shape {:?}", call.ty(2)?.shape), "bias is [out]"));
    }
    let mut shape = vec![x.shape[0], weight[0]];
    for i in 0..window.strides.len() {
        let (before, after) = window.pads[i];
        let padded = x.shape[i + 2].checked_add(before).and_then(|n| n.checked_add(after));
        let reach = weight[i + 2].checked_sub(1).and_then(|k| k.checked_mul(window.dilations[i])).and_then(|k| k.checked_add(1));
        match padded.zip(reach).and_then(|(n, k)| n.checked_sub(k)) {
            Some(room) => shape.push(room / window.strides[i] + 1),
            None => {
                return Err(call.reject(
                    1,
                    format!("reaches beyond spatial axis {i} of x, of length {}", x.shape[i + 2]),
                    "pad x or use a smaller kernel",
                ));
            }
        }
    }
    Ok(vec![Type { dtype: x.dtype, shape }])
}
