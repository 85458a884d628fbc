//! Functions of one or two numbers, with the chip's special values (ane-measurements 1.3).

use super::args::Args;
use super::rules::{LOG_OF_ZERO, Rules};
use super::table;
use super::tensor::Tensor;
use mil::DType;
use mil::ops::OpKind;

/// A function of two broadcast tensors.
pub(super) fn two(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let (x, y) = (args.tensor("x")?, args.tensor("y")?);
    let chip = args.rules.imitates(x.dtype);
    let whole = !x.dtype.is_float();
    let truth = |b: bool| f64::from(u8::from(b));
    let f: Box<dyn Fn(f64, f64) -> f64> = match args.call.op.kind {
        OpKind::Add => Box::new(|x, y| x + y),
        OpKind::Sub => Box::new(|x, y| x - y),
        OpKind::Mul => Box::new(|x, y| x * y),
        OpKind::RealDiv if whole => Box::new(|x, y| if y == 0.0 { 0.0 } else { (x / y).trunc() }),
        // The sign of a zero is dropped before a reciprocal.
        OpKind::RealDiv if chip => Box::new(|x, y| if y == 0.0 { x / 0.0 } else { x / y }),
        OpKind::RealDiv => Box::new(|x, y| x / y),
        OpKind::FloorDiv | OpKind::Mod if whole && y.data.contains(&0.0) => return Err("divides an integer by zero".into()),
        OpKind::FloorDiv => Box::new(|x, y| (x / y).floor()),
        OpKind::Mod => Box::new(|x, y| x - y * (x / y).floor()),
        OpKind::Maximum => Box::new(|x, y| if x > y || x.is_nan() { x } else { y }),
        OpKind::Minimum => Box::new(|x, y| if x < y || x.is_nan() { x } else { y }),
        OpKind::Pow => Box::new(f64::powf),
        OpKind::Equal => Box::new(move |x, y| truth(x == y)),
        OpKind::NotEqual => Box::new(move |x, y| truth(x != y)),
        OpKind::Greater => Box::new(move |x, y| truth(x > y)),
        OpKind::GreaterEqual => Box::new(move |x, y| truth(x >= y)),
        OpKind::Less => Box::new(move |x, y| truth(x < y)),
        OpKind::LessEqual => Box::new(move |x, y| truth(x <= y)),
        OpKind::LogicalAnd => Box::new(move |x, y| truth(x != 0.0 && y != 0.0)),
        OpKind::LogicalOr => Box::new(move |x, y| truth(x != 0.0 || y != 0.0)),
        OpKind::LogicalXor => Box::new(move |x, y| truth((x != 0.0) != (y != 0.0))),
        other => return Err(format!("{} is no function of two tensors", other.name())),
    };
    Ok(vec![args.make(0, |i| f(x.broadcast(i), y.broadcast(i)))])
}

/// `a` where `cond` holds, else `b`.
pub(super) fn select(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let (cond, a, b) = (args.tensor("cond")?, args.tensor("a")?, args.tensor("b")?);
    Ok(vec![args.make(0, |i| if cond.broadcast(i) != 0.0 { a.broadcast(i) } else { b.broadcast(i) })])
}

/// A function of one tensor; `epsilon` is added first where the op has it.
pub(super) fn one(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("x")?;
    let epsilon = args.number_or("epsilon", 0.0)?;
    let rules = args.rules;
    let chip = rules.imitates(x.dtype);
    let f: Box<dyn Fn(f64) -> f64> = match args.call.op.kind {
        OpKind::Abs => Box::new(f64::abs),
        OpKind::Acos => Box::new(f64::acos),
        OpKind::Asin => Box::new(f64::asin),
        OpKind::Atan => Box::new(f64::atan),
        OpKind::Atanh => Box::new(f64::atanh),
        OpKind::Ceil => Box::new(f64::ceil),
        OpKind::Cos => Box::new(f64::cos),
        OpKind::Cosh => Box::new(f64::cosh),
        OpKind::Erf if chip => Box::new(|x| table::ERF.eval(x)),
        OpKind::Erf => Box::new(table::erf),
        OpKind::Exp => Box::new(f64::exp),
        OpKind::Exp2 => Box::new(f64::exp2),
        OpKind::Floor => Box::new(f64::floor),
        OpKind::Round if chip => Box::new(move |x| round(rules, x)),
        OpKind::Round => Box::new(f64::round_ties_even),
        OpKind::Sign => Box::new(|x| if x == 0.0 || x.is_nan() { x } else { x.signum() }),
        OpKind::Sin => Box::new(f64::sin),
        OpKind::Sinh => Box::new(f64::sinh),
        OpKind::Sqrt => Box::new(f64::sqrt),
        OpKind::Square => Box::new(|x| x * x),
        OpKind::Tan => Box::new(f64::tan),
        OpKind::Tanh if chip => Box::new(|x| table::TANH.eval(x)),
        OpKind::Tanh => Box::new(f64::tanh),
        OpKind::LogicalNot => Box::new(|x| f64::from(u8::from(x == 0.0))),
        // A zero counts as positive.
        OpKind::Inverse if chip => Box::new(|x| 1.0 / (x + 0.0)),
        OpKind::Inverse => Box::new(|x| 1.0 / x),
        OpKind::Rsqrt if chip => Box::new(|x| 1.0 / (x + 0.0).sqrt()),
        OpKind::Rsqrt => Box::new(|x| 1.0 / x.sqrt()),
        OpKind::Log if chip => Box::new(|x| if x == 0.0 { LOG_OF_ZERO } else { x.ln() }),
        OpKind::Log => Box::new(f64::ln),
        OpKind::Identity => Box::new(|x| x),
        other => return Err(format!("{} is no function of one tensor", other.name())),
    };
    Ok(vec![args.make(0, |i| f(x.at(i) + epsilon))])
}

/// Half away from zero; from 1024 on, where fp16 has no halves, by adding one half: M5 takes 1024 to 1025, 1025 to 1026
/// (ane-measurements 1.3).
fn round(rules: Rules, x: f64) -> f64 {
    if x.abs() < 1024.0 { x.round() } else { rules.store(DType::F16, x + 0.5f64.copysign(x)).trunc() }
}

/// Another type. Towards zero where that is an integer; what it cannot hold becomes its nearest end.
pub(super) fn cast(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("x")?;
    let dtype = args.result(0).dtype;
    // What comes to the chip as NaN counts as infinity.
    Ok(vec![args.make(0, |i| clamp(dtype, args.rules.operand(dtype, x.at(i))))])
}

/// `x` moved into the range of an integer type; NaN is 0.
pub(super) fn clamp(dtype: DType, x: f64) -> f64 {
    if dtype.is_float() || dtype == DType::Bool {
        return x;
    }
    let bits = dtype.bits() as i32;
    let (low, high) = if dtype.holds(-1) { (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1) - 1.0) } else { (0.0, 2f64.powi(bits) - 1.0) };
    if x.is_nan() { 0.0 } else { x.max(low).min(high) }
}
