//! Ops that move elements and compute nothing.

use super::args::{Args, reject};
use super::tensor::Tensor;
use mil::Chip;
use mil::ops::Cut;

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
