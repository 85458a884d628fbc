//! Copies that no view could avoid.

use super::{CHUNK, denan};
use crate::emulator::view::{Nest, View};
use cpu::{Pool, f16};
use rayon::prelude::*;

/// A planned copy of one view to an equally shaped one.
#[derive(Clone, Debug)]
pub(in crate::emulator) struct Copy {
    nest: Nest,
}

impl Copy {
    /// Plans it. `Err(0)`: the destination overlaps itself.
    pub(in crate::emulator) fn new(destination: &View, source: &View) -> Result<Copy, usize> {
        Ok(Copy { nest: Nest::new(&[destination, source], 1)? })
    }

    pub(in crate::emulator) fn run(&self, pool: &Pool, source: &[f16], destination: &mut [f16]) {
        let nest = &self.nest;
        let (to_step, from_step) = (nest.step(0), nest.step(1));
        let pieces = nest.cut(0, destination, CHUNK);
        let chunk = |i: usize, piece: &mut [f16]| {
            let first = nest.element(0, i * CHUNK);
            nest.runs(i * CHUNK, ((i + 1) * CHUNK).min(nest.len()), |at, len| {
                let to = nest.element(0, at) - first;
                let from = nest.element(1, at);
                if to_step == 1 && from_step == 1 {
                    let run = &mut piece[to..to + len];
                    run.copy_from_slice(&source[from..from + len]);
                    denan(run);
                } else {
                    for n in 0..len {
                        let x = source[(from as isize + n as isize * from_step) as usize];
                        piece[to + n * to_step as usize] = if x.is_nan() { f16::INFINITY } else { x };
                    }
                }
            });
        };
        if pieces.len() == 1 {
            pieces.into_iter().for_each(|p| chunk(0, p));
        } else {
            pool.install(|| pieces.into_par_iter().with_max_len(1).enumerate().for_each(|(i, p)| chunk(i, p)));
        }
    }
}
