//! Activations.

use super::args::Args;
use super::table;
use super::tensor::Tensor;
use mil::ops::OpKind;

/// A function of each element, of `alpha` and `beta` perhaps: numbers, or one for each channel.
pub(super) fn activation(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let x = args.tensor("x")?;
    let parameter = |name: &str| if args.index(name).is_ok() { args.tensor(name).map(|t| t.data.clone()) } else { Ok(vec![0.0]) };
    let (alpha, beta) = (parameter("alpha")?, parameter("beta")?);
    let of_channel = |p: &[f64], i: &[usize]| if p.len() == 1 { p[0] } else { p[i[1]] };
    let chip = args.rules.imitates(x.dtype);
    let f: Box<dyn Fn(f64, f64, f64) -> f64> = match args.call.op.kind {
        OpKind::Relu => Box::new(|x, _, _| if x > 0.0 || x.is_nan() { x } else { 0.0 }),
        OpKind::Relu6 => Box::new(|x, _, _| x.clamp(0.0, 6.0)),
        OpKind::Clip => Box::new(|x, a, b| if x.is_nan() { x } else { x.max(a).min(b) }),
        OpKind::Threshold => Box::new(|x, a, _| if x.is_nan() { x } else { x.max(a) }),
        OpKind::Sigmoid if chip => Box::new(|x, _, _| table::SIGMOID.eval(x)),
        OpKind::Sigmoid => Box::new(|x, _, _| table::sigmoid(x)),
        OpKind::Silu if chip => Box::new(|x, _, _| table::SILU.eval(x)),
        OpKind::Silu => Box::new(|x, _, _| table::silu(x)),
        OpKind::Gelu => gelu(&args.text("mode")?, chip)?,
        OpKind::Softplus => Box::new(move |x, _, _| softplus(x, chip)),
        OpKind::SoftplusParametric => Box::new(move |x, a, b| a * softplus(b * x, chip)),
        OpKind::Softsign => Box::new(|x, _, _| x / (1.0 + x.abs())),
        OpKind::ClampedRelu => Box::new(|x, a, b| (if x >= 0.0 { x } else { a * x }).min(b)),
        OpKind::Elu => Box::new(|x, a, _| if x >= 0.0 { x } else { a * x.exp_m1() }),
        OpKind::LeakyRelu | OpKind::Prelu => Box::new(|x, a, _| if x >= 0.0 { x } else { a * x }),
        OpKind::LinearActivation => Box::new(|x, a, b| a * x + b),
        OpKind::ScaledTanh if chip => Box::new(|x, a, b| a * table::TANH.eval(b * x)),
        OpKind::ScaledTanh => Box::new(|x, a, b| a * (b * x).tanh()),
        OpKind::SigmoidHard => Box::new(|x, a, b| (a * x + b).clamp(0.0, 1.0)),
        OpKind::ThresholdedRelu => Box::new(|x, a, _| if x >= a { x } else { 0.0 }),
        other => return Err(format!("{} is no activation", other.name())),
    };
    Ok(vec![args.make(0, |i| f(x.at(i), of_channel(&alpha, i), of_channel(&beta, i)))])
}

type Function = Box<dyn Fn(f64, f64, f64) -> f64>;

fn gelu(mode: &str, chip: bool) -> Result<Function, String> {
    Ok(match mode {
        _ if chip => Box::new(|x, _, _| table::GELU.eval(x)),
        "EXACT" => Box::new(|x, _, _| table::gelu(x)),
        "TANH_APPROXIMATION" => {
            let root = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
            Box::new(
                move |x, _, _| if x == f64::NEG_INFINITY { 0.0 } else { 0.5 * x * (1.0 + (root * (x + 0.044_715 * x.powi(3))).tanh()) },
            )
        }
        "SIGMOID_APPROXIMATION" => Box::new(|x, _, _| if x == f64::NEG_INFINITY { 0.0 } else { x * table::sigmoid(1.702 * x) }),
        other => return Err(format!("mode is \"{other}\"")),
    })
}

/// ln(1 + eˣ). The chip gives 0 from 11 on, where its own exponential overflows (ane-measurements 1.3).
fn softplus(x: f64, chip: bool) -> f64 {
    match x {
        x if chip && x >= 11.0 => 0.0,
        x if x > 0.0 => x + (-x).exp().ln_1p(),
        x => x.exp().ln_1p(),
    }
}
