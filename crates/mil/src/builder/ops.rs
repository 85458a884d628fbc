//! One method for each op.

use super::{BuildError, Builder, Val};
use crate::ir::{Arg, DType, Literal, MAX_RANK, Type};
use crate::ops::OpKind;

type Built = Result<Val, BuildError>;

/// The arguments of a `conv` beside input and weight; one entry for each spatial axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conv {
    /// Elements between neighbouring positions.
    pub strides: Vec<usize>,
    /// Zeros before and after each axis.
    pub pads: Vec<(usize, usize)>,
    /// Elements between neighbouring taps.
    pub dilations: Vec<usize>,
    /// Groups of channels that do not see each other.
    pub groups: usize,
}

fn value(v: Val) -> Arg {
    Arg::Value(v.0)
}

fn flag(b: bool) -> Arg {
    Arg::Literal(Literal::bool(b))
}

fn int(n: i64) -> Arg {
    Arg::Literal(Literal::int(n))
}

fn ints(values: &[i64]) -> Arg {
    Arg::Literal(Literal::ints(values))
}

fn text(s: &str) -> Arg {
    Arg::Literal(Literal::Text(s.into()))
}

/// Lengths as `int32`; one that does not fit stays out of range, for the type rule to refuse.
fn sizes(values: &[usize]) -> Arg {
    ints(&values.iter().map(|&n| i64::try_from(n).unwrap_or(i64::MAX)).collect::<Vec<_>>())
}

/// What stands for a value: all methods here return the op's one result.
///
/// # Errors
/// Every method refuses arguments that do not fit the op, naming the parameter.
#[allow(clippy::missing_errors_doc)]
impl Builder {
    fn one(&mut self, kind: OpKind, args: Vec<(&'static str, Arg)>) -> Built {
        let results = self.op(kind, args)?;
        match results.as_slice() {
            [one] => Ok(*one),
            many => Err(BuildError {
                op: kind.name(),
                param: String::new(),
                message: format!("has {} results", many.len()),
                help: "use the method that returns them all",
            }),
        }
    }

    /// A `const` of `fp16` from a weight file: its own file, with the blob's metadata at offset 64.
    pub fn blob(&mut self, path: &str, shape: &[usize]) -> Built {
        let refuse = |message: String, help| Err(BuildError { op: "blob", param: path.into(), message, help });
        if !crate::word::is_blob_path(path) {
            return refuse("is no path of a weight file".into(), "write @model_path/ and then plain names: letters, digits, . _ - and /");
        }
        if shape.contains(&0) || shape.len() > MAX_RANK {
            return refuse(format!("has shape {shape:?}"), "give one to five axes with at least one element each");
        }
        Ok(Val(self.constant(Literal::Blob { ty: Type::f16(shape), path: path.into(), offset: 64 })))
    }

    /// A scalar `const` of `fp16`, rounded to nearest even.
    pub fn scalar(&mut self, x: f32) -> Built {
        let literal = Literal::f16(x);
        if matches!(&literal, Literal::Floats(_, v) if v.iter().all(|x| x.is_finite())) {
            return Ok(Val(self.constant(literal)));
        }
        let message = format!("is {x}, which fp16 does not hold");
        Err(BuildError { op: "scalar", param: "x".into(), message, help: "stay within 65504" })
    }

    /// `slice_by_size`: the window that starts at `begin` and has `size`.
    pub fn slice(&mut self, x: Val, begin: &[usize], size: &[usize]) -> Built {
        self.one(OpKind::SliceBySize, vec![("begin", sizes(begin)), ("size", sizes(size)), ("x", value(x))])
    }

    /// `slice_by_index` with explicit bounds, `x[begin : end : stride]` on each axis.
    pub fn slice_by_index(&mut self, x: Val, begin: &[i64], end: &[i64], stride: &[i64]) -> Built {
        self.one(OpKind::SliceByIndex, vec![("begin", ints(begin)), ("end", ints(end)), ("stride", ints(stride)), ("x", value(x))])
    }

    /// `reshape`.
    pub fn reshape(&mut self, x: Val, shape: &[usize]) -> Built {
        if shape.contains(&0) {
            let message = format!("is {shape:?}");
            return Err(BuildError { op: "reshape", param: "shape".into(), message, help: "every axis has at least one element" });
        }
        self.one(OpKind::Reshape, vec![("shape", sizes(shape)), ("x", value(x))])
    }

    /// `transpose`: axis `i` of the result is axis `perm[i]` of `x`.
    pub fn transpose(&mut self, x: Val, perm: &[usize]) -> Built {
        self.one(OpKind::Transpose, vec![("perm", sizes(perm)), ("x", value(x))])
    }

    /// `expand_dims`: axes of length 1 at these positions of the result.
    pub fn expand_dims(&mut self, x: Val, axes: &[i64]) -> Built {
        self.one(OpKind::ExpandDims, vec![("axes", ints(axes)), ("x", value(x))])
    }

    /// `squeeze`: without these axes of length 1.
    pub fn squeeze(&mut self, x: Val, axes: &[i64]) -> Built {
        self.one(OpKind::Squeeze, vec![("axes", ints(axes)), ("x", value(x))])
    }

    /// `matmul` over the last two axes.
    pub fn matmul(&mut self, x: Val, transpose_x: bool, y: Val, transpose_y: bool) -> Built {
        let args = vec![("transpose_x", flag(transpose_x)), ("transpose_y", flag(transpose_y)), ("x", value(x)), ("y", value(y))];
        self.one(OpKind::Matmul, args)
    }

    /// `conv` with a kernel of one element: strides 1, no padding, one group.
    pub fn conv1x1(&mut self, x: Val, w: Val) -> Built {
        let spatial = self.shape(x).len().saturating_sub(2);
        let plain = Conv { strides: vec![1; spatial], pads: vec![(0, 0); spatial], dilations: vec![1; spatial], groups: 1 };
        self.conv(x, w, &plain)
    }

    /// `conv` without bias (the chip takes none, ane-facts 5.2).
    pub fn conv(&mut self, x: Val, w: Val, conv: &Conv) -> Built {
        let pads: Vec<usize> = conv.pads.iter().flat_map(|&(before, after)| [before, after]).collect();
        let pad_type = if pads.iter().all(|&p| p == 0) { "valid" } else { "custom" };
        let args = vec![
            ("dilations", sizes(&conv.dilations)),
            ("groups", int(i64::try_from(conv.groups).unwrap_or(i64::MAX))),
            ("pad", sizes(&pads)),
            ("pad_type", text(pad_type)),
            ("strides", sizes(&conv.strides)),
            ("weight", value(w)),
            ("x", value(x)),
        ];
        self.one(OpKind::Conv, args)
    }

    /// `x + y`, broadcast.
    pub fn add(&mut self, x: Val, y: Val) -> Built {
        self.binary(OpKind::Add, x, y)
    }

    /// `x - y`, broadcast.
    pub fn sub(&mut self, x: Val, y: Val) -> Built {
        self.binary(OpKind::Sub, x, y)
    }

    /// `x * y`, broadcast.
    pub fn mul(&mut self, x: Val, y: Val) -> Built {
        self.binary(OpKind::Mul, x, y)
    }

    /// `x / y`, broadcast.
    pub fn real_div(&mut self, x: Val, y: Val) -> Built {
        self.binary(OpKind::RealDiv, x, y)
    }

    /// The larger of `x` and `y`, broadcast.
    pub fn maximum(&mut self, x: Val, y: Val) -> Built {
        self.binary(OpKind::Maximum, x, y)
    }

    /// The smaller of `x` and `y`, broadcast.
    pub fn minimum(&mut self, x: Val, y: Val) -> Built {
        self.binary(OpKind::Minimum, x, y)
    }

    /// `x` to the power `y`, broadcast.
    pub fn pow(&mut self, x: Val, y: Val) -> Built {
        self.binary(OpKind::Pow, x, y)
    }

    fn binary(&mut self, kind: OpKind, x: Val, y: Val) -> Built {
        self.one(kind, vec![("x", value(x)), ("y", value(y))])
    }

    /// `1 / (1 + exp(-x))`.
    pub fn sigmoid(&mut self, x: Val) -> Built {
        self.unary(OpKind::Sigmoid, x)
    }

    /// Hyperbolic tangent.
    pub fn tanh(&mut self, x: Val) -> Built {
        self.unary(OpKind::Tanh, x)
    }

    /// `max(x, 0)`.
    pub fn relu(&mut self, x: Val) -> Built {
        self.unary(OpKind::Relu, x)
    }

    /// `x * sigmoid(x)`.
    pub fn silu(&mut self, x: Val) -> Built {
        self.unary(OpKind::Silu, x)
    }

    /// `e` to the power `x`.
    pub fn exp(&mut self, x: Val) -> Built {
        self.unary(OpKind::Exp, x)
    }

    /// Square root.
    pub fn sqrt(&mut self, x: Val) -> Built {
        self.unary(OpKind::Sqrt, x)
    }

    fn unary(&mut self, kind: OpKind, x: Val) -> Built {
        self.one(kind, vec![("x", value(x))])
    }

    /// `1 / sqrt(x + epsilon)`; the chip wants the epsilon written (ane-facts 5.2).
    pub fn rsqrt(&mut self, x: Val, epsilon: f32) -> Built {
        self.one(OpKind::Rsqrt, vec![("epsilon", Arg::Literal(Literal::f16(epsilon))), ("x", value(x))])
    }

    /// Natural logarithm of `x + epsilon`; the chip wants the epsilon written (ane-facts 5.2).
    pub fn log(&mut self, x: Val, epsilon: f32) -> Built {
        self.one(OpKind::Log, vec![("epsilon", Arg::Literal(Literal::f16(epsilon))), ("x", value(x))])
    }

    /// `cast` to another element type.
    pub fn cast(&mut self, x: Val, dtype: DType) -> Built {
        self.one(OpKind::Cast, vec![("dtype", text(dtype.word())), ("x", value(x))])
    }

    /// `softmax` along one axis.
    pub fn softmax(&mut self, x: Val, axis: i64) -> Built {
        self.one(OpKind::Softmax, vec![("axis", int(axis)), ("x", value(x))])
    }

    /// Sum over axes.
    pub fn reduce_sum(&mut self, x: Val, axes: &[i64], keep_dims: bool) -> Built {
        self.reduce(OpKind::ReduceSum, x, axes, keep_dims)
    }

    /// Mean over axes.
    pub fn reduce_mean(&mut self, x: Val, axes: &[i64], keep_dims: bool) -> Built {
        self.reduce(OpKind::ReduceMean, x, axes, keep_dims)
    }

    /// Largest element over axes.
    pub fn reduce_max(&mut self, x: Val, axes: &[i64], keep_dims: bool) -> Built {
        self.reduce(OpKind::ReduceMax, x, axes, keep_dims)
    }

    fn reduce(&mut self, kind: OpKind, x: Val, axes: &[i64], keep_dims: bool) -> Built {
        self.one(kind, vec![("axes", ints(axes)), ("keep_dims", flag(keep_dims)), ("x", value(x))])
    }

    /// Tensors one after another along an axis, not interleaved.
    pub fn concat(&mut self, values: &[Val], axis: i64) -> Built {
        let values = Arg::List(values.iter().map(|v| v.0).collect());
        self.one(OpKind::Concat, vec![("axis", int(axis)), ("interleave", flag(false)), ("values", values)])
    }

    /// Consecutive parts of these lengths along an axis.
    pub fn split(&mut self, x: Val, lengths: &[usize], axis: i64) -> Result<Vec<Val>, BuildError> {
        self.op(OpKind::Split, vec![("axis", int(axis)), ("split_sizes", sizes(lengths)), ("x", value(x))])
    }

    /// `x` repeated `reps[i]` times along axis `i`.
    pub fn tile(&mut self, x: Val, reps: &[usize]) -> Built {
        self.one(OpKind::Tile, vec![("reps", sizes(reps)), ("x", value(x))])
    }

    /// `scaled_dot_product_attention`; on the chip the mask is ignored (ane-facts 5.2).
    pub fn attention(&mut self, query: Val, key: Val, values: Val, mask: Option<Val>) -> Built {
        let mut args = vec![("key", value(key)), ("query", value(query)), ("value", value(values))];
        if let Some(mask) = mask {
            args.insert(0, ("attn_mask", value(mask)));
        }
        self.one(OpKind::ScaledDotProductAttention, args)
    }
}
