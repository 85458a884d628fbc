//! Pooling.

use super::{ALL, BOOL, Call, Cost, Domain, FLOATS, I32, Lit, Need, OpDef, Param, Reject, STRING, constant, conv::pads, op, tensor};
use crate::ir::Type;

const X_KERNEL_SIZES_STRIDES_ETC_FLOAT: &[Param] = &[
    tensor("x", Domain::T(FLOATS)),
    constant("kernel_sizes", I32, Need::Required),
    constant("strides", I32, Need::Optional),
    constant("pad_type", STRING, Need::Required),
    constant("pad", I32, Need::Optional),
    constant("ceil_mode", BOOL, Need::Default(Lit::False)),
];

pub(super) const AVG_POOL: OpDef = op(
    "avg_pool",
    "Mean over windows.",
    ALL,
    &[
        tensor("x", Domain::T(FLOATS)),
        constant("kernel_sizes", I32, Need::Required),
        constant("strides", I32, Need::Optional),
        constant("pad_type", STRING, Need::Required),
        constant("pad", I32, Need::Optional),
        constant("ceil_mode", BOOL, Need::Default(Lit::False)),
        constant("exclude_padding_from_average", BOOL, Need::Default(Lit::False)),
    ],
    Some(infer),
    cost,
);
pub(super) const MAX_POOL: OpDef = op("max_pool", "Largest element of windows.", ALL, X_KERNEL_SIZES_STRIDES_ETC_FLOAT, Some(infer), cost);
pub(super) const L2_POOL: OpDef =
    op("l2_pool", "Square root of the sum of squares over windows.", ALL, X_KERNEL_SIZES_STRIDES_ETC_FLOAT, Some(infer), cost);

/// The windows of a pooling op: one entry for each spatial axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Lengths of the window.
    pub kernel: Vec<u64>,
    /// Elements between neighbouring windows.
    pub strides: Vec<u64>,
    /// Elements before and after each axis.
    pub pads: Vec<(u64, u64)>,
    /// A last window that is not whole counts too.
    pub ceil: bool,
}

impl Pool {
    /// The windows of a pooling op, defaults filled in and `pad_type` resolved.
    ///
    /// # Errors
    /// When the arguments do not fit each other.
    pub fn of(call: &Call<'_>) -> Result<Pool, Reject> {
        // `avg_pool` has a parameter more; it stands last.
        let x = call.ty(0)?.shape;
        let spatial = x.len().saturating_sub(2);
        if !(1..=3).contains(&spatial) {
            return Err(call.reject(0, format!("has rank {}", x.len()), "pooling wants [n, c] and one to three spatial axes"));
        }
        let kernel = call.positive(1, spatial)?;
        let strides = if call.has(2) { call.positive(2, spatial)? } else { vec![1; spatial] };
        let ceil = call.flag(5)?;
        let pads = pads(call, [3, 4], &x[2..], &kernel, &strides)?;
        if ceil && (call.text(3)? == "same" || pads.iter().any(|p| p.0 != p.1)) {
            return Err(call.reject(5, "is set where padding differs between the ends", "pad both ends alike"));
        }
        Ok(Pool { kernel, strides, pads, ceil })
    }
}

fn infer(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let pool = Pool::of(call)?;
    let x = call.ty(0)?;
    let mut shape = x.shape[..2].to_vec();
    for (i, &n) in x.shape[2..].iter().enumerate() {
        let (k, s, (before, after)) = (pool.kernel[i], pool.strides[i], pool.pads[i]);
        let Some(room) = n.saturating_add(before).saturating_add(after).checked_sub(k) else {
            return Err(call.reject(1, format!("is {k} on spatial axis {i}, of length {n}"), "pad x or use a smaller window"));
        };
        let mut steps = if pool.ceil { room.div_ceil(s) + 1 } else { room / s + 1 };
        // The last window starts inside x or in front of it.
        if pool.ceil && before > 0 && (steps - 1).saturating_mul(s) >= n + before {
            steps -= 1;
        }
        shape.push(steps);
    }
    Ok(vec![Type { dtype: x.dtype, shape }])
}

fn cost(call: &Call<'_>, out: &[Type]) -> Cost {
    let taps = call.ints(1).map_or(1, |k| k.iter().fold(1u64, |n, &k| n.saturating_mul(k.unsigned_abs())));
    Cost::each(call, out, taps)
}
