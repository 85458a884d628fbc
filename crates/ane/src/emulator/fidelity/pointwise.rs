//! Functions of one or two numbers, with the chip's special values (ane-measurements 1.3).

use super::args::Args;
use super::rules::LOG_OF_ZERO;
use super::table;
use super::tensor::Tensor;
use mil::DType;
use mil::ops::OpKind;

/// A function of two broadcast tensors.
pub(super) fn two(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let (x, y) = (args.tensor("x")?, args.tensor("y")?);
    let chip = args.rules.imitates(x.dtype);
    let whole = !x.dtype.is_float();
    let f: fn(f64, f64) -> f64 = match args.call.op.kind {
        OpKind::Add => |x, y| x + y,
        OpKind::Sub => |x, y| x - y,
        OpKind::Mul => |x, y| x * y,
        OpKind::RealDiv if whole => |x, y| if y == 0.0 { 0.0 } else { (x / y).trunc() },
        // The sign of a zero is dropped before a reciprocal.
        OpKind::RealDiv if chip => |x, y| if y == 0.0 { x / 0.0 } else { x / y },
        OpKind::RealDiv => |x, y| x / y,
        OpKind::Maximum => |x, y| if x > y || x.is_nan() { x } else { y },
        OpKind::Minimum => |x, y| if x < y || x.is_nan() { x } else { y },
        OpKind::Pow => f64::powf,
        other => return Err(format!("{} is no function of two tensors", other.name())),
    };
    Ok(vec![args.make(0, |i| f(x.broadcast(i), y.broadcast(i)))])
}

/// A function of one tensor, and perhaps an `epsilon`.
pub(super) fn one(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("x")?;
    let epsilon = if args.index("epsilon").is_ok() { args.number("epsilon")? } else { 0.0 };
    let chip = args.rules.imitates(x.dtype);
    let f: fn(f64) -> f64 = match args.call.op.kind {
        OpKind::Relu => |x| if x > 0.0 || x.is_nan() { x } else { 0.0 },
        OpKind::Sigmoid if chip => |x| table::SIGMOID.eval(x),
        OpKind::Sigmoid => table::sigmoid,
        OpKind::Tanh if chip => |x| table::TANH.eval(x),
        OpKind::Tanh => f64::tanh,
        OpKind::Silu if chip => |x| table::SILU.eval(x),
        OpKind::Silu => table::silu,
        OpKind::Exp => f64::exp,
        OpKind::Sqrt => f64::sqrt,
        // A zero counts as positive.
        OpKind::Rsqrt if chip => |x| 1.0 / (x + 0.0).sqrt(),
        OpKind::Rsqrt => |x| 1.0 / x.sqrt(),
        OpKind::Log if chip => |x| if x == 0.0 { LOG_OF_ZERO } else { x.ln() },
        OpKind::Log => f64::ln,
        other => return Err(format!("{} is no function of one tensor", other.name())),
    };
    Ok(vec![args.make(0, |i| f(x.at(i) + epsilon))])
}

/// Another type. Towards zero where that is an integer; what it cannot hold becomes its nearest end.
pub(super) fn cast(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("x")?;
    let dtype = args.result(0).dtype;
    let ends = |x: f64| match dtype {
        DType::Bool => x,
        d if d.is_float() => x,
        d => {
            let bits = d.bits() as i32;
            let signed = d.holds(-1);
            let (low, high) = if signed { (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1) - 1.0) } else { (0.0, 2f64.powi(bits) - 1.0) };
            x.max(low).min(high)
        }
    };
    Ok(vec![args.make(0, |i| ends(x.at(i)))])
}
