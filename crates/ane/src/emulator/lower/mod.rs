//! From MIL to the emulator's graph.

mod constants;
mod pointwise;
mod products;
mod shapes;

use super::graph::{Graph, NodeOp, Reduce, Source, ValueId};
use mil::ops::{Call, OpKind, Reject};
use mil::{Blobs, Chip, DType, Function, Handle, Op, Value};

/// Lowers one function. `chip` is `None` for programs of the language alone, which know no chip's habits.
///
/// # Errors
/// When an element type is not emulated; the text names op and value.
pub(super) fn lower(function: &Function, blobs: &Blobs, chip: Option<Chip>) -> Result<Graph, String> {
    let values = vec![None; function.values.len()];
    let mut lowering = Lowering { function, blobs, chip, graph: Graph::default(), values };
    let fp16 = |what: &str, value: &Value| match value.ty.dtype {
        DType::F16 => Ok(()),
        _ => Err(format!(
            "{what} `{}` is {}: ports of the fast arithmetic are fp16; the exact one has other types too",
            value.name, value.ty
        )),
    };
    for (i, &param) in function.params.iter().enumerate() {
        let value = &function.values[param];
        fp16("input", value)?;
        lowering.values[param.index()] = Some(lowering.graph.leaf(value.ty.dims(), Source::Input(i)));
    }
    for (_, op) in function.ops.iter() {
        lowering.op(op).map_err(|text| {
            let result = op.results.first().map_or("", |&v| function.values[v].name.as_str());
            format!("{} of `{result}`: {text}", op.kind.name())
        })?;
    }
    for &result in &function.results {
        fp16("output", &function.values[result])?;
        let id = lowering.value(result)?;
        lowering.graph.outputs.push(id);
    }
    Ok(lowering.graph)
}

/// A graph in the making.
struct Lowering<'a> {
    function: &'a Function,
    blobs: &'a Blobs,
    chip: Option<Chip>,
    graph: Graph,
    /// By index of the function's value.
    values: Vec<Option<ValueId>>,
}

/// What the op table says against an argument. A verified program never gets here.
fn reject(r: Reject) -> String {
    format!("{} {}: {}", r.param, r.message, r.help)
}

impl<'a> Lowering<'a> {
    /// Every op of the table, by what it becomes.
    fn op(&mut self, op: &'a Op) -> Result<(), String> {
        let call = &Call::new(self.function, op).map_err(reject)?;
        if op.kind != OpKind::Const {
            for &result in &op.results {
                let ty = &self.function.values[result].ty;
                if ty.dtype != DType::F16 {
                    return Err(format!("gives {ty}: the fast arithmetic has fp16 alone; the exact one has other types too"));
                }
            }
        }
        let made = match op.kind {
            // Decoded where it is used.
            OpKind::Const => return Ok(()),
            OpKind::Split => return self.split(call),
            OpKind::Matmul => self.matmul(call)?,
            OpKind::Conv => self.conv(call)?,
            OpKind::ScaledDotProductAttention => self.attention(call)?,
            OpKind::Add
            | OpKind::Sub
            | OpKind::Mul
            | OpKind::RealDiv
            | OpKind::Maximum
            | OpKind::Minimum
            | OpKind::Pow
            | OpKind::Sigmoid
            | OpKind::Tanh
            | OpKind::Relu
            | OpKind::Silu
            | OpKind::Exp
            | OpKind::Sqrt
            | OpKind::Rsqrt
            | OpKind::Log => self.pointwise(call)?,
            OpKind::Softmax => self.softmax(call)?,
            OpKind::ReduceSum => self.reduce(call, Reduce::Sum)?,
            OpKind::ReduceMean => self.reduce(call, Reduce::Mean)?,
            OpKind::ReduceMax => self.reduce(call, Reduce::Max)?,
            // Both sides of a cast are fp16 here.
            OpKind::Reshape | OpKind::ExpandDims | OpKind::Squeeze | OpKind::Cast => {
                let x = self.tensor(call, 0)?;
                self.reshape(x, &self.declared(call))
            }
            OpKind::Transpose => self.transpose(call)?,
            OpKind::SliceBySize | OpKind::SliceByIndex => self.slice(call)?,
            OpKind::Concat => self.concat(call)?,
            OpKind::Tile => self.tile(call)?,
            // What the op table calls `known`.
            _ => return Err("not emulated by the fast arithmetic; the exact one runs more ops".into()),
        };
        let (found, declared) = (self.dims(made), self.declared(call));
        if found != declared {
            return Err(format!("has extents {found:?} where {declared:?} is declared"));
        }
        self.define(call, made);
        Ok(())
    }

    /// Extents of the op's first result.
    fn declared(&self, call: &Call<'_>) -> Vec<usize> {
        call.op.results.first().map_or_else(Vec::new, |&v| self.function.values[v].ty.dims())
    }

    fn define(&mut self, call: &Call<'_>, made: ValueId) {
        if let Some(result) = call.op.results.first() {
            self.values[result.index()] = Some(made);
        }
    }

    /// The graph's value for a value of the function; constants are decoded here, once.
    fn value(&mut self, handle: Handle<Value>) -> Result<ValueId, String> {
        if let Some(id) = self.values[handle.index()] {
            return Ok(id);
        }
        let value = &self.function.values[handle];
        let literal = self.function.constant(handle).ok_or_else(|| format!("`{}` is used before it is made", value.name))?;
        let data = constants::decode(literal, self.blobs).map_err(|text| format!("constant `{}` {text}", value.name))?;
        let id = self.graph.leaf(value.ty.dims(), Source::Const(data));
        self.values[handle.index()] = Some(id);
        Ok(id)
    }

    /// The tensor given for parameter `i`.
    fn tensor(&mut self, call: &Call<'_>, i: usize) -> Result<ValueId, String> {
        match call.value(i) {
            Some(handle) => self.value(handle),
            None => {
                let literal = call.literal(i).map_err(reject)?;
                let data = constants::decode(&literal, self.blobs)?;
                Ok(self.graph.leaf(literal.ty().dims(), Source::Const(data)))
            }
        }
    }

    fn dims(&self, value: ValueId) -> Vec<usize> {
        self.graph.values[value].dims.clone()
    }

    fn reshape(&mut self, value: ValueId, dims: &[usize]) -> ValueId {
        self.graph.push(NodeOp::Reshape, vec![value], dims.to_vec())
    }

    fn permute(&mut self, value: ValueId, perm: Vec<usize>) -> ValueId {
        let old = self.dims(value);
        let dims = perm.iter().map(|&p| old[p]).collect();
        self.graph.push(NodeOp::Permute(perm), vec![value], dims)
    }
}
