//! Chains of elementwise functions in one pass: fp32 lanes in the first-level cache, rounded to fp16 after each function.

use super::{CHUNK, from_lanes, to_lanes};
use crate::emulator::view::{Nest, View};
use cpu::{Pool, f16};
use rayon::prelude::*;

/// Most functions joined into one pass; their lanes should fit the first-level cache.
pub(in crate::emulator) const MAX_FUSED: usize = 12;

/// Elements worked on at a time.
const LANES: usize = 512;

/// An elementwise function of one or two arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::emulator) enum Fun {
    Add,
    Sub,
    Mul,
    Div,
    Max,
    Min,
    Pow,
    Sigmoid,
    Tanh,
    Relu,
    Silu,
    Exp,
    Sqrt,
    /// 1 / √(x + epsilon).
    Rsqrt,
    /// ln(x + epsilon).
    Log,
    /// Beyond 4094 in magnitude becomes infinite: a slice at a width offset on M1 and M2 (ane-measurements 1.3).
    WidthCrop,
}

/// One function of a chain: `dst = fun(args)`, all of them registers.
#[derive(Clone, Copy, Debug)]
struct Inst {
    fun: Fun,
    args: [usize; 2],
    dst: usize,
    /// The output that it is stored to.
    store: Option<usize>,
}

/// An argument in a chain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::emulator) enum ChainArg {
    /// The n-th tensor read.
    Read(usize),
    /// The result of the n-th function of the chain.
    Result(usize),
    /// A number.
    Scalar(f32),
}

/// A function in a chain.
#[derive(Clone, Debug)]
pub(in crate::emulator) struct Link {
    pub(in crate::emulator) fun: Fun,
    pub(in crate::emulator) args: Vec<ChainArg>,
    /// The output that the result is stored to.
    pub(in crate::emulator) store: Option<usize>,
}

/// A planned chain.
#[derive(Clone, Debug)]
pub(in crate::emulator) struct Map {
    /// Loops over the outputs, then the inputs.
    nest: Nest,
    outputs: usize,
    scalars: Vec<(usize, f32)>,
    insts: Vec<Inst>,
    registers: usize,
}

impl Map {
    /// Plans a chain over equally shaped views. `Err(i)`: output `i` does not lie in memory in the order of the first one.
    pub(in crate::emulator) fn new(links: &[Link], outputs: &[&View], inputs: &[&View]) -> Result<Map, usize> {
        let views: Vec<&View> = outputs.iter().chain(inputs).copied().collect();
        let nest = Nest::new(&views, outputs.len())?;
        let mut scalars: Vec<(usize, f32)> = Vec::new();
        for link in links {
            for arg in &link.args {
                if let ChainArg::Scalar(x) = arg
                    && !scalars.iter().any(|(_, y)| y.to_bits() == x.to_bits())
                {
                    scalars.push((inputs.len() + scalars.len(), *x));
                }
            }
        }
        // Registers: inputs, scalars, then results, which take over the registers of inputs and results that are not read again.
        let mut registers = inputs.len() + scalars.len();
        let mut free: Vec<usize> = Vec::new();
        let mut result = vec![0; links.len()];
        let mut insts = Vec::new();
        for (i, link) in links.iter().enumerate() {
            let find = |arg: &ChainArg| match arg {
                ChainArg::Read(n) => *n,
                ChainArg::Result(n) => result[*n],
                ChainArg::Scalar(x) => scalars.iter().find(|(_, y)| y.to_bits() == x.to_bits()).map_or(0, |(r, _)| *r),
            };
            let regs: Vec<usize> = link.args.iter().map(find).collect();
            let dst = free.pop().unwrap_or_else(|| {
                registers += 1;
                registers - 1
            });
            let unused = |arg: &ChainArg| !matches!(arg, ChainArg::Scalar(_)) && !links[i + 1..].iter().any(|l| l.args.contains(arg));
            let mut dead: Vec<usize> = link.args.iter().zip(&regs).filter(|(arg, _)| unused(arg)).map(|(_, r)| *r).collect();
            dead.sort_unstable();
            dead.dedup();
            free.extend(dead);
            if unused(&ChainArg::Result(i)) {
                free.push(dst);
            }
            result[i] = dst;
            let arg = |n: usize| regs.get(n).copied().unwrap_or(regs[0]);
            insts.push(Inst { fun: link.fun, args: [arg(0), arg(1)], dst, store: link.store });
        }
        Ok(Map { nest, outputs: outputs.len(), scalars, insts, registers })
    }

    pub(in crate::emulator) fn run(&self, pool: &Pool, reads: &[&[f16]], writes: Vec<&mut [f16]>) {
        let tasks = self.nest.len().div_ceil(CHUNK);
        let mut pieces: Vec<Vec<&mut [f16]>> = (0..tasks).map(|_| Vec::with_capacity(self.outputs)).collect();
        for (v, data) in writes.into_iter().enumerate() {
            for (task, piece) in pieces.iter_mut().zip(self.nest.cut(v, data, CHUNK)) {
                task.push(piece);
            }
        }
        if tasks == 1 {
            pieces.iter_mut().for_each(|outs| self.chunk(0, reads, outs));
        } else {
            pool.install(|| pieces.par_iter_mut().with_max_len(1).enumerate().for_each(|(i, outs)| self.chunk(i * CHUNK, reads, outs)));
        }
    }

    /// Positions `from..from + CHUNK`; `outs` begin at the first of them.
    fn chunk(&self, from: usize, reads: &[&[f16]], outs: &mut [&mut [f16]]) {
        let mut registers = vec![vec![0f32; LANES]; self.registers];
        let mut rounded = [f16::ZERO; LANES];
        let to = (from + CHUNK).min(self.nest.len());
        let first: Vec<usize> = (0..self.outputs).map(|v| self.nest.element(v, from)).collect();
        let mut at = from;
        while at < to {
            let len = LANES.min(to - at);
            for (r, x) in &self.scalars {
                registers[*r][..len].fill(*x);
            }
            for (i, data) in reads.iter().enumerate() {
                to_lanes(&self.nest, self.outputs + i, data, at, &mut registers[i][..len]);
            }
            for inst in &self.insts {
                let mut dst = std::mem::take(&mut registers[inst.dst]);
                let [a, b] = inst.args.map(|r| &registers[r][..len]);
                apply(inst.fun, &mut dst[..len], a, b);
                cpu::round::round(&dst[..len], &mut rounded[..len]);
                if let Some(v) = inst.store {
                    from_lanes(&self.nest, v, &rounded[..len], at, first[v], outs[v]);
                }
                cpu::round::widen(&rounded[..len], &mut dst[..len]);
                registers[inst.dst] = dst;
            }
            at += len;
        }
    }
}

/// What the chip gives for ln(0) (ane-measurements 1.3).
const LOG_OF_ZERO: f32 = -45440.0;

/// `out = fun(a, b)` before rounding; NaN becomes 0.
fn apply(fun: Fun, out: &mut [f32], a: &[f32], b: &[f32]) {
    match fun {
        Fun::Add => lanes(out, a, b, |x, y| x + y),
        Fun::Sub => lanes(out, a, b, |x, y| x - y),
        Fun::Mul => lanes(out, a, b, |x, y| x * y),
        Fun::Div => lanes(out, a, b, |x, y| x / y),
        Fun::Max => lanes(out, a, b, |x, y| if x > y { x } else { y }),
        Fun::Min => lanes(out, a, b, |x, y| if x < y { x } else { y }),
        Fun::Pow => lanes(out, a, b, f32::powf),
        Fun::Relu => lanes(out, a, a, |x, _| if x > 0.0 { x } else { 0.0 }),
        Fun::Sqrt => lanes(out, a, a, |x, _| x.sqrt()),
        // Zero counts as positive.
        Fun::Rsqrt => lanes(out, a, b, |x, epsilon| 1.0 / (x + epsilon + 0.0).sqrt()),
        Fun::Log => lanes(out, a, b, |x, epsilon| if x + epsilon == 0.0 { LOG_OF_ZERO } else { (x + epsilon).ln() }),
        Fun::WidthCrop => lanes(out, a, a, |x, _| if x.abs() > 4094.0 { f32::INFINITY.copysign(x) } else { x }),
        Fun::Sigmoid => in_place(cpu::math::sigmoid, out, a),
        Fun::Tanh => in_place(cpu::math::tanh, out, a),
        Fun::Silu => in_place(cpu::math::silu, out, a),
        Fun::Exp => in_place(cpu::math::exp, out, a),
    }
}

#[inline(always)]
fn lanes(out: &mut [f32], a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> f32) {
    cpu::dispatch(
        #[inline(always)]
        || {
            for ((o, &a), &b) in out.iter_mut().zip(a).zip(b) {
                let y = f(a, b);
                *o = if y.is_nan() { 0.0 } else { y };
            }
        },
    );
}

/// For functions that have a vector form of their own.
fn in_place(f: impl Fn(&mut [f32]), out: &mut [f32], a: &[f32]) {
    out.copy_from_slice(a);
    f(out);
    // SiLU of -inf is -inf · 0.
    cpu::dispatch(
        #[inline(always)]
        || {
            for o in out.iter_mut() {
                *o = if o.is_nan() { 0.0 } else { *o };
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_reused_but_never_an_argument() {
        let view = View::dense(&[4]);
        let link = |fun, args: &[ChainArg], store| Link { fun, args: args.to_vec(), store };
        use ChainArg::{Read, Result, Scalar};
        let links = [
            link(Fun::Add, &[Read(0), Scalar(1.0)], None),
            link(Fun::Mul, &[Result(0), Result(0)], None),
            link(Fun::Sub, &[Result(1), Result(0)], Some(0)),
        ];
        let map = Map::new(&links, &[&view], &[&view]).map_err(|_| "no nest");
        let map = map.as_ref().map(|m| (m.registers, m.insts.iter().map(|i| (i.args, i.dst)).collect::<Vec<_>>()));
        assert_eq!(map, Ok((4, vec![([0, 1], 2), ([2, 2], 0), ([0, 2], 3)])));
    }
}
