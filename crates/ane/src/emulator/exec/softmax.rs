//! Softmax over the last axis: maximum subtracted, fp32 inside, one rounding.

use super::{CHUNK, from_lanes, to_lanes};
use crate::emulator::view::{Nest, View};
use cpu::{Pool, f16};
use rayon::prelude::*;

/// A planned softmax.
#[derive(Clone, Debug)]
pub(in crate::emulator) struct Softmax {
    nest: Nest,
    /// Length of the axis.
    len: usize,
}

impl Softmax {
    /// Plans it. `Err(0)`: the output's last axis is not its innermost in memory.
    pub(in crate::emulator) fn new(output: &View, input: &View) -> Result<Softmax, usize> {
        let nest = Nest::new(&[output, input], 1)?;
        let (len, last) = (output.dims.last().copied().unwrap_or(1), output.strides.last().copied().unwrap_or(0));
        let innermost = output.dims.iter().zip(&output.strides).all(|(&d, &s)| d == 1 || s >= last);
        if innermost { Ok(Softmax { nest, len }) } else { Err(0) }
    }

    pub(in crate::emulator) fn run(&self, pool: &Pool, input: &[f16], output: &mut [f16]) {
        let (nest, len) = (&self.nest, self.len);
        let rows_per_task = (CHUNK / len).max(1);
        let task = rows_per_task * len;
        let chunk = |i: usize, piece: &mut [f16]| {
            let from = i * task;
            let to = (from + task).min(nest.len());
            let first = nest.element(0, from);
            let mut wide = vec![0f32; len.next_multiple_of(cpu::softmax::LANES)];
            let mut rounded = vec![f16::ZERO; len];
            for at in (from..to).step_by(len) {
                wide[len..].fill(f32::NEG_INFINITY);
                to_lanes(nest, 1, input, at, &mut wide[..len]);
                // inf - inf is 0 to the chip: equal shares, and none to the padding.
                if wide[..len].iter().all(|&x| x == f32::NEG_INFINITY) {
                    wide[..len].fill(0.0);
                }
                cpu::softmax::normalise(&mut wide);
                cpu::round::round(&wide[..len], &mut rounded);
                from_lanes(nest, 0, &rounded, at, first, piece);
            }
        };
        let pieces = nest.cut(0, output, task);
        if pieces.len() == 1 {
            pieces.into_iter().for_each(|p| chunk(0, p));
        } else {
            pool.install(|| pieces.into_par_iter().with_max_len(1).enumerate().for_each(|(i, p)| chunk(i, p)));
        }
    }
}
