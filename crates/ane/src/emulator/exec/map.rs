//! Chains of elementwise functions in one pass: fp32 lanes in the first-level cache, rounded to fp16 after each function.

use super::{CHUNK, from_lanes, to_lanes};
use crate::emulator::view::{Nest, View};
use cpu::{Pool, f16};
use rayon::prelude::*;

/// Most functions joined into one pass; their lanes should fit the first-level cache.
pub(in crate::emulator) const MAX_FUSED: usize = 12;

/// Elements worked on at a time.
const LANES: usize = 512;

/// An elementwise function of one to three arguments. Booleans are 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(in crate::emulator) enum Fun {
    Identity,
    Abs,
    Acos,
    Asin,
    Atan,
    Atanh,
    Ceil,
    Cos,
    Cosh,
    Erf,
    Exp,
    Exp2,
    Floor,
    Gelu,
    GeluTanh,
    GeluSigmoid,
    IsTrue,
    Not,
    Relu,
    Relu6,
    Round,
    Sigmoid,
    Sign,
    Silu,
    Sin,
    Sinh,
    Softplus,
    Softsign,
    Sqrt,
    Square,
    Tan,
    Tanh,
    /// Beyond 4094 in magnitude becomes infinite: a slice at a width offset on M1 and M2 (ane-measurements 1.3).
    WidthCrop,
    Add,
    And,
    Div,
    Elu,
    Equal,
    FloorDiv,
    Greater,
    GreaterEqual,
    /// 1 / (x + epsilon).
    Inverse,
    /// x where positive, else alpha · x.
    LeakyRelu,
    Less,
    LessEqual,
    /// ln(x + epsilon).
    Log,
    Max,
    Min,
    Mod,
    Mul,
    NotEqual,
    Or,
    Pow,
    /// 1 / √(x + epsilon).
    Rsqrt,
    Sub,
    /// x where at least alpha, else 0.
    ThresholdedRelu,
    Xor,
    /// min(max(x, alpha), beta).
    Clip,
    /// min(x where positive else alpha · x, beta).
    ClampedRelu,
    /// alpha · x + beta.
    Linear,
    /// alpha · tanh(beta · x).
    ScaledTanh,
    Select,
    /// alpha · ln(1 + e^(beta · x)).
    SoftplusParametric,
    /// min(max(alpha · x + beta, 0), 1).
    SigmoidHard,
}

/// One function of a chain: `dst = fun(args)`, all of them registers.
#[derive(Clone, Copy, Debug)]
struct Inst {
    fun: Fun,
    args: [usize; 3],
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
    inputs: usize,
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
            insts.push(Inst { fun: link.fun, args: [arg(0), arg(1), arg(2)], dst, store: link.store });
        }
        Ok(Map { nest, outputs: outputs.len(), inputs: inputs.len(), scalars, insts, registers })
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
                let [a, b, c] = inst.args.map(|r| &registers[r][..len]);
                apply(inst.fun, &mut dst[..len], a, b, c);
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

fn truth(b: bool) -> f32 {
    if b { 1.0 } else { 0.0 }
}

/// `out = fun(a, b, c)` before rounding; NaN becomes 0.
fn apply(fun: Fun, out: &mut [f32], a: &[f32], b: &[f32], c: &[f32]) {
    // A closure for each function, so that each loop is compiled for itself.
    macro_rules! one { ($f:expr) => { lanes(out, a, b, c, #[inline(always)] |x, _, _| $f(x)) }; }
    macro_rules! two { ($f:expr) => { lanes(out, a, b, c, #[inline(always)] |x, y, _| $f(x, y)) }; }
    macro_rules! three { ($f:expr) => { lanes(out, a, b, c, #[inline(always)] |x, y, z| $f(x, y, z)) }; }
    match fun {
        Fun::Identity => one!(|x: f32| x),
        Fun::Abs => one!(|x: f32| x.abs()),
        Fun::Acos => one!(f32::acos),
        Fun::Asin => one!(f32::asin),
        Fun::Atan => one!(f32::atan),
        Fun::Atanh => one!(f32::atanh),
        Fun::Ceil => one!(f32::ceil),
        Fun::Cos => one!(f32::cos),
        Fun::Cosh => one!(f32::cosh),
        Fun::Erf => one!(erf),
        Fun::Exp => in_place(cpu::math::exp, out, a),
        Fun::Exp2 => one!(f32::exp2),
        Fun::Floor => one!(f32::floor),
        Fun::Gelu => one!(|x: f32| 0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))),
        Fun::GeluTanh => one!(|x: f32| 0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh())),
        Fun::GeluSigmoid => one!(|x: f32| x / (1.0 + (-1.702 * x).exp())),
        Fun::IsTrue => one!(|x: f32| truth(x != 0.0)),
        Fun::Not => one!(|x: f32| truth(x == 0.0)),
        Fun::Relu => one!(|x: f32| if x > 0.0 { x } else { 0.0 }),
        Fun::Relu6 => one!(|x: f32| x.clamp(0.0, 6.0)),
        // Half away from zero, as measured (ane-measurements 1.3).
        Fun::Round => one!(f32::round),
        Fun::Sigmoid => in_place(cpu::math::sigmoid, out, a),
        Fun::Sign => one!(|x: f32| if x > 0.0 { 1.0 } else { -truth(x < 0.0) + 0.0 }),
        Fun::Silu => in_place(cpu::math::silu, out, a),
        Fun::Sin => one!(f32::sin),
        Fun::Sinh => one!(f32::sinh),
        Fun::Softplus => one!(softplus),
        Fun::Softsign => one!(|x: f32| x / (1.0 + x.abs())),
        Fun::Sqrt => one!(f32::sqrt),
        Fun::Square => one!(|x: f32| x * x),
        Fun::Tan => one!(f32::tan),
        Fun::Tanh => in_place(cpu::math::tanh, out, a),
        Fun::WidthCrop => one!(|x: f32| if x.abs() > 4094.0 { f32::INFINITY.copysign(x) } else { x }),
        Fun::Add => two!(|x: f32, y: f32| x + y),
        Fun::And => two!(|x, y| truth(x != 0.0 && y != 0.0)),
        Fun::Div => two!(|x: f32, y: f32| x / y),
        Fun::Elu => two!(|x: f32, alpha: f32| if x > 0.0 { x } else { alpha * x.exp_m1() }),
        Fun::Equal => two!(|x, y| truth(x == y)),
        Fun::FloorDiv => two!(|x: f32, y: f32| (x / y).floor()),
        Fun::Greater => two!(|x, y| truth(x > y)),
        Fun::GreaterEqual => two!(|x, y| truth(x >= y)),
        // Zero counts as positive (ane-measurements 1.3).
        Fun::Inverse => two!(|x: f32, epsilon: f32| 1.0 / (x + epsilon + 0.0)),
        Fun::LeakyRelu => two!(|x: f32, alpha: f32| if x > 0.0 { x } else { alpha * x }),
        Fun::Less => two!(|x, y| truth(x < y)),
        Fun::LessEqual => two!(|x, y| truth(x <= y)),
        Fun::Log => two!(|x: f32, epsilon: f32| if x + epsilon == 0.0 { LOG_OF_ZERO } else { (x + epsilon).ln() }),
        Fun::Max => two!(|x: f32, y: f32| if x > y { x } else { y }),
        Fun::Min => two!(|x: f32, y: f32| if x < y { x } else { y }),
        Fun::Mod => two!(|x: f32, y: f32| x - y * (x / y).floor()),
        Fun::Mul => two!(|x: f32, y: f32| x * y),
        Fun::NotEqual => two!(|x, y| truth(x != y)),
        Fun::Or => two!(|x, y| truth(x != 0.0 || y != 0.0)),
        Fun::Pow => two!(f32::powf),
        Fun::Rsqrt => two!(|x: f32, epsilon: f32| 1.0 / (x + epsilon + 0.0).sqrt()),
        Fun::Sub => two!(|x: f32, y: f32| x - y),
        Fun::ThresholdedRelu => two!(|x: f32, alpha: f32| if x >= alpha { x } else { 0.0 }),
        Fun::Xor => two!(|x, y| truth((x != 0.0) != (y != 0.0))),
        Fun::Clip => three!(|x: f32, low: f32, high: f32| x.max(low).min(high)),
        Fun::ClampedRelu => three!(|x: f32, alpha: f32, beta: f32| if x > 0.0 { x } else { alpha * x }.min(beta)),
        Fun::Linear => three!(|x: f32, alpha: f32, beta: f32| alpha * x + beta),
        Fun::ScaledTanh => three!(|x: f32, alpha: f32, beta: f32| alpha * (beta * x).tanh()),
        Fun::Select => three!(|when: f32, x: f32, y: f32| if when != 0.0 { x } else { y }),
        Fun::SoftplusParametric => three!(|x: f32, alpha: f32, beta: f32| alpha * softplus(beta * x)),
        Fun::SigmoidHard => three!(|x: f32, alpha: f32, beta: f32| (alpha * x + beta).clamp(0.0, 1.0)),
    }
}

#[inline(always)]
fn lanes(out: &mut [f32], a: &[f32], b: &[f32], c: &[f32], f: impl Fn(f32, f32, f32) -> f32) {
    cpu::dispatch(
        #[inline(always)]
        || {
            for (((o, &a), &b), &c) in out.iter_mut().zip(a).zip(b).zip(c) {
                let y = f(a, b, c);
                *o = if y.is_nan() { 0.0 } else { y };
            }
        },
    );
}

/// For functions that have their own vector form. They give NaN only for NaN, which no lane holds.
fn in_place(f: impl Fn(&mut [f32]), out: &mut [f32], a: &[f32]) {
    out.copy_from_slice(a);
    f(out);
    // SiLU of -inf is -inf · 0.
    lanes_fix(out);
}

fn lanes_fix(out: &mut [f32]) {
    cpu::dispatch(
        #[inline(always)]
        || {
            for o in out.iter_mut() {
                *o = if o.is_nan() { 0.0 } else { *o };
            }
        },
    );
}

/// ln(1 + e^x) without overflow.
fn softplus(x: f32) -> f32 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// The error function, in f64: below fp16's resolution by far (Abramowitz and Stegun 7.1.6 and 7.1.14).
fn erf(x: f32) -> f32 {
    let a = f64::from(x.abs());
    let y = if a < 3.0 {
        // Σ 2^n a^(2n+1) / (1·3·…·(2n+1)), times 2/√π e^(−a²): all terms positive.
        let (mut term, mut sum) = (a, a);
        for n in 1..60 {
            term *= 2.0 * a * a / f64::from(2 * n + 1);
            sum += term;
        }
        std::f64::consts::FRAC_2_SQRT_PI * (-a * a).exp() * sum
    } else if a < 6.0 {
        // The continued fraction of the complement, from the tail.
        let mut tail = a;
        for n in (1..40).rev() {
            tail = a + f64::from(n) * 0.5 / tail;
        }
        1.0 - (-a * a).exp() / (tail * std::f64::consts::PI.sqrt())
    } else {
        1.0
    };
    (y as f32).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erf_is_right() {
        for (x, y) in [(0.0, 0.0), (0.1, 0.112_462_92), (1.0, 0.842_700_8), (2.9, 0.999_958_9), (3.1, 0.999_988_35), (-0.5, -0.520_499_9)] {
            assert!((erf(x) - y as f32).abs() < 1e-6, "erf({x}) = {}", erf(x));
        }
        assert_eq!(erf(f32::INFINITY), 1.0);
    }

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
        assert_eq!(map, Ok((4, vec![([0, 1, 0], 2), ([2, 2, 2], 0), ([0, 2, 0], 3)])));
    }
}
