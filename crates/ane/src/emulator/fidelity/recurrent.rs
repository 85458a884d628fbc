//! `lstm`. No chip has it (ane-measurements 1.5): it is evaluated as the language means it, states rounded at each step.

use super::args::Args;
use super::table::sigmoid;
use super::tensor::Tensor;

type Gate = fn(f64) -> f64;

fn gate(name: &str) -> Result<Gate, String> {
    Ok(match name {
        "sigmoid" => sigmoid,
        "tanh" => f64::tanh,
        "relu" => |x| x.max(0.0),
        "linear" => |x| x,
        "sigmoid_hard" => |x| (0.2 * x + 0.5).clamp(0.0, 1.0),
        other => return Err(format!("has no gate function `{other}` that is emulated")),
    })
}

/// The weights of one direction, gates in the order input, forget, output, cell.
struct Weights {
    ih: Vec<f64>,
    hh: Vec<f64>,
    bias: Vec<f64>,
    /// For the input, forget and output gate.
    peephole: Option<Vec<f64>>,
}

impl Weights {
    fn of(args: &Args<'_>, back: &str, hidden: usize) -> Result<Weights, String> {
        let data = |name: &str| args.optional(&format!("{name}{back}")).map(|t| t.map(|t| t.data.clone()));
        Ok(Weights {
            ih: data("weight_ih")?.ok_or("has no weight_ih")?,
            hh: data("weight_hh")?.ok_or("has no weight_hh")?,
            bias: data("bias")?.unwrap_or_else(|| vec![0.0; 4 * hidden]),
            peephole: data("peephole")?,
        })
    }
}

/// Over `x` [steps, batch, in]: all hidden states, the last one, the last cell state.
pub(super) fn lstm(args: &Args<'_>) -> Result<Vec<Tensor>, String> {
    let (x, h0, c0) = (args.tensor("x")?, args.tensor("initial_h")?, args.tensor("initial_c")?);
    let &[steps, batch, inputs] = x.dims.as_slice() else { return Err("x is [steps, batch, in]".into()) };
    let direction = args.text("direction")?;
    let backwards: &[bool] = match direction.as_str() {
        "bidirectional" => &[false, true],
        "reverse" => &[true],
        _ => &[false],
    };
    let width = h0.dims[1];
    let hidden = width / backwards.len();
    let act = |name: &str| args.text(name).and_then(|name| gate(&name));
    let (recurrent, cell, output) = (act("recurrent_activation")?, act("cell_activation")?, act("activation")?);
    let clip = args.optional("clip")?.map_or(f64::INFINITY, |t| t.data[0]);
    let round = |v: f64| args.rules.store(x.dtype, v);
    let mut all = Tensor { dtype: x.dtype, dims: vec![steps, batch, width], data: vec![0.0; steps * batch * width] };
    let (mut h, mut c) = ((*h0).clone(), (*c0).clone());
    for (d, &reverse) in backwards.iter().enumerate() {
        // Alone, a reversed direction has the plain names.
        let weights = Weights::of(args, if d == 1 { "_back" } else { "" }, hidden)?;
        let own = d * hidden..(d + 1) * hidden;
        for n in 0..steps {
            let step = if reverse { steps - 1 - n } else { n };
            for b in 0..batch {
                let input = &x.data[(step * batch + b) * inputs..][..inputs];
                let row = b * width;
                let (old_h, old_c) = (h.data[row..][own.clone()].to_vec(), c.data[row..][own.clone()].to_vec());
                let sum = |g: usize, u: usize| {
                    let r = g * hidden + u;
                    let dot = |w: &[f64], v: &[f64]| w[r * v.len()..][..v.len()].iter().zip(v).map(|(w, v)| w * v).sum::<f64>();
                    dot(&weights.ih, input) + dot(&weights.hh, &old_h) + weights.bias[r]
                };
                let peek = |g: usize, u: usize, c: f64| weights.peephole.as_ref().map_or(0.0, |p| p[g * hidden + u] * c);
                for (u, &old) in old_c.iter().enumerate() {
                    let i = recurrent(sum(0, u) + peek(0, u, old));
                    let f = recurrent(sum(1, u) + peek(1, u, old));
                    let new_c = round((f * old + i * cell(sum(3, u))).clamp(-clip, clip));
                    let o = recurrent(sum(2, u) + peek(2, u, new_c));
                    let place = own.start + u;
                    c.data[row + place] = new_c;
                    h.data[row + place] = round(o * output(new_c));
                    all.data[(step * batch + b) * width + place] = h.data[row + place];
                }
            }
        }
    }
    let sequence = if args.flag("output_sequence")? { all } else { h.reshape(&[1, batch, width]) };
    Ok(vec![sequence, h, c])
}
