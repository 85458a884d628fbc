//! Ops that move elements.

use super::{Lowering, reject};
use crate::emulator::exec::map::Fun;
use crate::emulator::graph::{MapArg, NodeOp, ValueId};
use mil::Chip;
use mil::ops::{Call, Cut};

impl Lowering<'_> {
    pub(super) fn transpose(&mut self, call: &Call<'_>) -> Result<ValueId, String> {
        let x = self.tensor(call, 0)?;
        let perm = call.axes(1, self.dims(x).len()).map_err(reject)?;
        Ok(self.permute(x, perm))
    }

    /// Every `step`-th element from `begin`. On M1 and M2 a slice at a width offset turns large values infinite
    /// (ane-measurements 1.3).
    fn window(&mut self, x: ValueId, begin: Vec<usize>, step: Vec<isize>, dims: &[usize]) -> ValueId {
        let crops = self.chip.is_some_and(|chip| chip <= Chip::H14) && begin.last().is_some_and(|&b| b != 0);
        let slice = self.graph.push(NodeOp::Window { begin, step }, vec![x], dims.to_vec());
        if !crops {
            return slice;
        }
        let crop = NodeOp::Map { fun: Fun::WidthCrop, args: vec![MapArg::Input(0)] };
        self.graph.push(crop, vec![slice], dims.to_vec())
    }

    pub(super) fn slice(&mut self, call: &Call<'_>) -> Result<ValueId, String> {
        let x = self.tensor(call, 0)?;
        let cuts = Cut::of(call).map_err(reject)?;
        let begin = cuts.iter().map(|c| c.begin as usize).collect();
        let step = cuts.iter().map(|c| c.step as isize).collect();
        let dims: Vec<usize> = cuts.iter().map(|c| c.len as usize).collect();
        let slice = self.window(x, begin, step, &dims);
        let declared = self.declared(call);
        Ok(if declared == dims { slice } else { self.reshape(slice, &declared) })
    }

    pub(super) fn split(&mut self, call: &Call<'_>) -> Result<(), String> {
        let x = self.tensor(call, 0)?;
        let rank = self.dims(x).len();
        let axis = call.axis(3, rank).map_err(reject)?;
        let mut from = 0;
        for &result in &call.op.results {
            let dims = self.function.values[result].ty.dims();
            let mut begin = vec![0; rank];
            begin[axis] = from;
            from += dims[axis];
            let part = self.window(x, begin, vec![1; rank], &dims);
            self.values[result.index()] = Some(part);
        }
        Ok(())
    }

    pub(super) fn concat(&mut self, call: &Call<'_>) -> Result<ValueId, String> {
        let mut parts = call.list(0).iter().map(|&v| self.value(v)).collect::<Result<Vec<_>, _>>()?;
        let mut dims = self.declared(call);
        let mut axis = call.axis(1, dims.len()).map_err(reject)?;
        if !call.flag(2).map_err(reject)? {
            return Ok(self.graph.push(NodeOp::Concat { axis }, parts, dims));
        }
        // Element c of every part, then element c + 1 of every part: joined along a new axis behind this one.
        let declared = dims.clone();
        dims[axis] /= parts.len();
        axis += 1;
        dims.insert(axis, 1);
        parts = parts.into_iter().map(|p| self.reshape(p, &dims)).collect();
        dims[axis] = parts.len();
        let joined = self.graph.push(NodeOp::Concat { axis }, parts, dims);
        Ok(self.reshape(joined, &declared))
    }

    pub(super) fn tile(&mut self, call: &Call<'_>) -> Result<ValueId, String> {
        let x = self.tensor(call, 0)?;
        let old = self.dims(x);
        let reps = call.ints_of(1, old.len()).map_err(reject)?;
        let single: Vec<usize> = old.iter().flat_map(|&d| [1, d]).collect();
        let repeated = old.iter().zip(&reps).flat_map(|(&d, &r)| [r as usize, d]).collect();
        let x = self.reshape(x, &single);
        let x = self.graph.push(NodeOp::Broadcast, vec![x], repeated);
        Ok(self.reshape(x, &self.declared(call)))
    }
}
