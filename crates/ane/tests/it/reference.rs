//! The obvious evaluator: every op one loop over indices in f64, rounded to fp16, nothing shared with the emulator but the op table's
//! reading of arguments.

use half::f16;
use mil::ops::{Call, Cut, OpKind, Window};
use mil::{Arg, Function, Handle, Value, Verified};
use std::collections::BTreeMap;

/// A tensor of fp16 values.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) dims: Vec<usize>,
    pub(crate) data: Vec<f64>,
}

/// All indices of a shape, row-major.
fn indices(dims: &[usize]) -> Vec<Vec<usize>> {
    dims.iter().fold(vec![vec![]], |all, &n| all.into_iter().flat_map(|i| (0..n).map(move |j| [i.as_slice(), &[j]].concat())).collect())
}

impl Tensor {
    fn new(dims: &[usize], f: impl Fn(&[usize]) -> f64) -> Tensor {
        Tensor { dims: dims.to_vec(), data: indices(dims).iter().map(|i| f(i)).collect() }
    }

    pub(crate) fn of(dims: &[usize], data: &[f16]) -> Tensor {
        Tensor { dims: dims.to_vec(), data: data.iter().map(|x| if x.is_nan() { f64::INFINITY } else { x.to_f64() }).collect() }
    }

    fn at(&self, index: &[usize]) -> f64 {
        self.data[index.iter().zip(&self.dims).fold(0, |p, (i, d)| p * d + i)]
    }

    /// At an index of a shape that this broadcasts to.
    fn wide(&self, index: &[usize]) -> f64 {
        let lead = index.len() - self.dims.len();
        let own: Vec<usize> = self.dims.iter().zip(&index[lead..]).map(|(&d, &i)| if d == 1 { 0 } else { i }).collect();
        self.at(&own)
    }
}

/// Rounds an elementwise result.
fn round(x: f64) -> f64 {
    if x.is_nan() { 0.0 } else { f16::from_f64(x).to_f64() }
}

/// Rounds a multiply-accumulate's result.
fn round_mac(x: f64) -> f64 {
    let y = round(x);
    if y.abs() >= 32768.0 { y.signum() * f64::INFINITY } else { y }
}

/// Runs `main` on inputs in order of declaration.
pub(crate) fn run(verified: &Verified, inputs: &[Vec<f16>]) -> Vec<Tensor> {
    let f = &verified.program().functions[0];
    let mut env: BTreeMap<Handle<Value>, Tensor> = BTreeMap::new();
    for (&param, data) in f.params.iter().zip(inputs) {
        env.insert(param, Tensor::of(&f.values[param].ty.dims(), data));
    }
    for (_, op) in f.ops.iter() {
        let call = Call::new(f, op).unwrap();
        if op.kind == OpKind::Const {
            let literal = op.attr("val").unwrap();
            if let Ok(data) = verified.blobs().f16s(literal) {
                env.insert(op.results[0], Tensor::of(&literal.ty().dims(), &data));
            }
            continue;
        }
        for (&result, out) in op.results.iter().zip(evaluate(f, &call, &env)) {
            assert_eq!(out.dims, f.values[result].ty.dims());
            env.insert(result, out);
        }
    }
    f.results.iter().map(|r| env[r].clone()).collect()
}

fn evaluate(f: &Function, call: &Call<'_>, env: &BTreeMap<Handle<Value>, Tensor>) -> Vec<Tensor> {
    let dims = f.values[call.op.results[0]].ty.dims();
    let arg = |i: usize| match call.arg(i) {
        Some(Arg::Value(v)) if env.contains_key(v) => env[v].clone(),
        _ => {
            // A scalar left out, or written in fp32.
            Tensor { dims: vec![], data: vec![round(call.float(i).unwrap())] }
        }
    };
    let two = |g: fn(f64, f64) -> f64| {
        let (x, y) = (arg(0), arg(1));
        vec![Tensor::new(&dims, |i| round(g(x.wide(i), y.wide(i))))]
    };
    let one = |g: fn(f64) -> f64| {
        let x = arg(0);
        vec![Tensor::new(&dims, |i| round(g(x.at(i))))]
    };
    let relabel = || vec![Tensor { dims: dims.clone(), data: arg(0).data }];
    match call.op.kind {
        OpKind::Const => unreachable!("handled by the caller"),
        OpKind::Add => two(|x, y| x + y),
        OpKind::Sub => two(|x, y| x - y),
        OpKind::Mul => two(|x, y| x * y),
        OpKind::RealDiv => two(|x, y| x / y),
        OpKind::Maximum => two(f64::max),
        OpKind::Minimum => two(f64::min),
        OpKind::Pow => two(f64::powf),
        OpKind::Sigmoid => one(|x| 1.0 / (1.0 + (-x).exp())),
        OpKind::Tanh => one(f64::tanh),
        OpKind::Relu => one(|x| x.max(0.0)),
        OpKind::Silu => one(|x| x / (1.0 + (-x).exp())),
        OpKind::Exp => one(f64::exp),
        OpKind::Sqrt => one(f64::sqrt),
        OpKind::Rsqrt => two(|x, epsilon| 1.0 / (x + epsilon).sqrt()),
        OpKind::Log => two(|x, epsilon| if x + epsilon == 0.0 { -45440.0 } else { (x + epsilon).ln() }),
        OpKind::Cast | OpKind::Reshape | OpKind::ExpandDims | OpKind::Squeeze => relabel(),
        OpKind::Transpose => {
            let x = arg(0);
            let perm = call.axes(1, x.dims.len()).unwrap();
            vec![Tensor::new(&dims, |i| {
                let mut from = vec![0; perm.len()];
                perm.iter().zip(i).for_each(|(&p, &i)| from[p] = i);
                x.at(&from)
            })]
        }
        OpKind::SliceBySize | OpKind::SliceByIndex => {
            let (x, cuts) = (arg(0), Cut::of(call).unwrap());
            vec![Tensor::new(&dims, |i| {
                let mut i = i.iter();
                let from = |c: &Cut| (c.begin as i64 + c.step * if c.squeeze { 0 } else { *i.next().unwrap() as i64 }) as usize;
                x.at(&cuts.iter().map(from).collect::<Vec<_>>())
            })]
        }
        OpKind::Split => {
            let x = arg(0);
            let axis = call.axis(3, x.dims.len()).unwrap();
            let mut begin = 0;
            let part = |&r: &Handle<Value>| {
                let dims = f.values[r].ty.dims();
                let from = begin;
                begin += dims[axis];
                Tensor::new(&dims, |i| {
                    let mut i = i.to_vec();
                    i[axis] += from;
                    x.at(&i)
                })
            };
            call.op.results.iter().map(part).collect()
        }
        OpKind::Concat => {
            let parts: Vec<&Tensor> = call.list(0).iter().map(|v| &env[v]).collect();
            let axis = call.axis(1, dims.len()).unwrap();
            let interleave = call.flag(2).unwrap();
            vec![Tensor::new(&dims, |i| {
                let mut i = i.to_vec();
                if interleave {
                    let part = parts[i[axis] % parts.len()];
                    i[axis] /= parts.len();
                    return part.at(&i);
                }
                for part in &parts {
                    if i[axis] < part.dims[axis] {
                        return part.at(&i);
                    }
                    i[axis] -= part.dims[axis];
                }
                unreachable!("past the last part")
            })]
        }
        OpKind::Tile => {
            let x = arg(0);
            vec![Tensor::new(&dims, |i| x.at(&i.iter().zip(&x.dims).map(|(i, d)| i % d).collect::<Vec<_>>()))]
        }
        OpKind::ReduceSum | OpKind::ReduceMean | OpKind::ReduceMax => {
            let x = arg(0);
            let rank = x.dims.len();
            let axes = if call.has(1) { call.axes(1, rank).unwrap() } else { (0..rank).collect() };
            let folded: Vec<usize> = (0..rank).map(|a| if axes.contains(&a) { x.dims[a] } else { 1 }).collect();
            let kept: Vec<usize> = (0..rank).map(|a| if axes.contains(&a) { 1 } else { x.dims[a] }).collect();
            let out = Tensor::new(&kept, |i| {
                let all = indices(&folded).into_iter().map(|j| x.at(&i.iter().zip(&j).map(|(a, b)| a + b).collect::<Vec<_>>()));
                round(match call.op.kind {
                    OpKind::ReduceMax => all.fold(f64::NEG_INFINITY, f64::max),
                    OpKind::ReduceSum => all.sum(),
                    _ => all.sum::<f64>() / folded.iter().product::<usize>() as f64,
                })
            });
            vec![Tensor { dims, data: out.data }]
        }
        OpKind::Softmax => {
            let x = arg(0);
            vec![softmax(&x, call.axis(1, x.dims.len()).unwrap())]
        }
        OpKind::Matmul => vec![matmul(&arg(0), call.flag(2).unwrap(), &arg(1), call.flag(3).unwrap(), &dims)],
        OpKind::ScaledDotProductAttention => {
            let (q, k, v) = (arg(0), arg(1), arg(2));
            let rank = dims.len();
            let mut scores_dims = dims.clone();
            scores_dims[rank - 1] = k.dims[rank - 2];
            let mut scores = matmul(&q, false, &k, true, &scores_dims);
            let scale = 1.0 / (q.dims[rank - 1] as f64).sqrt();
            scores.data.iter_mut().for_each(|x| *x = round(*x * scale));
            vec![matmul(&softmax(&scores, rank - 1), false, &v, false, &dims)]
        }
        OpKind::Conv => {
            let (x, w) = (arg(0), arg(1));
            let bias = call.has(2).then(|| arg(2));
            let window = Window::of(call).unwrap();
            let outs = w.dims[0] / window.groups as usize;
            let taps = indices(&w.dims[1..]);
            vec![Tensor::new(&dims, |o| {
                let group = o[1] / outs;
                let mut sum = bias.as_ref().map_or(0.0, |b| b.at(&[o[1]]));
                for tap in &taps {
                    let mut from = vec![o[0], group * w.dims[1] + tap[0]];
                    let mut inside = true;
                    for a in 0..window.strides.len() {
                        let place = (o[2 + a] as u64 * window.strides[a] + tap[1 + a] as u64 * window.dilations[a]) as i64
                            - window.pads[a].0 as i64;
                        inside &= (0..x.dims[2 + a] as i64).contains(&place);
                        from.push(place as usize);
                    }
                    if inside {
                        sum += x.at(&from) * w.at(&[&[o[1]], tap.as_slice()].concat());
                    }
                }
                round_mac(sum)
            })]
        }
        other => unreachable!("{} is not emulated", other.name()),
    }
}

fn matmul(x: &Tensor, tx: bool, y: &Tensor, ty: bool, dims: &[usize]) -> Tensor {
    let k = x.dims[x.dims.len() - if tx { 2 } else { 1 }];
    let operand = |t: &Tensor, batch: &[usize], r: usize, c: usize, swap: bool| {
        let tail = if swap { [c, r] } else { [r, c] };
        let lead = batch.len() + 2 - t.dims.len();
        let own = batch[lead..].iter().zip(&t.dims).map(|(&i, &d)| if d == 1 { 0 } else { i });
        t.at(&own.chain(tail).collect::<Vec<_>>())
    };
    Tensor::new(dims, |i| {
        let (batch, rc) = i.split_at(i.len() - 2);
        round_mac((0..k).map(|j| operand(x, batch, rc[0], j, tx) * operand(y, batch, j, rc[1], ty)).sum())
    })
}

fn softmax(x: &Tensor, axis: usize) -> Tensor {
    Tensor::new(&x.dims, |i| {
        let row = || {
            (0..x.dims[axis]).map(|n| {
                let mut j = i.to_vec();
                j[axis] = n;
                x.at(&j)
            })
        };
        let top = row().fold(f64::NEG_INFINITY, f64::max);
        // inf - inf is 0.
        let e = |v: f64| if v == top { 1.0 } else { (v - top).exp() };
        round(e(x.at(i)) / row().map(e).sum::<f64>())
    })
}
