//! Matrix products over strided views, leading axes looped or handed over as one batch.

use super::Machine;
use crate::emulator::view::View;
use cpu::f16;
use cpu::matmul::{Dims, Operand, Output, Par, matmul};

/// A planned matrix product `[…, m, k] · […, k, n]`.
#[derive(Clone, Debug)]
pub(in crate::emulator) struct Matmul {
    dims: Dims,
    a: Matrix,
    b: Matrix,
    out: Matrix,
    /// Axes outside the batch: extent, and strides of a, b and output.
    loops: Vec<(usize, [usize; 3])>,
    /// Offset and stride of the bias along m.
    bias: Option<(usize, usize)>,
}

#[derive(Clone, Copy, Debug)]
struct Matrix {
    offset: usize,
    batch: usize,
    row: usize,
    col: usize,
}

impl Matrix {
    fn operand(self, data: &[f16], shift: usize) -> Operand<'_> {
        Operand { data: &data[self.offset + shift..], batch_stride: self.batch, row_stride: self.row, col_stride: self.col }
    }
}

impl Matmul {
    /// Plans it. `a`, `b` and `out` have equal rank and leading axes, no negative strides, and no repetition in the
    /// last two axes; `bias` is `[m]`.
    /// `Err(0)`: the output overlaps itself.
    pub(in crate::emulator) fn new(out: &View, a: &View, b: &View, bias: Option<&View>) -> Result<Matmul, usize> {
        crate::emulator::view::Nest::new(&[out], 1)?;
        let lead = out.dims.len() - 2;
        let stride = |v: &View, axis: usize| v.strides[axis] as usize;
        // Merge leading axes where all three allow; the last one left is the batch.
        let mut loops: Vec<(usize, [usize; 3])> = Vec::new();
        for axis in (0..lead).filter(|&i| out.dims[i] != 1) {
            let n = out.dims[axis];
            let strides = [stride(a, axis), stride(b, axis), stride(out, axis)];
            match loops.last_mut() {
                Some((extent, before)) if (0..3).all(|i| before[i] == strides[i] * n) => {
                    *extent *= n;
                    *before = strides;
                }
                _ => loops.push((n, strides)),
            }
        }
        let (batch, strides) = loops.pop().unwrap_or((1, [0; 3]));
        // An axis of one element has stride 0 here; the library wants the stride that it would have.
        let matrix = |v: &View, batch| {
            let col = stride(v, lead + 1).max(1);
            let row = if v.dims[lead] == 1 { col * v.dims[lead + 1] } else { stride(v, lead) };
            Matrix { offset: v.offset, batch, row, col }
        };
        let dims = Dims { batch, m: out.dims[lead], n: out.dims[lead + 1], k: a.dims[lead + 1] };
        Ok(Matmul {
            dims,
            a: matrix(a, strides[0]),
            b: matrix(b, strides[1]),
            out: matrix(out, strides[2]),
            loops,
            bias: bias.map(|v| (v.offset, stride(v, 0))),
        })
    }

    pub(in crate::emulator) fn run(&self, machine: Machine<'_>, reads: &[&[f16]], write: &mut [f16]) {
        let total: usize = self.loops.iter().map(|(n, _)| n).product();
        for turn in 0..total {
            let (mut rest, mut shift) = (turn, [0; 3]);
            for (n, strides) in self.loops.iter().rev() {
                for (s, stride) in shift.iter_mut().zip(strides) {
                    *s += (rest % n) * stride;
                }
                rest /= n;
            }
            let (a, b) = (self.a.operand(reads[0], shift[0]), self.b.operand(reads[1], shift[1]));
            let out = &mut write[self.out.offset + shift[2]..];
            match self.bias {
                None => {
                    let Matrix { batch, row, col, .. } = self.out;
                    let out = Output::F16 { data: out, batch_stride: batch, row_stride: row, col_stride: col, finish: machine.finish };
                    matmul(Par::Pool(machine.pool), machine.path, self.dims, a, b, out);
                }
                Some((offset, step)) => self.biased(machine, a, b, &reads[2][offset..], step, out),
            }
        }
    }

    /// The bias joins the wide sum, before the one rounding.
    fn biased(&self, machine: Machine<'_>, a: Operand<'_>, b: Operand<'_>, bias: &[f16], step: usize, out: &mut [f16]) {
        let Dims { batch, m, n, .. } = self.dims;
        let mut wide = vec![0f32; batch * m * n];
        let sum = Output::F32 { data: &mut wide, batch_stride: m * n, row_stride: n, scale: 1.0, accumulate: false };
        matmul(Par::Pool(machine.pool), machine.path, self.dims, a, b, sum);
        for (i, row) in wide.chunks_exact(n).enumerate() {
            let (batch, r) = (i / m, i % m);
            let bias = bias[r * step].to_f32();
            for (c, x) in row.iter().enumerate() {
                out[batch * self.out.batch + r * self.out.row + c * self.out.col] = machine.finish.apply(x + bias);
            }
        }
    }
}
