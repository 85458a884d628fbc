//! Ops that move elements and compute nothing.

use super::args::{Args, reject};
use super::tensor::Tensor;
use mil::Chip;
use mil::ops::{Cut, PadMode, Padding};

/// The same elements under other extents.
pub(super) fn relabel(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    Ok(vec![args.tensor("x")?.reshape(&args.result(0).dims())])
}

pub(super) fn transpose(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("x")?;
    let perm = args.axes("perm", x.dims.len())?;
    let mut from = vec![0; perm.len()];
    Ok(vec![args.make(0, |i| {
        perm.iter().zip(i).for_each(|(&p, &i)| from[p] = i);
        x.at(&from)
    })])
}

/// On M1 and M2 what is cut out at a width offset is infinite beyond 4094 (ane-measurements 1.3).
fn cropped(args: &Args<'_>, offset: bool, x: f64) -> f64 {
    let crops = offset && args.rules.imitates(args.result(0).dtype) && args.rules.chip <= Some(Chip::H14);
    if crops && x.abs() > 4094.0 { f64::INFINITY.copysign(x) } else { x }
}

pub(super) fn slice(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("x")?;
    let cuts = Cut::of(args.call).map_err(reject)?;
    let offset = cuts.last().is_some_and(|c| c.begin != 0);
    let mut from = vec![0; cuts.len()];
    Ok(vec![args.make(0, |i| {
        let mut i = i.iter();
        for (from, cut) in from.iter_mut().zip(&cuts) {
            let step = if cut.squeeze { 0 } else { i.next().map_or(0, |&i| i as i64) };
            *from = (cut.begin as i64 + cut.step * step) as usize;
        }
        cropped(args, offset, x.at(&from))
    })])
}

pub(super) fn split(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("x")?;
    let axis = args.axis("axis", x.dims.len())?;
    let mut begin = 0;
    let part = |n| {
        let offset = begin != 0 && axis + 1 == x.dims.len();
        let out = args.make(n, |i| {
            let mut from = i.to_vec();
            from[axis] += begin;
            cropped(args, offset, x.at(&from))
        });
        begin += out.dims[axis];
        out
    };
    Ok((0..args.call.op.results.len()).map(part).collect())
}

pub(super) fn concat(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let parts = args.list("values")?;
    let axis = args.axis("axis", args.result(0).shape.len())?;
    let interleave = args.flag("interleave")?;
    Ok(vec![args.make(0, |i| {
        let mut from = i.to_vec();
        if interleave {
            let part = &parts[from[axis] % parts.len()];
            from[axis] /= parts.len();
            return part.at(&from);
        }
        let mut n = 0;
        while from[axis] >= parts[n].dims[axis] {
            from[axis] -= parts[n].dims[axis];
            n += 1;
        }
        parts[n].at(&from)
    })])
}

pub(super) fn tile(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("x")?;
    Ok(vec![args.make(0, |i| x.at(&i.iter().zip(&x.dims).map(|(i, d)| i % d).collect::<Vec<_>>()))])
}

/// Tensors along a new axis.
pub(super) fn stack(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let parts = args.list("values")?;
    let axis = args.axis("axis", args.result(0).shape.len())?;
    Ok(vec![args.make(0, |i| {
        let mut from = i.to_vec();
        let part = from.remove(axis);
        parts[part].at(&from)
    })])
}

pub(super) fn reverse(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("x")?;
    let axes = args.axes("axes", x.dims.len())?;
    Ok(vec![args.make(0, |i| {
        let mut from = i.to_vec();
        axes.iter().for_each(|&a| from[a] = x.dims[a] - 1 - i[a]);
        x.at(&from)
    })])
}

pub(super) fn pad(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("x")?;
    let Padding { mode, pads } = Padding::of(args.call).map_err(reject)?;
    let constant = args.number("constant_val")?;
    Ok(vec![args.make(0, |i| {
        let mut from = Vec::with_capacity(i.len());
        for (a, &i) in i.iter().enumerate() {
            let last = x.dims[a] as i64 - 1;
            let at = i as i64 - pads[a].0 as i64;
            if mode == PadMode::Constant && !(0..=last).contains(&at) {
                return constant;
            }
            // Mirrored at the edges, which are not repeated; or the edges themselves.
            let at = match mode {
                PadMode::Reflect if at < 0 => -at,
                PadMode::Reflect if at > last => 2 * last - at,
                _ => at.clamp(0, last),
            };
            from.push(at as usize);
        }
        x.at(&from)
    })])
}

/// A tensor of one value.
pub(super) fn fill(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let value = if args.has("value") { args.number("value")? } else { 0.0 };
    Ok(vec![args.make(0, |_| value)])
}

/// The lengths of the axes.
pub(super) fn shape(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("x")?;
    Ok(vec![args.make(0, |i| x.dims[i[0]] as f64)])
}

/// An element of an index tensor as a place on an axis; negative counts from the end.
fn place(index: f64, length: usize) -> Result<usize, String> {
    let at = if index < 0.0 { index + length as f64 } else { index };
    if (0.0..length as f64).contains(&at) { Ok(at as usize) } else { Err(format!("takes element {index} of an axis of {length}")) }
}

/// Slices at positions along an axis.
pub(super) fn gather(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let (x, indices) = (args.tensor("x")?, args.tensor("indices")?);
    let axis = args.axis("axis", x.dims.len())?;
    let batch = args.number_or("batch_dims", 0.0)? as usize;
    let places = indices.data.iter().map(|&n| place(n, x.dims[axis]).map(|p| p as f64)).collect::<Result<Vec<f64>, _>>()?;
    let places = Tensor { data: places, ..(*indices).clone() };
    let own = indices.dims.len() - batch;
    Ok(vec![args.make(0, |i| {
        let at = places.at(&[&i[..batch], &i[axis..axis + own]].concat()) as usize;
        x.at(&[&i[..axis], &[at], &i[axis + own..]].concat())
    })])
}

/// Elements at positions along an axis, all other positions kept.
pub(super) fn gather_along_axis(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let (x, indices) = (args.tensor("x")?, args.tensor("indices")?);
    let axis = args.axis("axis", x.dims.len())?;
    let places = indices.data.iter().map(|&n| place(n, x.dims[axis]).map(|p| p as f64)).collect::<Result<Vec<f64>, _>>()?;
    let places = Tensor { data: places, ..(*indices).clone() };
    Ok(vec![args.make(0, |i| {
        let mut from = i.to_vec();
        from[axis] = places.at(i) as usize;
        x.at(&from)
    })])
}
