//! How large values can get.

use super::scope::Scope;
use crate::ir::{DType, Literal};
use crate::ops::{Call, OpKind};

/// By index of the value: a number that no element passes in magnitude, where one is known without the inputs.
pub(super) fn bounds(s: &Scope<'_>) -> Vec<Option<f64>> {
    let mut known = vec![None; s.function.values.len()];
    for call in s.every() {
        let bound = bound(s, &call, &known).filter(|b| b.is_finite());
        call.op.results.iter().for_each(|v| known[v.index()] = bound);
    }
    known
}

fn bound(s: &Scope<'_>, call: &Call<'_>, known: &[Option<f64>]) -> Option<f64> {
    let of = |i: usize| match call.value(i) {
        Some(v) => known[v.index()],
        None => magnitude(s, &call.literal(i).ok()?),
    };
    match call.op.kind {
        OpKind::Const => magnitude(s, call.op.attr("val")?),
        OpKind::Sigmoid | OpKind::SigmoidHard | OpKind::Softmax | OpKind::Tanh | OpKind::Sin | OpKind::Cos | OpKind::Erf => Some(1.0),
        OpKind::Relu6 => Some(6.0),
        OpKind::Clip => Some(call.float(1).ok()?.abs().max(call.float(2).ok()?.abs())),
        OpKind::Relu
        | OpKind::Abs
        | OpKind::Silu
        | OpKind::Cast
        | OpKind::Identity
        | OpKind::Reshape
        | OpKind::Transpose
        | OpKind::ExpandDims
        | OpKind::Squeeze
        | OpKind::SliceBySize
        | OpKind::SliceByIndex
        | OpKind::Split
        | OpKind::Tile
        | OpKind::ReduceMax
        | OpKind::ReduceMin
        | OpKind::ReduceMean => of(0),
        OpKind::Concat | OpKind::Stack => call.list(0).iter().try_fold(0.0, |most: f64, v| Some(most.max(known[v.index()]?))),
        OpKind::Maximum | OpKind::Minimum => Some(of(0)?.max(of(1)?)),
        OpKind::Add | OpKind::Sub => Some(of(0)? + of(1)?),
        OpKind::Mul => Some(of(0)? * of(1)?),
        OpKind::ReduceSum => {
            let results: u64 = call.op.results.iter().map(|v| s.function.values[*v].ty.numel() as u64).sum();
            Some(of(0)? * (call.ty(0).ok()?.numel() as u64 / results.max(1)) as f64)
        }
        OpKind::Matmul => {
            let x = call.ty(0).ok()?.shape;
            let inner = *x.iter().nth_back(usize::from(call.flag(2).ok()?))?;
            Some(of(0)? * of(1)? * inner as f64)
        }
        OpKind::Conv => {
            let taps = call.ty(1).ok()?.shape.iter().skip(1).fold(1.0, |n, &d| n * d as f64);
            let bias = if call.has(2) { of(2)? } else { 0.0 };
            Some(of(0)? * of(1)? * taps + bias)
        }
        _ => None,
    }
}

/// The largest magnitude in a constant of numbers.
fn magnitude(s: &Scope<'_>, literal: &Literal) -> Option<f64> {
    let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, |most: f64, x| most.max(x.abs()));
    match literal {
        Literal::Floats(_, values) => Some(largest(&mut values.iter().copied())),
        Literal::Blob { ty, .. } if ty.dtype == DType::F16 => Some(largest(&mut s.blobs.f16s(literal).ok()?.iter().map(|x| x.to_f64()))),
        _ => None,
    }
}
