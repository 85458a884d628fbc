//! Matrix products, convolutions, attention.

use super::{Lowering, reject};
use crate::emulator::exec::map::Fun;
use crate::emulator::graph::{Conv, MapArg, NodeOp, ValueId};
use mil::ops::{Call, Window};

impl Lowering<'_> {
    pub(super) fn matmul(&mut self, call: &Call<'_>) -> Result<ValueId, String> {
        let (x, y) = (self.tensor(call, 0)?, self.tensor(call, 1)?);
        let (transpose_x, transpose_y) = (call.flag(2).map_err(reject)?, call.flag(3).map_err(reject)?);
        let dims = self.declared(call);
        Ok(self.graph.push(NodeOp::Matmul { transpose_x, transpose_y }, vec![x, y], dims))
    }

    pub(super) fn conv(&mut self, call: &Call<'_>) -> Result<ValueId, String> {
        let (x, weight) = (self.tensor(call, 0)?, self.tensor(call, 1)?);
        let mut inputs = vec![x, weight];
        if call.has(2) {
            inputs.push(self.tensor(call, 2)?);
        }
        let window = Window::of(call).map_err(reject)?;
        let (extents, weights, declared) = (self.dims(x), self.dims(weight), self.declared(call));
        let ones = |list: &[u64]| list.iter().all(|&n| n == 1);
        let one_by_one = weights[2..].iter().all(|&k| k == 1) && ones(&window.strides) && window.pads.iter().all(|&p| p == (0, 0));
        if one_by_one && window.groups == 1 {
            // A matrix product over the channels.
            let area = extents[2..].iter().product();
            inputs[0] = self.reshape(weight, &[weights[0], weights[1]]);
            inputs[1] = self.reshape(x, &[extents[0], extents[1], area]);
            let product = NodeOp::Matmul { transpose_x: false, transpose_y: false };
            let y = self.graph.push(product, inputs, vec![extents[0], weights[0], area]);
            return Ok(self.reshape(y, &declared));
        }
        let conv = Conv {
            strides: window.strides.iter().map(|&n| n as usize).collect(),
            dilations: window.dilations.iter().map(|&n| n as usize).collect(),
            pad: window.pads.iter().map(|p| p.0 as usize).collect(),
            groups: window.groups as usize,
        };
        Ok(self.graph.push(NodeOp::Conv(conv), inputs, declared))
    }

    /// softmax(q · kᵀ / √E) · v. The mask is ignored, as the chip does (ane-facts 5.2).
    pub(super) fn attention(&mut self, call: &Call<'_>) -> Result<ValueId, String> {
        let (q, k, v) = (self.tensor(call, 0)?, self.tensor(call, 1)?, self.tensor(call, 2)?);
        let (queries, keys, declared) = (self.dims(q), self.dims(k), self.declared(call));
        let rank = declared.len();
        let mut dims = declared.clone();
        dims[rank - 1] = keys[rank - 2];
        let scores = self.graph.push(NodeOp::Matmul { transpose_x: false, transpose_y: true }, vec![q, k], dims.clone());
        let factor = MapArg::Scalar(1.0 / (queries[rank - 1] as f32).sqrt());
        let scaled = NodeOp::Map { fun: Fun::Mul, args: vec![MapArg::Input(0), factor] };
        let scores = self.graph.push(scaled, vec![scores], dims.clone());
        let probs = self.graph.push(NodeOp::Softmax, vec![scores], dims);
        Ok(self.graph.push(NodeOp::Matmul { transpose_x: false, transpose_y: false }, vec![probs, v], declared))
    }
}
