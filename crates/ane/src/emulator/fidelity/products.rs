//! Sums of products: matmul, conv, attention.

use super::args::{Args, reject};
use super::mac::{Tile, dot, saturate};
use super::reduce::softmax;
use super::tensor::{Tensor, position, walk};
use mil::ops::Window;
use mil::{DType, Type};
use rayon::prelude::*;

/// How the sums of an op on `dtype` are taken: `None`, exactly.
fn tile_of(args: &Args<'_>, dtype: DType, tile: Tile) -> Option<Tile> {
    args.rules.imitates(dtype).then_some(tile)
}

/// Σ aᵢ·bᵢ + bias before rounding.
fn sum(args: &Args<'_>, tile: Option<Tile>, a: &[f64], b: &[f64], bias: f64) -> f64 {
    match tile {
        Some(tile) => saturate(dot(args.rules.mac, tile, a, b) + bias),
        None => a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() + bias,
    }
}

pub(super) fn matmul(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let (x, y) = (args.tensor("x")?, args.tensor("y")?);
    Ok(vec![product(args, &x, args.flag("transpose_x")?, &y, args.flag("transpose_y")?, None, args.result(0))])
}

/// `x · weightᵀ + bias`.
pub(super) fn linear(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let (x, weight, bias) = (args.tensor("x")?, args.tensor("weight")?, args.optional("bias")?);
    let ty = args.result(0);
    let depth = weight.dims[1];
    let rows = x.reshape(&[x.data.len() / depth, depth]);
    let flat = Type { dtype: ty.dtype, shape: vec![rows.dims[0] as u64, weight.dims[0] as u64] };
    let y = product(args, &rows, false, &weight, true, bias.as_ref().map(|b| b.data.as_slice()), &flat);
    Ok(vec![y.reshape(&ty.dims())])
}

/// `x · y` over the last two axes, leading ones broadcast; a bias for each column joins the sum before it is rounded. Rows of the result are computed in parallel; each is one task's alone.
fn product(args: &Args<'_>, x: &Tensor, flip_x: bool, y: &Tensor, flip_y: bool, bias: Option<&[f64]>, ty: &Type) -> Tensor {
    let tile = tile_of(args, ty.dtype, args.rules.matmul_tile());
    let dims = ty.dims();
    let (lead, tail) = dims.split_at(dims.len() - 2);
    let (rows, cols) = (tail[0], tail[1]);
    let depth = x.dims[x.dims.len() - if flip_x { 2 } else { 1 }];
    let mut data = Vec::with_capacity(dims.iter().product());
    walk(lead, |batch| {
        // Both operands as vectors along the contraction.
        let vectors = |t: &Tensor, count: usize, along_rows: bool| {
            let own = &t.dims[..t.dims.len() - 2];
            let start: Vec<usize> = own.iter().zip(&batch[batch.len() - own.len()..]).map(|(&d, &i)| if d == 1 { 0 } else { i }).collect();
            let base = position(own, &start) * count * depth;
            let place = |v: usize, k: usize| if along_rows { v * depth + k } else { k * count + v };
            (0..count).map(|v| (0..depth).map(|k| t.data[base + place(v, k)]).collect()).collect::<Vec<Vec<f64>>>()
        };
        let (a, b) = (vectors(x, rows, !flip_x), vectors(y, cols, flip_y));
        let element = |a: &[f64], b: &[f64], bias: f64| args.rules.store_sum(ty.dtype, sum(args, tile, a, b, bias));
        let row = |a: &Vec<f64>| b.iter().enumerate().map(|(c, b)| element(a, b, bias.map_or(0.0, |bias| bias[c]))).collect();
        let made: Vec<Vec<f64>> = args.pool.install(|| a.par_iter().map(row).collect());
        data.extend(made.into_iter().flatten());
    });
    Tensor { dtype: ty.dtype, dims, data }
}

/// A convolution over any number of spatial axes. A single tap is a plain multiplication: it keeps fp16's range.
pub(super) fn conv(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let (x, weight, bias) = (args.tensor("x")?, args.tensor("weight")?, args.optional("bias")?);
    let window = Window::of(args.call).map_err(reject)?;
    let ty = args.result(0);
    let tile = tile_of(args, ty.dtype, args.rules.conv_tile());
    let taps: usize = weight.dims[1..].iter().product();
    let outs = weight.dims[0] / window.groups as usize;
    let (dims, kernel, rank) = (ty.dims(), &weight.dims[1..], weight.dims.len());
    let channel = |image: usize, out: usize| {
        let group = out / outs;
        let row = &weight.data[out * taps..][..taps];
        let bias = bias.as_ref().map_or(0.0, |b| b.data[out]);
        let mut results = Vec::new();
        let mut patch = vec![0f64; taps];
        walk(&dims[2..], |place| {
            let mut n = 0;
            walk(kernel, |tap| {
                let mut from = vec![image, group * kernel[0] + tap[0]];
                for a in 0..rank - 2 {
                    let at = place[a] as u64 * window.strides[a] + tap[1 + a] as u64 * window.dilations[a];
                    from.push((at as usize).wrapping_sub(window.pads[a].0 as usize));
                }
                let inside = from.iter().zip(&x.dims).all(|(i, d)| i < d);
                patch[n] = if inside { x.at(&from) } else { 0.0 };
                n += 1;
            });
            results.push(match tile {
                Some(_) if taps == 1 => args.rules.store(ty.dtype, patch[0] * row[0] + bias),
                _ => args.rules.store_sum(ty.dtype, sum(args, tile, &patch, row, bias)),
            });
        });
        results
    };
    let channels: Vec<(usize, usize)> = (0..dims[0]).flat_map(|image| (0..dims[1]).map(move |out| (image, out))).collect();
    let made: Vec<Vec<f64>> = args.pool.install(|| channels.par_iter().map(|&(image, out)| channel(image, out)).collect());
    Ok(vec![Tensor { dtype: ty.dtype, data: made.concat(), dims }])
}

/// softmax(q · kᵀ / √E) · v. The chip ignores the mask (ane-facts 5.2); the language adds it.
pub(super) fn attention(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let (q, k, v, mask) = (args.tensor("query")?, args.tensor("key")?, args.tensor("value")?, args.optional("attn_mask")?);
    let ty = args.result(0);
    let rank = ty.shape.len();
    // Only the chip rounds between the steps.
    let dtype = if args.rules.chip.is_some() { ty.dtype } else { DType::F64 };
    let mut scores_ty = Type { dtype, ..ty.clone() };
    scores_ty.shape[rank - 1] = k.dims[rank - 2] as u64;
    let mut scores = product(args, &q, false, &k, true, None, &scores_ty);
    let scale = 1.0 / (q.dims[rank - 1] as f64).sqrt();
    scores.data.iter_mut().for_each(|x| *x = args.rules.store(dtype, *x * scale));
    if let Some(mask) = mask.filter(|_| args.rules.chip.is_none()) {
        let lets = |m: f64| {
            if mask.dtype != DType::Bool {
                m
            } else if m == 0.0 {
                f64::NEG_INFINITY
            } else {
                0.0
            }
        };
        let dims = scores.dims.clone();
        scores = Tensor::new(dtype, &dims, |i| scores.at(i) + lets(mask.broadcast(i)));
    }
    let probabilities = softmax(args, &scores, rank - 1);
    Ok(vec![product(args, &probabilities, false, &v, false, None, ty)])
}
