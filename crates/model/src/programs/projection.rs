//! Projections: the programs, and the parts of programs, that multiply one activation by one matrix.

use super::emit::{Emit, Val};
use super::{Act, BlobContent, BlobSpec, Content, Context, FieldSpec, PortSpec, ProgramError, ProgramKind, ProgramSpec};
use super::{GradSpec, Sharing, Tap, WeightField, WeightPort, Weights};
use crate::{Axis, Role};

/// A matrix of one or more parameters, one above the other: `[out, in]`.
pub(super) struct Matrix {
    /// Key of its surface.
    pub(super) key: WeightPort,
    /// Parameters from top to bottom, each with its rows.
    pub(super) blocks: Vec<(Role, Axis)>,
    /// Their columns.
    pub(super) cols: Axis,
}

impl Matrix {
    /// Padded rows of all blocks.
    pub(super) fn outputs(&self) -> usize {
        self.blocks.iter().map(|(_, rows)| rows.padded()).sum()
    }

    /// Padded columns.
    pub(super) fn inputs(&self) -> usize {
        self.cols.padded()
    }

    /// The blocks as stored, one above the other, from column `col` on.
    pub(super) fn stored(&self, col: usize) -> Vec<FieldSpec> {
        self.place(|at, field| {
            let (rows, cols) = field.extent();
            FieldSpec { content: Content::Weight(field), row: at, rows, col, cols }
        })
    }

    /// The blocks transposed, one beside the other, from column `col` on.
    pub(super) fn transposed(&self, col: usize) -> Vec<FieldSpec> {
        self.place(|at, field| {
            let field = WeightField { transposed: true, ..field };
            let (rows, cols) = field.extent();
            FieldSpec { content: Content::Weight(field), row: 0, rows, col: col + at, cols }
        })
    }

    fn place(&self, put: impl Fn(usize, WeightField) -> FieldSpec) -> Vec<FieldSpec> {
        let mut at = 0;
        let mut fields = Vec::new();
        for (role, rows) in &self.blocks {
            fields.push(put(at, WeightField { role: *role, transposed: false, rows: rows.clone(), cols: self.cols.clone() }));
            at += rows.padded();
        }
        fields
    }

    /// A port of its own.
    pub(super) fn port(&self, name: String) -> PortSpec {
        PortSpec { name, shape: self.shape(), fields: self.stored(0), sharing: Sharing::Weights(self.key) }
    }

    /// A weight file of its own.
    pub(super) fn blob(&self, path: String) -> BlobSpec {
        BlobSpec { path, shape: self.shape(), content: BlobContent::Weights(self.stored(0)) }
    }

    fn shape(&self) -> Vec<usize> {
        vec![1, self.outputs(), self.inputs()]
    }

    /// Gradients of the blocks: `dy`'s field for each from `program`, against `x`.
    pub(super) fn grads(&self, dy: &[Tap], x: Tap) -> Vec<GradSpec> {
        let grad =
            |((role, rows), dy): (&(Role, Axis), &Tap)| GradSpec { role: *role, dy: *dy, x, rows: rows.clone(), cols: self.cols.clone() };
        self.blocks.iter().zip(dy).map(grad).collect()
    }
}

/// Activations stacked along the channels of a port of `cols` columns.
pub(super) fn stack(acts: &[(Act, usize)], cols: usize) -> Vec<FieldSpec> {
    let mut row = 0;
    let mut fields = Vec::new();
    for &(act, rows) in acts {
        fields.push(FieldSpec { content: Content::Activation(act), row, rows, col: 0, cols });
        row += rows;
    }
    fields
}

/// `y = W·x`, `y` cut into fields.
pub(super) fn forward(cx: &Context, kind: ProgramKind, w: &Matrix, x: Act, y: &[(Act, usize)]) -> Result<ProgramSpec, ProgramError> {
    let t = cx.columns();
    let (inputs, outputs) = (w.inputs(), w.outputs());
    let mut e = Emit::new(cx, kind);
    let out = match cx.options.weights {
        Weights::Packed => {
            let a = e.packed(&[(x, inputs)], t, w.transposed(t))?;
            packed_product(&mut e, a, inputs, t, outputs)?
        }
        Weights::Ports | Weights::Baked => {
            let a = e.stacked(&[(x, inputs)], t)?;
            let w = e.matrix(w)?;
            let x = e.reshape(a, &[1, inputs, t])?;
            let y = e.matmul(w, x, false, false)?;
            e.reshape(y, &[1, outputs, 1, t])?
        }
    };
    e.finish(out, y, t)
}

/// `dx = Wᵀ·dy`, `dy` stacked as `W`'s blocks are: one matmul, one wide sum.
pub(super) fn backward(cx: &Context, kind: ProgramKind, w: &Matrix, dy: &[Act], dx: Act) -> Result<ProgramSpec, ProgramError> {
    let t = cx.columns();
    let (inputs, outputs) = (w.inputs(), w.outputs());
    let dy: Vec<(Act, usize)> = dy.iter().copied().zip(w.blocks.iter().map(|(_, rows)| rows.padded())).collect();
    let mut e = Emit::new(cx, kind);
    let out = match cx.options.weights {
        Weights::Packed => {
            let a = e.packed(&dy, t, w.stored(t))?;
            packed_product(&mut e, a, outputs, t, inputs)?
        }
        Weights::Ports | Weights::Baked => {
            let a = e.stacked(&dy, t)?;
            let w = e.matrix(w)?;
            let dy = e.reshape(a, &[1, outputs, t])?;
            let dx = e.matmul(w, dy, true, false)?;
            e.reshape(dx, &[1, inputs, 1, t])?
        }
    };
    e.finish(out, &[(dx, inputs)], t)
}

/// Of a packed port `[1, rows, 1, t + n]`: `Wᵀ·a` as `[1, n, 1, t]`, where `a` is in columns `0..t` and `W` in the `n`
/// columns after it. The `Transposed` spelling (programs.md 2).
pub(super) fn packed_product(e: &mut Emit<'_>, port: Val, rows: usize, t: usize, n: usize) -> Result<Val, ProgramError> {
    let a = e.window(port, [0, 0, 0, 0], [1, rows, 1, t])?;
    let w = e.window(port, [0, 0, 0, t], [1, rows, 1, n])?;
    let a = e.reshape(a, &[1, 1, rows, t])?;
    let w = e.reshape(w, &[1, 1, rows, n])?;
    let a = e.swap(a)?;
    let y = e.matmul(a, w, false, false)?;
    let y = e.swap(y)?;
    e.reshape(y, &[1, n, 1, t])
}
