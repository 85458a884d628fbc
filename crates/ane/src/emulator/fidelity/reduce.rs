//! Ops that look along axes: reductions, running sums, softmax.

use super::args::Args;
use super::rules::Rules;
use super::tensor::{Tensor, walk};
use mil::ops::OpKind;

/// Folds axes.
pub(super) fn reduce(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("x")?;
    let rank = x.dims.len();
    let axes = if args.index("axis").is_ok() { vec![args.axis("axis", rank)?] } else { args.axes("axes", rank)? };
    let extents = |folded: bool| (0..rank).map(|a| if axes.contains(&a) == folded { x.dims[a] } else { 1 }).collect::<Vec<usize>>();
    let (folded, kept) = (extents(true), extents(false));
    let fold = fold(args.call.op.kind, args.rules, args.rules.imitates(x.dtype))?;
    let ty = args.result(0);
    let mut data = Vec::new();
    walk(&kept, |i| {
        let line = Tensor::new(x.dtype, &folded, |j| x.at(&i.iter().zip(j).map(|(a, b)| a + b).collect::<Vec<_>>()));
        data.push(args.rules.store(ty.dtype, fold(&line.data)));
    });
    Ok(vec![Tensor { dtype: ty.dtype, dims: ty.dims(), data }])
}

type Fold = Box<dyn Fn(&[f64]) -> f64>;

/// What becomes of the elements of a line. The chip's sums are fp16 inside, a language's exact.
fn fold(kind: OpKind, rules: Rules, narrow: bool) -> Result<Fold, String> {
    let sum = move |x: &[f64]| if narrow { rules.narrow_sum(x) } else { x.iter().sum::<f64>() };
    let each = move |x: &[f64], f: fn(f64) -> f64| sum(&x.iter().map(|&x| f(x)).collect::<Vec<f64>>());
    // The first of those that beat all others.
    let best = |x: &[f64], beats: fn(f64, f64) -> bool| (1..x.len()).fold(0, |best, i| if beats(x[i], x[best]) { i } else { best });
    Ok(match kind {
        OpKind::ReduceSum => Box::new(sum),
        OpKind::ReduceMean => Box::new(move |x| sum(x) / x.len() as f64),
        OpKind::ReduceMax => Box::new(move |x| x[best(x, |a, b| a > b || a.is_nan())]),
        OpKind::ReduceMin => Box::new(move |x| x[best(x, |a, b| a < b || a.is_nan())]),
        OpKind::ReduceArgmax => Box::new(move |x| best(x, |a, b| a > b) as f64),
        OpKind::ReduceArgmin => Box::new(move |x| best(x, |a, b| a < b) as f64),
        OpKind::ReduceProd => Box::new(|x| x.iter().product()),
        OpKind::ReduceL1Norm => Box::new(move |x| each(x, f64::abs)),
        OpKind::ReduceL2Norm => Box::new(move |x| each(x, |x| x * x).sqrt()),
        OpKind::ReduceSumSquare => Box::new(move |x| each(x, |x| x * x)),
        OpKind::ReduceLogSum => Box::new(move |x| sum(x).ln()),
        OpKind::ReduceLogSumExp => Box::new(move |x| {
            let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if top.is_infinite() { top } else { top + x.iter().map(|x| (x - top).exp()).sum::<f64>().ln() }
        }),
        other => return Err(format!("{} is no reduction", other.name())),
    })
}

/// Sums of all elements up to each, along an axis; the chip rounds as they run.
pub(super) fn cumsum(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("x")?;
    let axis = args.axis("axis", x.dims.len())?;
    let (exclusive, reverse) = (args.flag("exclusive")?, args.flag("reverse")?);
    Ok(vec![args.make(0, |i| {
        let (at, len) = (i[axis], x.dims[axis]);
        let mut from = i.to_vec();
        let before = if reverse { (at..len).rev().collect::<Vec<_>>() } else { (0..=at).collect() };
        let mut taken = before.len() - usize::from(exclusive);
        let mut sum = 0.0;
        for n in before {
            if taken == 0 {
                break;
            }
            taken -= 1;
            from[axis] = n;
            sum += x.at(&from);
            if args.rules.imitates(x.dtype) {
                sum = args.rules.store(x.dtype, sum);
            }
        }
        sum
    })])
}

pub(super) fn softmax_op(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("x")?;
    Ok(vec![softmax(args, &x, args.axis("axis", x.dims.len())?)])
}

/// The maximum is subtracted inside, on the chip too (ane-measurements 1.2); a lane of infinity takes all (1.3).
pub(super) fn softmax(args: &Args<'_>, x: &Tensor, axis: usize) -> Tensor {
    let chip = args.rules.imitates(x.dtype);
    // inf − inf is 0 to the chip.
    let e = |v: f64, top: f64| if chip && v == top { 1.0 } else { (v - top).exp() };
    let mut kept = x.dims.clone();
    kept[axis] = 1;
    let mut y = x.clone();
    walk(&kept, |i| {
        let places: Vec<usize> = (0..x.dims[axis])
            .map(|n| {
                let mut j = i.to_vec();
                j[axis] = n;
                super::tensor::position(&x.dims, &j)
            })
            .collect();
        let top = places.iter().map(|&p| x.data[p]).fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = places.iter().map(|&p| e(x.data[p], top)).sum();
        for p in places {
            y.data[p] = args.rules.store(x.dtype, e(x.data[p], top) / total);
        }
    });
    y
}
