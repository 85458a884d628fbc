//! Normalisations. Inside they are exact: what the chip does there was never measured.

use super::args::Args;
use super::tensor::{Tensor, walk};
use std::sync::Arc;

/// Moves and scales each channel by constants.
pub(super) fn batch_norm(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let (x, mean, variance) = (args.tensor("x")?, args.tensor("mean")?, args.tensor("variance")?);
    let (gamma, beta, epsilon) = (args.optional("gamma")?, args.optional("beta")?, args.number("epsilon")?);
    Ok(vec![args.make(0, |i| {
        let c = i[1];
        let y = (x.at(i) - mean.data[c]) / (variance.data[c] + epsilon).sqrt();
        y * or(&gamma, c, 1.0) + or(&beta, c, 0.0)
    })])
}

/// By sample and channel, over all that is left.
pub(super) fn instance_norm(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("x")?;
    let (gamma, beta, epsilon) = (args.optional("gamma")?, args.optional("beta")?, args.number("epsilon")?);
    let axes: Vec<usize> = (2..x.dims.len()).collect();
    let normal = normal(&x, &axes, epsilon);
    Ok(vec![args.make(0, |i| normal.at(i) * or(&gamma, i[1], 1.0) + or(&beta, i[1], 0.0))])
}

/// Over `axes`, with a scale and an offset for each element of them.
pub(super) fn layer_norm(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("x")?;
    let (gamma, beta, epsilon) = (args.optional("gamma")?, args.optional("beta")?, args.number("epsilon")?);
    let mut axes = args.axes("axes", x.dims.len())?;
    axes.sort_unstable();
    let normal = normal(&x, &axes, epsilon);
    Ok(vec![args.make(0, |i| {
        let own = axes.iter().fold(0, |p, &a| p * x.dims[a] + i[a]);
        normal.at(i) * or(&gamma, own, 1.0) + or(&beta, own, 0.0)
    })])
}

/// Divided by the root of the sum of squares over all axes but the first.
pub(super) fn l2_norm(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let (x, epsilon) = (args.tensor("x")?, args.number("epsilon")?);
    let size = x.data.len() / x.dims.first().copied().unwrap_or(1).max(1);
    let norms: Vec<f64> = x.data.chunks(size).map(|s| (s.iter().map(|x| x * x).sum::<f64>() + epsilon).sqrt()).collect();
    Ok(vec![args.make(0, |i| x.at(i) / norms[i.first().copied().unwrap_or(0)])])
}

fn or(t: &Option<Arc<Tensor>>, i: usize, absent: f64) -> f64 {
    t.as_ref().map_or(absent, |t| t.data[i])
}

/// `x` less its mean over `axes`, divided by the root of its variance and `epsilon`; not rounded.
fn normal(x: &Tensor, axes: &[usize], epsilon: f64) -> Tensor {
    let rank = x.dims.len();
    let extents = |over: bool| (0..rank).map(|a| if axes.contains(&a) == over { x.dims[a] } else { 1 }).collect::<Vec<usize>>();
    let mut y = x.clone();
    walk(&extents(false), |i| {
        let mut places = Vec::new();
        walk(&extents(true), |j| {
            let index: Vec<usize> = i.iter().zip(j).map(|(a, b)| a + b).collect();
            places.push(super::tensor::position(&x.dims, &index));
        });
        let count = places.len() as f64;
        let mean = places.iter().map(|&p| x.data[p]).sum::<f64>() / count;
        let variance = places.iter().map(|&p| (x.data[p] - mean).powi(2)).sum::<f64>() / count;
        for p in places {
            y.data[p] = (x.data[p] - mean) / (variance + epsilon).sqrt();
        }
    });
    y
}
