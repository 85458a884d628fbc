//! Ops that look along an axis: softmax, reductions.

use super::args::Args;
use super::tensor::Tensor;
use mil::ops::OpKind;

/// Folds axes.
pub(super) fn reduce(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("x")?;
    let rank = x.dims.len();
    let axes = args.axes("axes", rank)?;
    let folded: Vec<usize> = (0..rank).map(|a| if axes.contains(&a) { x.dims[a] } else { 1 }).collect();
    let kept: Vec<usize> = (0..rank).map(|a| if axes.contains(&a) { 1 } else { x.dims[a] }).collect();
    let narrow = args.rules.imitates(x.dtype);
    // The chip's sum is fp16 inside; a language's is exact.
    let sum = |x: &[f64]| if narrow { args.rules.narrow_sum(x) } else { x.iter().sum() };
    let largest = |x: &[f64]| x.iter().fold(f64::NEG_INFINITY, |a, &b| if b > a || b.is_nan() { b } else { a });
    let fold = |line: &[f64]| match args.call.op.kind {
        OpKind::ReduceSum => Ok(sum(line)),
        OpKind::ReduceMean => Ok(sum(line) / line.len() as f64),
        OpKind::ReduceMax => Ok(largest(line)),
        other => Err(format!("{} is no reduction", other.name())),
    };
    let ty = args.result(0);
    let mut data = Vec::new();
    let mut failed = None;
    super::tensor::walk(&kept, |i| {
        let line = Tensor::new(x.dtype, &folded, |j| x.at(&i.iter().zip(j).map(|(a, b)| a + b).collect::<Vec<_>>()));
        match fold(&line.data) {
            Ok(y) => data.push(args.rules.store(ty.dtype, y)),
            Err(text) => failed = Some(text),
        }
    });
    match failed {
        Some(text) => Err(text),
        None => Ok(vec![Tensor { dtype: ty.dtype, dims: ty.dims(), data }]),
    }
}

pub(super) fn softmax_op(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("x")?;
    Ok(vec![softmax(args, &x, args.axis("axis", x.dims.len())?)])
}

/// The maximum is subtracted inside, on the chip too (ane-measurements 1.2); a lane of infinity takes all (1.3).
pub(super) fn softmax(args: &Args<'_>, x: &Tensor, axis: usize) -> Tensor {
    let lane = |i: &[usize]| {
        let mut j = i.to_vec();
        (0..x.dims[axis])
            .map(|n| {
                j[axis] = n;
                x.at(&j)
            })
            .collect::<Vec<f64>>()
    };
    let chip = args.rules.imitates(x.dtype);
    Tensor::new(x.dtype, &x.dims, |i| {
        let lane = lane(i);
        let top = lane.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // inf − inf is 0 to the chip.
        let e = |v: f64| if chip && v == top { 1.0 } else { (v - top).exp() };
        args.rules.store(x.dtype, e(x.at(i)) / lane.iter().map(|&v| e(v)).sum::<f64>())
    })
}
