//! Writes one program and its port table side by side, so that the two cannot disagree.

use super::projection::{Matrix, stack};
use super::sharing;
use super::{Act, BlobContent, BlobSpec, Context, Dir, FieldSpec, PortSpec, ProgramError, ProgramKind, ProgramSpec, Sharing, Weights};
use mil::{BuildError, Opset, Program};

/// A value of the program.
pub(super) use mil::Val;

/// Longest channel axis of any chip (programs.md rule 1).
pub(super) const CHANNEL_LIMIT: u64 = 65_536;
/// Longest other axis that every chip takes (programs.md rule 1).
const AXIS_LIMIT: u64 = 16_384;

/// A program in the making.
pub(super) struct Emit<'a> {
    cx: &'a Context,
    kind: ProgramKind,
    builder: mil::Builder,
    inputs: Vec<PortSpec>,
    blobs: Vec<BlobSpec>,
}

impl<'a> Emit<'a> {
    pub(super) fn new(cx: &'a Context, kind: ProgramKind) -> Emit<'a> {
        Emit { cx, kind, builder: mil::Builder::new(Opset::Ios18), inputs: Vec::new(), blobs: Vec::new() }
    }

    /// An input of activations stacked along the channels.
    pub(super) fn stacked(&mut self, acts: &[(Act, usize)], cols: usize) -> Result<Val, ProgramError> {
        let rows = acts.iter().map(|(_, rows)| rows).sum();
        self.activation(rows, cols, stack(acts, cols))
    }

    /// An input of activations stacked along the channels with `weights` beside them, from column `t` on.
    pub(super) fn packed(&mut self, acts: &[(Act, usize)], t: usize, weights: Vec<FieldSpec>) -> Result<Val, ProgramError> {
        let rows = acts.iter().map(|(_, rows)| rows).sum();
        let width = weights.iter().map(|f| f.col + f.cols).max().unwrap_or(t);
        if width as u64 > AXIS_LIMIT {
            return Err(ProgramError::Packed { program: self.kind, columns: t, weights: width - t });
        }
        let mut fields = stack(acts, t);
        fields.extend(weights);
        self.activation(rows, width, fields)
    }

    /// `[1, rows, 1, cols]`, with an activation in it.
    fn activation(&mut self, rows: usize, cols: usize, fields: Vec<FieldSpec>) -> Result<Val, ProgramError> {
        let holds_weights = fields.iter().any(|f| matches!(f.content, super::Content::Weight(_)));
        let sharing = if holds_weights { Sharing::One } else { Sharing::All };
        self.input(PortSpec { name: self.port_name("x"), shape: vec![1, rows, 1, cols], fields, sharing })
    }

    /// A matrix as `[1, out, in]`, a port or a constant.
    pub(super) fn matrix(&mut self, matrix: &Matrix) -> Result<Val, ProgramError> {
        let name = matrix.key.name();
        if self.cx.options.weights == Weights::Baked {
            let blob = matrix.blob(format!("@model_path/weights/{name}.bin"));
            return self.blob(blob);
        }
        let port = matrix.port(self.port_name(name));
        self.input(port)
    }

    /// The additive causal mask, `[1, 1, s, s]`, a constant.
    pub(super) fn causal_mask(&mut self, s: usize) -> Result<Val, ProgramError> {
        let path = "@model_path/weights/mask.bin".to_string();
        self.blob(BlobSpec { path, shape: vec![1, 1, s, s], content: BlobContent::CausalMask })
    }

    fn input(&mut self, mut port: PortSpec) -> Result<Val, ProgramError> {
        let kind = self.kind;
        sharing::mark(&self.cx.kept, kind, Dir::In, &mut port);
        let value = self.builder.input(&port.name, &port.shape).map_err(|source| ProgramError::Build { program: kind, source })?;
        self.inputs.push(port);
        Ok(value)
    }

    fn blob(&mut self, blob: BlobSpec) -> Result<Val, ProgramError> {
        let kind = self.kind;
        let value = self.builder.blob(&blob.path, &blob.shape).map_err(|source| ProgramError::Build { program: kind, source })?;
        self.blobs.push(blob);
        Ok(value)
    }

    /// Names ascend in order of declaration, so that binding by position and by name agree (ane-facts 4).
    fn port_name(&self, what: &str) -> String {
        format!("{}_{what}", char::from(b'a' + self.inputs.len() as u8))
    }

    /// The window of a rank-4 value that starts at `begin`.
    pub(super) fn window(&mut self, x: Val, begin: [usize; 4], size: [usize; 4]) -> Result<Val, ProgramError> {
        self.op(|b| b.slice(x, &begin, &size))
    }

    pub(super) fn reshape(&mut self, x: Val, shape: &[usize]) -> Result<Val, ProgramError> {
        self.op(|b| b.reshape(x, shape))
    }

    /// Swaps the last two axes of a rank-4 value.
    pub(super) fn swap(&mut self, x: Val) -> Result<Val, ProgramError> {
        self.op(|b| b.transpose(x, &[0, 1, 3, 2]))
    }

    pub(super) fn matmul(&mut self, x: Val, y: Val, transpose_x: bool, transpose_y: bool) -> Result<Val, ProgramError> {
        self.op(|b| b.matmul(x, transpose_x, y, transpose_y))
    }

    pub(super) fn add(&mut self, x: Val, y: Val) -> Result<Val, ProgramError> {
        self.op(|b| b.add(x, y))
    }

    pub(super) fn sub(&mut self, x: Val, y: Val) -> Result<Val, ProgramError> {
        self.op(|b| b.sub(x, y))
    }

    pub(super) fn mul(&mut self, x: Val, y: Val) -> Result<Val, ProgramError> {
        self.op(|b| b.mul(x, y))
    }

    pub(super) fn sigmoid(&mut self, x: Val) -> Result<Val, ProgramError> {
        self.op(|b| b.sigmoid(x))
    }

    /// Softmax along the last axis.
    pub(super) fn softmax(&mut self, x: Val) -> Result<Val, ProgramError> {
        self.op(|b| b.softmax(x, -1))
    }

    /// Stacks along the channels.
    pub(super) fn concat(&mut self, values: &[Val]) -> Result<Val, ProgramError> {
        self.op(|b| b.concat(values, 1))
    }

    pub(super) fn scalar(&mut self, value: f32) -> Result<Val, ProgramError> {
        self.op(|b| b.scalar(value))
    }

    fn op(&mut self, build: impl FnOnce(&mut mil::Builder) -> Result<Val, BuildError>) -> Result<Val, ProgramError> {
        build(&mut self.builder).map_err(|source| ProgramError::Build { program: self.kind, source })
    }

    /// The program whose only result is `out`: activations stacked along the channels.
    pub(super) fn finish(self, out: Val, acts: &[(Act, usize)], cols: usize) -> Result<ProgramSpec, ProgramError> {
        let kind = self.kind;
        let rows = acts.iter().map(|(_, rows)| rows).sum();
        let mut port = PortSpec { name: "y".into(), shape: vec![1, rows, 1, cols], fields: stack(acts, cols), sharing: Sharing::All };
        sharing::mark(&self.cx.kept, kind, Dir::Out, &mut port);
        let program = self.builder.finish(&[("y", out)]).map_err(|source| ProgramError::Build { program: kind, source })?;
        check_axes(kind, &program)?;
        Ok(ProgramSpec { kind, program, inputs: self.inputs, outputs: vec![port], blobs: self.blobs })
    }
}

/// Refuses a port or an intermediate with an axis that some chip does not take; axis 1 of rank 4 holds the channels.
fn check_axes(program: ProgramKind, text: &Program) -> Result<(), ProgramError> {
    for (_, value) in text.functions.iter().flat_map(|f| f.values.iter()) {
        for (axis, &length) in value.ty.shape.iter().enumerate() {
            let limit = if axis == 1 && value.ty.shape.len() == 4 { CHANNEL_LIMIT } else { AXIS_LIMIT };
            if length > limit {
                return Err(ProgramError::Axis { program, value: value.name.clone(), length, limit });
            }
        }
    }
    Ok(())
}
