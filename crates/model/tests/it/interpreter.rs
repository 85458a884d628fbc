//! The obvious evaluator of the ops that the programs use, in f64: what a program means, without any device.

use mil::{Arg, Function, Handle, Literal, Op, Program, Value};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tensor {
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<f64>,
}

impl Tensor {
    pub(crate) fn zeros(shape: &[usize]) -> Tensor {
        Tensor { shape: shape.to_vec(), data: vec![0.0; shape.iter().product()] }
    }

    fn strides(&self) -> Vec<usize> {
        (0..self.shape.len()).map(|i| self.shape[i + 1..].iter().product()).collect()
    }

    /// A tensor of `shape` whose element at each index is this tensor's at `map(index)`.
    fn gather(&self, shape: &[usize], map: impl Fn(&[usize]) -> Vec<usize>) -> Tensor {
        let strides = self.strides();
        let mut out = Tensor::zeros(shape);
        let mut index = vec![0; shape.len()];
        for value in &mut out.data {
            let from = map(&index);
            *value = self.data[from.iter().zip(&strides).map(|(i, s)| i * s).sum::<usize>()];
            for axis in (0..shape.len()).rev() {
                index[axis] += 1;
                if index[axis] < shape[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
        out
    }
}

/// Runs `main` on named inputs; `blobs` by path. Results in order.
pub(crate) fn run(program: &Program, inputs: &BTreeMap<String, Tensor>, blobs: &BTreeMap<String, Tensor>) -> Vec<Tensor> {
    let f = &program.functions[0];
    let mut env: BTreeMap<Handle<Value>, Tensor> = BTreeMap::new();
    for &param in &f.params {
        let tensor = inputs[&f.values[param].name].clone();
        assert_eq!(tensor.shape, f.values[param].ty.dims());
        env.insert(param, tensor);
    }
    for (_, op) in f.ops.iter() {
        let result = op.results[0];
        let out = evaluate(f, op, &env, blobs);
        assert_eq!(out.shape, f.values[result].ty.dims(), "{}: declared shape", f.values[result].name);
        env.insert(result, out);
    }
    f.results.iter().map(|r| env[r].clone()).collect()
}

fn evaluate(f: &Function, op: &Op, env: &BTreeMap<Handle<Value>, Tensor>, blobs: &BTreeMap<String, Tensor>) -> Tensor {
    let tensor = |name: &str| match op.arg(name).unwrap() {
        Arg::Value(v) => env[v].clone(),
        Arg::Literal(l) => constant(l, blobs),
        Arg::List(_) => panic!("{name} is a list"),
    };
    let ints = |name: &str| -> Vec<i64> {
        let literal = match op.arg(name).unwrap() {
            Arg::Value(v) => f.constant(*v).unwrap(),
            Arg::Literal(l) => l,
            Arg::List(_) => panic!("{name} is a list"),
        };
        let Literal::Ints(_, values) = literal else { panic!("{name} is not of integers") };
        values.clone()
    };
    let sizes = |name: &str| ints(name).iter().map(|&n| n as usize).collect::<Vec<_>>();
    let flag = |name: &str| op.arg(name).is_some() && ints(name)[0] != 0;
    match op.kind.name() {
        "const" => constant(op.attr("val").unwrap(), blobs),
        "slice_by_size" => {
            let begin = sizes("begin");
            tensor("x").gather(&sizes("size"), |i| i.iter().zip(&begin).map(|(i, b)| i + b).collect())
        }
        "reshape" => {
            let (x, shape) = (tensor("x"), sizes("shape"));
            assert_eq!(x.data.len(), shape.iter().product::<usize>());
            Tensor { shape, data: x.data }
        }
        "transpose" => {
            let (x, perm) = (tensor("x"), sizes("perm"));
            let shape: Vec<usize> = perm.iter().map(|&p| x.shape[p]).collect();
            x.gather(&shape, |i| {
                let mut from = vec![0; i.len()];
                perm.iter().zip(i).for_each(|(&p, &i)| from[p] = i);
                from
            })
        }
        "matmul" => matmul(&tensor("x"), &tensor("y"), flag("transpose_x"), flag("transpose_y")),
        "add" => zip(&tensor("x"), &tensor("y"), |a, b| a + b),
        "sub" => zip(&tensor("x"), &tensor("y"), |a, b| a - b),
        "mul" => zip(&tensor("x"), &tensor("y"), |a, b| a * b),
        "sigmoid" => map(tensor("x"), |v| 1.0 / (1.0 + (-v).exp())),
        "softmax" => {
            assert_eq!(ints("axis"), [-1]);
            let mut x = tensor("x");
            let n = *x.shape.last().unwrap();
            for row in x.data.chunks_mut(n) {
                let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                row.iter_mut().for_each(|v| *v = (*v - max).exp());
                let sum: f64 = row.iter().sum();
                row.iter_mut().for_each(|v| *v /= sum);
            }
            x
        }
        "concat" => {
            assert_eq!((ints("axis"), flag("interleave")), (vec![1], false));
            let Some(Arg::List(values)) = op.arg("values") else { panic!("concat takes a list") };
            let parts: Vec<&Tensor> = values.iter().map(|v| &env[v]).collect();
            let mut shape = parts[0].shape.clone();
            assert_eq!(shape[0], 1);
            shape[1] = parts.iter().map(|p| p.shape[1]).sum();
            Tensor { shape, data: parts.iter().flat_map(|p| p.data.clone()).collect() }
        }
        other => panic!("no program should use {other}"),
    }
}

fn constant(literal: &Literal, blobs: &BTreeMap<String, Tensor>) -> Tensor {
    match literal {
        Literal::Ints(ty, values) => Tensor { shape: ty.dims(), data: values.iter().map(|&v| v as f64).collect() },
        Literal::Floats(ty, values) => Tensor { shape: ty.dims(), data: values.clone() },
        Literal::Blob { ty, path, offset } => {
            assert_eq!(*offset, 64, "{path}: one blob a file");
            assert_eq!(blobs[path].shape, ty.dims(), "{path}");
            blobs[path].clone()
        }
        Literal::Text(_) | Literal::Texts(..) => Tensor::zeros(&[]),
    }
}

fn map(mut x: Tensor, f: impl Fn(f64) -> f64) -> Tensor {
    x.data.iter_mut().for_each(|v| *v = f(*v));
    x
}

fn zip(x: &Tensor, y: &Tensor, f: impl Fn(f64, f64) -> f64) -> Tensor {
    let rank = x.shape.len().max(y.shape.len());
    let axis = |t: &Tensor, i: usize| if i + t.shape.len() < rank { 1 } else { t.shape[i + t.shape.len() - rank] };
    let shape: Vec<usize> = (0..rank).map(|i| axis(x, i).max(axis(y, i))).collect();
    let spread = |t: &Tensor| {
        t.gather(&shape, |index| {
            let tail = &index[rank - t.shape.len()..];
            tail.iter().zip(&t.shape).map(|(&i, &n)| if n == 1 { 0 } else { i }).collect()
        })
    };
    let (a, b) = (spread(x), spread(y));
    Tensor { shape, data: a.data.iter().zip(&b.data).map(|(&a, &b)| f(a, b)).collect() }
}

fn matmul(x: &Tensor, y: &Tensor, transpose_x: bool, transpose_y: bool) -> Tensor {
    let rank = x.shape.len();
    assert_eq!(x.shape[..rank - 2], y.shape[..rank - 2], "leading axes are equal in every program");
    let (xr, xc, yr, yc) = (x.shape[rank - 2], x.shape[rank - 1], y.shape[rank - 2], y.shape[rank - 1]);
    let (m, k) = if transpose_x { (xc, xr) } else { (xr, xc) };
    let (inner, n) = if transpose_y { (yc, yr) } else { (yr, yc) };
    assert_eq!(k, inner);
    let mut shape = x.shape[..rank - 2].to_vec();
    shape.extend([m, n]);
    let mut out = Tensor::zeros(&shape);
    for ((x, y), out) in x.data.chunks(xr * xc).zip(y.data.chunks(yr * yc)).zip(out.data.chunks_mut(m * n)) {
        for i in 0..m {
            for l in 0..k {
                let a = if transpose_x { x[l * xc + i] } else { x[i * xc + l] };
                if a != 0.0 {
                    for j in 0..n {
                        out[i * n + j] += a * if transpose_y { y[j * yc + l] } else { y[l * yc + j] };
                    }
                }
            }
        }
    }
    out
}
