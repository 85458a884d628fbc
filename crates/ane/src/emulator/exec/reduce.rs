//! Folding the last axis: fp32 sums in fixed lanes, one rounding. (The chip sums in fp16, ane-measurements 1.2; that is the fidelity
//! arithmetic's concern.)

use super::{CHUNK, from_lanes, to_lanes};
use crate::emulator::graph;
use crate::emulator::view::{Nest, View};
use cpu::{Finish, Pool, f16};
use rayon::prelude::*;

/// Lane l of a sum takes the elements l, l + 16, …; then the lanes are added in order.
const LANES: usize = 16;

/// A planned reduction.
#[derive(Clone, Debug)]
pub(in crate::emulator) struct Reduce {
    how: graph::Reduce,
    /// Over the output, and the input's first element for each.
    outer: Nest,
    /// Along the reduced axis of the input.
    len: usize,
    step: isize,
}

impl Reduce {
    /// Plans it; the input has the output's axes and one more. `Err(0)`: the output overlaps itself.
    pub(in crate::emulator) fn new(how: graph::Reduce, output: &View, input: &View) -> Result<Reduce, usize> {
        let axis = input.dims.len() - 1;
        let mut starts = input.narrow(axis, 0, 1);
        starts.dims.pop();
        starts.strides.pop();
        Ok(Reduce { how, outer: Nest::new(&[output, &starts], 1)?, len: input.dims[axis], step: input.strides[axis] })
    }

    pub(in crate::emulator) fn run(&self, pool: &Pool, input: &[f16], output: &mut [f16]) {
        let task = (CHUNK / self.len).max(1);
        let chunk = |i: usize, piece: &mut [f16]| {
            let from = i * task;
            let to = (from + task).min(self.outer.len());
            let first = self.outer.element(0, from);
            let mut wide = vec![0f32; self.len];
            for at in from..to {
                let start = self.outer.element(1, at);
                let row = View { dims: vec![self.len], strides: vec![self.step], offset: start };
                if let Ok(nest) = Nest::new(&[&row], 0) {
                    to_lanes(&nest, 0, input, 0, &mut wide);
                }
                let value = Finish::ELEMENTWISE.apply(fold(self.how, &wide));
                from_lanes(&self.outer, 0, &[value], at, first, piece);
            }
        };
        let pieces = self.outer.cut(0, output, task);
        if pieces.len() == 1 {
            pieces.into_iter().for_each(|p| chunk(0, p));
        } else {
            pool.install(|| pieces.into_par_iter().with_max_len(1).enumerate().for_each(|(i, p)| chunk(i, p)));
        }
    }
}

fn sum(x: &[f32]) -> f32 {
    let mut lanes = [0f32; LANES];
    for x in x.chunks(LANES) {
        for (lane, x) in lanes.iter_mut().zip(x) {
            *lane += x;
        }
    }
    lanes.iter().sum()
}

fn fold(how: graph::Reduce, x: &[f32]) -> f32 {
    match how {
        graph::Reduce::Sum => sum(x),
        graph::Reduce::Mean => sum(x) / x.len() as f32,
        graph::Reduce::Max => x.iter().fold(f32::NEG_INFINITY, |a, &b| if b > a { b } else { a }),
    }
}
