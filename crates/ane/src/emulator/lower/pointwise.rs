//! Elementwise functions, softmax and reductions.

use super::{Lowering, reject};
use crate::emulator::exec::map::Fun;
use crate::emulator::graph::{MapArg, NodeOp, Reduce, Source, ValueId};
use mil::ops::{Call, OpKind};

impl Lowering<'_> {
    pub(super) fn pointwise(&mut self, call: &Call<'_>) -> Result<ValueId, String> {
        let fun = match call.op.kind {
            OpKind::Add => Fun::Add,
            OpKind::Sub => Fun::Sub,
            OpKind::Mul => Fun::Mul,
            OpKind::RealDiv => Fun::Div,
            OpKind::Maximum => Fun::Max,
            OpKind::Minimum => Fun::Min,
            OpKind::Pow => Fun::Pow,
            OpKind::Sigmoid => Fun::Sigmoid,
            OpKind::Tanh => Fun::Tanh,
            OpKind::Relu => Fun::Relu,
            OpKind::Silu => Fun::Silu,
            OpKind::Exp => Fun::Exp,
            OpKind::Sqrt => Fun::Sqrt,
            OpKind::Rsqrt => Fun::Rsqrt,
            OpKind::Log => Fun::Log,
            other => return Err(format!("{} is no elementwise function", other.name())),
        };
        let (mut inputs, mut args) = (Vec::new(), Vec::new());
        for i in 0..call.def.params.len() {
            let value = self.tensor(call, i)?;
            args.push(match &self.graph.values[value].source {
                // NaN stands for +inf in every op.
                Source::Const(data) if data.len() == 1 => MapArg::Scalar(if data[0].is_nan() { f32::INFINITY } else { data[0].to_f32() }),
                _ => {
                    inputs.push(value);
                    MapArg::Input(inputs.len() - 1)
                }
            });
        }
        let dims = self.declared(call);
        Ok(self.graph.push(NodeOp::Map { fun, args }, inputs, dims))
    }

    /// Along any axis: turned to be the last, and back.
    pub(super) fn softmax(&mut self, call: &Call<'_>) -> Result<ValueId, String> {
        let x = self.tensor(call, 0)?;
        let rank = self.dims(x).len();
        let axis = call.axis(1, rank).map_err(reject)?;
        let mut perm: Vec<usize> = (0..rank).collect();
        perm.swap(axis, rank - 1);
        let turned = self.permute(x, perm.clone());
        let dims = self.dims(turned);
        let y = self.graph.push(NodeOp::Softmax, vec![turned], dims);
        Ok(self.permute(y, perm))
    }

    /// Over any axes: turned to be the last, joined, folded.
    pub(super) fn reduce(&mut self, call: &Call<'_>, how: Reduce) -> Result<ValueId, String> {
        let x = self.tensor(call, 0)?;
        let dims = self.dims(x);
        let axes = if call.has(1) { call.axes(1, dims.len()).map_err(reject)? } else { (0..dims.len()).collect() };
        let kept: Vec<usize> = (0..dims.len()).filter(|a| !axes.contains(a)).collect();
        let mut folded: Vec<usize> = axes.clone();
        folded.sort_unstable();
        let turned = self.permute(x, [kept.as_slice(), &folded].concat());
        let kept: Vec<usize> = kept.iter().map(|&a| dims[a]).collect();
        let count = folded.iter().map(|&a| dims[a]).product();
        let rows = self.reshape(turned, &[kept.as_slice(), &[count]].concat());
        let y = self.graph.push(NodeOp::Reduce(how), vec![rows], kept);
        Ok(self.reshape(y, &self.declared(call)))
    }
}
