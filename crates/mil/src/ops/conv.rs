//! Convolutions.

use super::{ALL, Call, Cost, Domain, FLOATS, FROM_17, I32, Lit, Need, OpDef, Reject, STRING, TO_16, constant, op, optional, tensor};
use crate::ir::{DType, Type};

pub(super) const CONV_15: OpDef = op(
    "conv",
    "Convolution of `x` [n, c, spatial…] with `weight` [out, c / groups, kernel…], plus `bias` [out].",
    TO_16,
    &[
        tensor("x", Domain::T(FLOATS)),
        tensor("weight", Domain::T(FLOATS)),
        constant("bias", Domain::T(FLOATS), Need::Optional),
        constant("strides", I32, Need::Optional),
        constant("pad_type", STRING, Need::Default(Lit::Text("valid"))),
        constant("pad", I32, Need::Optional),
        constant("dilations", I32, Need::Optional),
        constant("groups", I32, Need::Default(Lit::Int(1))),
    ],
    Some(infer),
    cost,
);
pub(super) const CONV: OpDef = op(
    "conv",
    "Convolution of `x` [n, c, spatial…] with `weight` [out, c / groups, kernel…], plus `bias` [out].",
    FROM_17,
    &[
        tensor("x", Domain::T(FLOATS)),
        tensor("weight", Domain::U(FLOATS)),
        optional("bias", Domain::U(FLOATS)),
        constant("strides", I32, Need::Optional),
        constant("pad_type", STRING, Need::Default(Lit::Text("valid"))),
        constant("pad", I32, Need::Optional),
        constant("dilations", I32, Need::Optional),
        constant("groups", I32, Need::Default(Lit::Int(1))),
    ],
    Some(infer),
    cost,
);
pub(super) const CONV_QUANTIZED: OpDef = op(
    "conv_quantized",
    "Convolution with a weight in bytes.",
    ALL,
    &[
        tensor("x", Domain::T(FLOATS)),
        tensor("weight", Domain::U(&[DType::U8])),
        constant("bias", Domain::U(&[DType::U8]), Need::Optional),
        constant("quantization_type", STRING, Need::Required),
        constant("nbits", I32, Need::Default(Lit::Int(8))),
        constant("quant_scale", Domain::T(FLOATS), Need::Required),
        constant("quant_bias", Domain::T(FLOATS), Need::Required),
        constant("strides", I32, Need::Optional),
        constant("pad_type", STRING, Need::Default(Lit::Text("valid"))),
        constant("pad", I32, Need::Optional),
        constant("dilations", I32, Need::Optional),
        constant("groups", I32, Need::Default(Lit::Int(1))),
    ],
    None,
    cost,
);
pub(super) const CONV_TRANSPOSE_15: OpDef = op(
    "conv_transpose",
    "Transposed convolution of `x` [n, c, spatial…] with `weight` [c, out / groups, kernel…], plus `bias` [out].",
    TO_16,
    &[
        tensor("x", Domain::T(FLOATS)),
        constant("weight", Domain::T(FLOATS), Need::Required),
        constant("bias", Domain::T(FLOATS), Need::Optional),
        constant("pad", I32, Need::Optional),
        constant("output_shape", I32, Need::Optional),
        constant("pad_type", STRING, Need::Default(Lit::Text("valid"))),
        constant("strides", I32, Need::Optional),
        constant("dilations", I32, Need::Optional),
        constant("groups", I32, Need::Default(Lit::Int(1))),
    ],
    None,
    cost,
);
pub(super) const CONV_TRANSPOSE: OpDef = op(
    "conv_transpose",
    "Transposed convolution of `x` [n, c, spatial…] with `weight` [c, out / groups, kernel…], plus `bias` [out].",
    FROM_17,
    &[
        tensor("x", Domain::T(FLOATS)),
        tensor("weight", Domain::U(FLOATS)),
        optional("bias", Domain::U(FLOATS)),
        constant("pad", I32, Need::Optional),
        constant("output_shape", I32, Need::Optional),
        constant("pad_type", STRING, Need::Default(Lit::Text("valid"))),
        constant("strides", I32, Need::Optional),
        constant("dilations", I32, Need::Optional),
        constant("groups", I32, Need::Default(Lit::Int(1))),
    ],
    None,
    cost,
);

fn cost(call: &Call<'_>, out: &[Type]) -> Cost {
    let taps = call.ty(1).map_or(1, |w| w.shape.iter().skip(1).copied().fold(1, u64::saturating_mul));
    let bias = u64::from(call.has(2));
    Cost::each(call, out, taps.saturating_mul(2).saturating_add(bias))
}

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
        let positive = |i: usize| if call.has(i) { call.positive(i, spatial) } else { Ok(vec![1; spatial]) };
        let (strides, dilations) = (positive(3)?, positive(6)?);
        let groups = call.int(7)?;
        let Some(groups) = u64::try_from(groups).ok().filter(|&g| g > 0) else {
            return Err(call.reject(7, format!("is {groups}"), "give a positive number"));
        };
        let reach: Vec<u64> =
            weight[2..].iter().zip(&dilations).map(|(&k, &d)| k.saturating_sub(1).saturating_mul(d).saturating_add(1)).collect();
        let pads = pads(call, [4, 5], &x[2..], &reach, &strides)?;
        Ok(Window { strides, dilations, pads, groups })
    }
}

/// Elements added before and after each spatial axis, of lengths `x`, as parameters `pad_type` and `pad` say, for windows
/// that reach over `reach` elements and step by `strides`.
pub(super) fn pads(
    call: &Call<'_>,
    [pad_type, pad]: [usize; 2],
    x: &[u64],
    reach: &[u64],
    strides: &[u64],
) -> Result<Vec<(u64, u64)>, Reject> {
    let kind = call.text(pad_type)?;
    match kind.as_str() {
        "valid" => Ok(vec![(0, 0); x.len()]),
        "custom" => {
            let given = if call.has(pad) { call.ints_of(pad, 2 * x.len())? } else { vec![0; 2 * x.len()] };
            match given.iter().map(|&n| u64::try_from(n).ok()).collect::<Option<Vec<u64>>>() {
                Some(pads) => Ok(pads.chunks_exact(2).map(|p| (p[0], p[1])).collect()),
                None => Err(call.reject(pad, format!("is {given:?}"), "pads are not negative")),
            }
        }
        "same" | "same_lower" => {
            let mut pads = Vec::with_capacity(x.len());
            for (i, &n) in x.iter().enumerate() {
                // So many that the result has ceil(length / stride) positions; the odd one goes after, or before.
                let steps = n.div_ceil(strides[i]).saturating_sub(1);
                let Some(total) = steps.checked_mul(strides[i]).and_then(|s| s.checked_add(reach[i])) else {
                    return Err(call.reject(pad_type, "reaches further than 64 bits count", "use a smaller kernel or dilation"));
                };
                let total = total.saturating_sub(n);
                let (less, more) = (total / 2, total - total / 2);
                pads.push(if kind == "same" { (less, more) } else { (more, less) });
            }
            Ok(pads)
        }
        other => Err(call.reject(pad_type, format!("is \"{other}\""), "use valid, custom, same or same_lower")),
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
