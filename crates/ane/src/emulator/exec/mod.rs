//! What runs: one kernel per kind of step, each planned over fixed views.
//!
//! Chunks have a fixed number of elements, whatever the thread count, and every element is written by one task: the bits depend on
//! the operands alone.

mod conv;
mod copy;
pub(super) mod map;
mod matmul;
mod reduce;
mod softmax;

pub(super) use conv::Conv;
pub(super) use copy::Copy;
pub(super) use map::Map;
pub(super) use matmul::Matmul;
pub(super) use reduce::Reduce;
pub(super) use softmax::Softmax;

use super::view::Nest;
use cpu::matmul::Path;
use cpu::{Finish, Pool, f16};

/// Elements of a parallel task. Coarse: a task should outweigh the wake-up of a worker many times.
const CHUNK: usize = 16_384;

/// What kernels need besides operands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine<'a> {
    pub(super) pool: &'a Pool,
    pub(super) path: Path,
    /// What a multiply-accumulate does to its result.
    pub(super) finish: Finish,
}

/// A planned step's work.
#[derive(Clone, Debug)]
pub(super) enum Kernel {
    Copy(Copy),
    Map(Map),
    Matmul(Matmul),
    Conv(Conv),
    Softmax(Softmax),
    Reduce(Reduce),
}

impl Kernel {
    /// Runs it on the slices that its views span.
    pub(super) fn run(&self, machine: Machine<'_>, reads: &[&[f16]], mut writes: Vec<&mut [f16]>) {
        match self {
            Kernel::Map(map) => map.run(machine.pool, reads, writes),
            Kernel::Copy(copy) => copy.run(machine.pool, reads[0], writes[0]),
            Kernel::Matmul(matmul) => matmul.run(machine, reads, writes[0]),
            Kernel::Conv(conv) => conv.run(machine, reads, writes[0]),
            Kernel::Softmax(softmax) => softmax.run(machine.pool, reads[0], writes[0]),
            Kernel::Reduce(reduce) => reduce.run(machine.pool, reads[0], writes[0]),
        }
    }
}

/// Positions `at..` of view `v`, widened. An op takes NaN for +inf (ane-measurements 1.3).
fn to_lanes(nest: &Nest, v: usize, data: &[f16], at: usize, lanes: &mut [f32]) {
    let step = nest.step(v);
    nest.runs(at, at + lanes.len(), |from, len| {
        let run = &mut lanes[from - at..][..len];
        let place = nest.element(v, from);
        match step {
            1 => cpu::round::widen(&data[place..place + len], run),
            0 => run.fill(data[place].to_f32()),
            _ => {
                for (n, x) in run.iter_mut().enumerate() {
                    *x = data[(place as isize + n as isize * step) as usize].to_f32();
                }
            }
        }
    });
    cpu::dispatch(
        #[inline(always)]
        || {
            for x in lanes.iter_mut() {
                *x = if x.is_nan() { f32::INFINITY } else { *x };
            }
        },
    );
}

/// Stores positions `at..` of view `v` into a piece that begins at element `first`.
fn from_lanes(nest: &Nest, v: usize, values: &[f16], at: usize, first: usize, piece: &mut [f16]) {
    let step = nest.step(v);
    nest.runs(at, at + values.len(), |from, len| {
        let run = &values[from - at..][..len];
        let place = nest.element(v, from) - first;
        if step == 1 {
            piece[place..place + len].copy_from_slice(run);
        } else {
            for (n, x) in run.iter().enumerate() {
                piece[place + n * step as usize] = *x;
            }
        }
    });
}

/// NaN becomes +inf.
fn denan(values: &mut [f16]) {
    let bits: &mut [u16] = bytemuck::cast_slice_mut(values);
    cpu::dispatch(
        #[inline(always)]
        || {
            for b in bits {
                *b = if *b & 0x7fff > 0x7c00 { 0x7c00 } else { *b };
            }
        },
    );
}
