//! Type rules and costs that entries share.

use super::{Call, Cost, Reject};
use crate::ir::Type;

/// The shape that `a` and `b` broadcast to, if they do: axes aligned at the last, each equal or 1.
pub fn broadcast(a: &[u64], b: &[u64]) -> Option<Vec<u64>> {
    let rank = a.len().max(b.len());
    let axis = |s: &[u64], i: usize| if i + s.len() < rank { 1 } else { s[i + s.len() - rank] };
    (0..rank)
        .map(|i| match (axis(a, i), axis(b, i)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

pub(super) fn one_flop(call: &Call<'_>, results: &[Type]) -> Cost {
    Cost::each(call, results, 1)
}

pub(super) fn two_flops(call: &Call<'_>, results: &[Type]) -> Cost {
    Cost::each(call, results, 2)
}

/// The type of the first parameter.
pub(super) fn same(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    Ok(vec![call.ty(0)?])
}

/// The type of the first parameter, [n, c, …], where `params`, if given, have one entry for each channel.
pub(super) fn per_channel(call: &Call<'_>, params: &[usize]) -> Result<Vec<Type>, Reject> {
    let x = call.ty(0)?;
    let Some(&channels) = x.shape.get(1) else {
        return Err(call.reject(0, format!("has rank {}", x.shape.len()), "give [n, c, …]"));
    };
    for &i in params.iter().filter(|&&i| call.has(i)) {
        let shape = call.ty(i)?.shape;
        if shape != [channels] {
            return Err(call.reject(i, format!("has shape {shape:?} where x has {channels} channels"), "give one entry for each channel"));
        }
    }
    Ok(vec![x])
}
