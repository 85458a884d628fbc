//! General convolutions: patches gathered into a matrix, then a matrix product per image and group. Correct rather than fast; the
//! one-by-one convolutions that matter are lowered to plain matrix products.

use super::{Copy, Machine, Matmul};
use crate::emulator::graph;
use crate::emulator::view::View;
use cpu::f16;

/// A planned convolution.
#[derive(Clone, Debug)]
pub(in crate::emulator) struct Conv {
    /// For each image and group.
    parts: Vec<Part>,
    /// Elements of the patch matrix.
    patches: usize,
}

#[derive(Clone, Debug)]
struct Part {
    /// For each kernel tap whose window meets the input: the window's copy, and where its source and destination begin.
    taps: Vec<(Copy, usize, usize)>,
    product: Matmul,
}

impl Conv {
    /// Whether the kernel of each output channel lies in one run, as a row of a matrix.
    pub(in crate::emulator) fn takes_weight(weight: &View) -> bool {
        weight.reshape(&[weight.dims[0], weight.dims[1..].iter().product()]).is_some()
    }

    /// Plans it: `x` is `[N, C, spatial…]`, `weight` `[O, C/groups, kernel…]`, `out` `[N, O, spatial…]`, `bias` `[O]`; no negative
    /// strides, and a weight that [`Conv::takes_weight`]. `Err(0)`: the output cannot be written as rows of channels.
    pub(in crate::emulator) fn new(
        geometry: &graph::Conv,
        out: &View,
        x: &View,
        weight: &View,
        bias: Option<&View>,
    ) -> Result<Conv, usize> {
        let groups = geometry.groups;
        let (outs, ins) = (weight.dims[0] / groups, weight.dims[1]);
        let (kernel, places) = (&weight.dims[2..], &out.dims[2..]);
        let (taps, area): (usize, usize) = (kernel.iter().product(), places.iter().product());
        let patches = View::dense(&[&[ins, taps], places].concat());
        let mut parts = Vec::new();
        for image in 0..out.dims[0] {
            for group in 0..groups {
                let source = x.narrow(0, image, 1).narrow(1, group * ins, ins);
                let copies = (0..taps)
                    .filter_map(|tap| {
                        let (from, to) = windows(geometry, tap, kernel, &source, &patches.narrow(1, tap, 1))?;
                        let (low_from, low_to) = (from.span().0, to.span().0);
                        Some(Copy::new(&to.rebase(low_to), &from.rebase(low_from)).map(|copy| (copy, low_from, low_to)))
                    })
                    .collect::<Result<_, _>>()?;
                let flat = weight.narrow(0, group * outs, outs).reshape(&[outs, ins * taps]).ok_or(0usize)?;
                let rows = out.narrow(0, image, 1).narrow(1, group * outs, outs).reshape(&[outs, area]).ok_or(0usize)?;
                let bias = bias.map(|b| b.narrow(0, group * outs, outs));
                let product = Matmul::new(&rows, &flat, &View::dense(&[ins * taps, area]), bias.as_ref())?;
                parts.push(Part { taps: copies, product });
            }
        }
        Ok(Conv { parts, patches: patches.numel() })
    }

    /// `reads`: input, weight, and perhaps bias.
    pub(in crate::emulator) fn run(&self, machine: Machine<'_>, reads: &[&[f16]], write: &mut [f16]) {
        let mut patches = vec![f16::ZERO; self.patches];
        for part in &self.parts {
            for (copy, from, to) in &part.taps {
                copy.run(machine.pool, &reads[0][*from..], &mut patches[*to..]);
            }
            let operands = [&[reads[1], &patches], &reads[2..]].concat();
            part.product.run(machine, &operands, write);
        }
    }
}

/// The part of the input that one kernel tap sees, and where it goes in the patch matrix: `None` where it sees only padding.
fn windows(geometry: &graph::Conv, tap: usize, kernel: &[usize], source: &View, patches: &View) -> Option<(View, View)> {
    let (mut from, mut to) = (source.clone(), patches.clone());
    let mut rest = tap;
    for axis in (0..kernel.len()).rev() {
        let (stride, extent) = (geometry.strides[axis], source.dims[2 + axis]);
        let offset = (rest % kernel[axis]) * geometry.dilations[axis];
        rest /= kernel[axis];
        // Output place p reads input place p · stride + offset − pad.
        let pad = geometry.pad[axis];
        let first = pad.saturating_sub(offset).div_ceil(stride);
        let past = (extent + pad).checked_sub(offset)?.div_ceil(stride).min(patches.dims[2 + axis]);
        let count = past.checked_sub(first).filter(|&n| n > 0)?;
        let mut begin = vec![0; from.dims.len()];
        let mut step = vec![1; from.dims.len()];
        let mut dims = from.dims.clone();
        begin[2 + axis] = first * stride + offset - pad;
        step[2 + axis] = stride as isize;
        dims[2 + axis] = count;
        from = from.window(&begin, &step, &dims);
        to = to.narrow(2 + axis, first, count);
    }
    // `[1, C, …]` and `[C, 1, …]` hold the same channels.
    let dims = [&from.dims[1..2], &[1], &from.dims[2..]].concat();
    let strides = [&from.strides[1..2], &[0], &from.strides[2..]].concat();
    Some((View::new(dims, strides, from.offset), to))
}
