//! What a program is to the step that runs it: ports, and what lies where in them. Plain data.

use crate::{Axis, Role};

/// A program of the training step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProgramKind {
    /// Query, key and value projections.
    QkvFwd,
    /// Scores: q·k of every head.
    Qk,
    /// Probabilities times values.
    Pv,
    /// Scores, causal mask, softmax and values in one.
    Attn,
    /// Output projection of attention.
    WoFwd,
    /// The feed-forward network.
    FfnFwd,
    /// Its gradient through the down projection.
    FfnBwdW2,
    /// Its gradient through gate and up projections.
    FfnBwdW13,
    /// Its whole gradient.
    FfnBwd,
    /// Gradient through the output projection of attention.
    WoBwd,
    /// Gradients of values and probabilities.
    AttnBwd1,
    /// Gradients of queries and keys.
    AttnBwd2,
    /// Gradient through query, key and value projections.
    QkvBwd,
    /// Logits of a slice of the vocabulary.
    ClsFwd,
    /// Gradient through a slice of the classifier.
    ClsDx,
}

impl ProgramKind {
    /// The name used in messages, dumps and weight paths.
    pub fn name(self) -> &'static str {
        match self {
            ProgramKind::QkvFwd => "qkv_fwd",
            ProgramKind::Qk => "qk",
            ProgramKind::Pv => "pv",
            ProgramKind::Attn => "attn",
            ProgramKind::WoFwd => "wo_fwd",
            ProgramKind::FfnFwd => "ffn_fwd",
            ProgramKind::FfnBwdW2 => "ffn_bwd_w2",
            ProgramKind::FfnBwdW13 => "ffn_bwd_w13",
            ProgramKind::FfnBwd => "ffn_bwd",
            ProgramKind::WoBwd => "wo_bwd",
            ProgramKind::AttnBwd1 => "attn_bwd1",
            ProgramKind::AttnBwd2 => "attn_bwd2",
            ProgramKind::QkvBwd => "qkv_bwd",
            ProgramKind::ClsFwd => "cls_fwd",
            ProgramKind::ClsDx => "cls_dx",
        }
    }
}

impl std::fmt::Display for ProgramKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// An activation or a gradient, by what it is to the program that has it as a field.
///
/// Position-wise fields have one row a channel and one column a token of the micro-batch (`T = Shape::columns`). Fields of
/// the attention programs (`Qk`, `Pv`, `Attn`, `AttnBwd1`, `AttnBwd2`) have `S = Shape::seq_padded` columns and their rows
/// start with the sequence: head `h` of sequence `b` is block `b · heads + h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Act {
    /// Input of a projection: the normed residual stream, `[D, T]`.
    X,
    /// Queries. From `QkvFwd` as projected, `[Q, T]`; into attention rotated and times `1/√head_dim`, `[B·Q, S]`.
    Q,
    /// Keys. From `QkvFwd` as projected, `[K, T]`; into attention rotated, `[B·K, S]`.
    K,
    /// Values, `[K, T]`; in attention `[B·K, S]`.
    V,
    /// Scores before mask and softmax, `[B·heads·S, S]`: row `(b·heads + h)·S + i` holds query `i` against all keys.
    Scores,
    /// Probabilities, as [`Act::Scores`].
    Probs,
    /// Attention's result before the output projection, `[B·Q, S]` from attention, `[Q, T]` into `WoFwd`.
    AttnOut,
    /// What a block adds to the residual stream, `[D, T]`.
    Y,
    /// Gate projection before its activation, `[H, T]`.
    H1,
    /// Up projection, `[H, T]`.
    H3,
    /// `silu(h1) · h3`, `[H, T]`.
    Gate,
    /// Gradient of [`Act::Y`], `[D, T]`.
    Dy,
    /// Gradient of [`Act::Gate`], `[H, T]`.
    DGate,
    /// Gradient of [`Act::H1`], `[H, T]`.
    DH1,
    /// Gradient of [`Act::H3`], `[H, T]`.
    DH3,
    /// Gradient of [`Act::X`], `[D, T]`.
    Dx,
    /// Gradient of [`Act::AttnOut`]: `[Q, T]` from `WoBwd`, `[B·Q, S]` into `AttnBwd1`.
    DAttnOut,
    /// Gradient of [`Act::V`]: `[B·K, S]` from `AttnBwd1`, `[K, T]` into `QkvBwd`.
    DV,
    /// Gradient of [`Act::Probs`], as [`Act::Scores`].
    DProbs,
    /// Gradient of [`Act::Scores`], as [`Act::Scores`].
    DScores,
    /// Gradient of [`Act::Q`]. From `AttnBwd2`, `[B·Q, S]`, of the rotated and scaled query: times `1/√head_dim` and turned
    /// back it goes into `QkvBwd` as `[Q, T]`.
    DQ,
    /// Gradient of [`Act::K`]. From `AttnBwd2`, `[B·K, S]`, of the rotated key; into `QkvBwd` turned back, `[K, T]`.
    DK,
    /// Logits of a slice of the vocabulary, `[Vs, T]`; rows past the slice's tokens are padding.
    Logits,
    /// Their gradient, `[Vs, T]`; rows past the slice's tokens must be zero.
    DLogits,
}

/// How a matrix parameter lies in a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightField {
    /// Which parameter (of the layer that the binding is for).
    pub role: Role,
    /// `false`: the field is `[rows.padded(), cols.padded()]`, as stored. `true`: the field holds the transpose,
    /// `[cols.padded(), rows.padded()]`.
    pub transposed: bool,
    /// Where the parameter's rows (outputs of the projection) lie.
    pub rows: Axis,
    /// Where the parameter's columns (inputs of the projection) lie.
    pub cols: Axis,
}

impl WeightField {
    /// Rows and columns of the field.
    pub fn extent(&self) -> (usize, usize) {
        let (r, c) = (self.rows.padded(), self.cols.padded());
        if self.transposed { (c, r) } else { (r, c) }
    }
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// An activation or gradient.
    Activation(Act),
    /// A parameter's values.
    Weight(WeightField),
}

/// A window of a port or a weight file, seen as a matrix of its last axis by the product of all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSpec {
    /// What it holds.
    pub content: Content,
    /// First row.
    pub row: usize,
    /// Number of rows.
    pub rows: usize,
    /// First column.
    pub col: usize,
    /// Number of columns.
    pub cols: usize,
}

/// A surface that holds weights and nothing else. Within a layer, ports with equal keys are bound to one surface: that is
/// how forward and backward share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WeightPort {
    /// Query, key and value projections, one above the other.
    Wqkv,
    /// Output projection of attention.
    Wo,
    /// Gate and up projections, one above the other.
    W13,
    /// Down projection.
    W2,
    /// A slice of the classifier, by its number.
    Classifier(usize),
}

impl WeightPort {
    /// The name in ports and weight paths.
    pub fn name(self) -> &'static str {
        match self {
            WeightPort::Wqkv => "wqkv",
            WeightPort::Wo => "wo",
            WeightPort::W13 => "w13",
            WeightPort::W2 => "w2",
            WeightPort::Classifier(_) => "wcls",
        }
    }
}

/// Who may be bound to the same surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// What the port holds is used up before the program runs again: one surface serves every layer (or slice).
    All,
    /// Each layer (or slice) needs a surface of its own: the port holds packed weights, or a value that the backward pass
    /// or a weight gradient reads after the program ran for other layers.
    One,
    /// The layer's surface of these weights, shared by every program that has a port with this key.
    Weights(WeightPort),
}

/// A port of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// Name, unique in the program; names ascend in order of declaration.
    pub name: String,
    /// Shape, fp16.
    pub shape: Vec<usize>,
    /// What lies where. Places that no field covers are never read.
    pub fields: Vec<FieldSpec>,
    /// Who may be bound to the same surface.
    pub sharing: Sharing,
}

impl PortSpec {
    /// The port as a matrix: the product of all axes but the last, and the last.
    pub fn extent(&self) -> (usize, usize) {
        match self.shape.split_last() {
            Some((cols, outer)) => (outer.iter().product(), *cols),
            None => (1, 1),
        }
    }

    /// The window of an activation.
    pub fn window(&self, act: Act) -> Option<&FieldSpec> {
        self.fields.iter().find(|f| f.content == Content::Activation(act))
    }
}

/// What a weight file of a baked program holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobContent {
    /// Parameters of the layer.
    Weights(Vec<FieldSpec>),
    /// The additive causal mask: 0 where the key (column) is not after the query (row), −10⁴ where it is.
    CausalMask,
}

/// A weight file that the program needs: one fp16 constant, its metadata at offset 64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobSpec {
    /// Path as the program names it; the key into [`mil::Blobs`].
    pub path: String,
    /// Shape of the constant.
    pub shape: Vec<usize>,
    /// Its values.
    pub content: BlobContent,
}

/// A program with all that its caller must know.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramSpec {
    /// Which program.
    pub kind: ProgramKind,
    /// The program. Its text depends on configuration, shape and options, never on weights or layer.
    pub program: mil::Program,
    /// Input ports, in order of declaration.
    pub inputs: Vec<PortSpec>,
    /// Output ports, in order of declaration.
    pub outputs: Vec<PortSpec>,
    /// Weight files; those of [`BlobContent::Weights`] differ by layer.
    pub blobs: Vec<BlobSpec>,
}

impl ProgramSpec {
    /// Name for messages and dumps.
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// The ports of one direction.
    pub fn ports(&self, dir: Dir) -> &[PortSpec] {
        match dir {
            Dir::In => &self.inputs,
            Dir::Out => &self.outputs,
        }
    }

    /// The input port that has `act` as a field, and its window.
    pub fn input(&self, act: Act) -> Option<(usize, &FieldSpec)> {
        find(&self.inputs, act)
    }

    /// The output port that has `act` as a field, and its window.
    pub fn output(&self, act: Act) -> Option<(usize, &FieldSpec)> {
        find(&self.outputs, act)
    }

    /// Whether weights are constants of the program, so that each layer has an executable of its own.
    pub fn is_baked(&self) -> bool {
        self.blobs.iter().any(|b| matches!(b.content, BlobContent::Weights(_)))
    }
}

fn find(ports: &[PortSpec], act: Act) -> Option<(usize, &FieldSpec)> {
    ports.iter().enumerate().find_map(|(i, p)| Some((i, p.window(act)?)))
}

/// Direction of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dir {
    /// Read by the program.
    In,
    /// Written by the program.
    Out,
}

/// A value of the step: an activation in a port of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tap {
    /// The program.
    pub program: ProgramKind,
    /// Input or output.
    pub dir: Dir,
    /// The field.
    pub act: Act,
}

/// How the gradient of a matrix comes about: `dW[out, in] += dy[out, T] · x[in, T]ᵀ` over padded rows, of which `rows` and
/// `cols` say where the parameter's own lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GradSpec {
    /// The parameter (of the layer).
    pub role: Role,
    /// Gradient of the projection's output.
    pub dy: Tap,
    /// The projection's input.
    pub x: Tap,
    /// Where the parameter's rows lie in `dy`'s rows.
    pub rows: Axis,
    /// Where its columns lie in `x`'s rows.
    pub cols: Axis,
}
