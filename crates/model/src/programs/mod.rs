//! The MIL programs of a training step (programs.md decides them).
//!
//! [`layer_programs`] turns a configuration, a micro-batch shape and [`Options`] into [`LayerPrograms`]: each program with
//! its ports, what lies where in them, its weight files, and which pairs of activations give which weight gradient. With
//! weights bound at run time one set serves every layer; baked, each layer compiles its own from the same text.
//!
//! # How a layer is driven
//! Device programs are in code type; what stands between them is fp32 on the CPU, which also copies a field from the port
//! it came out of into the ports that want it.
//!
//! ```text
//! forward    RMSNorm → X
//!            qkv_fwd            → q | k | v          rotate q and k, q · 1/√head_dim, heads of sequence b to their block
//!   Split    qk                 → scores             causal mask, softmax → probabilities
//!            pv                 → out
//!   Fused    attn               → out | p
//!            wo_fwd             → y                  residual sum, RMSNorm → X
//!            ffn_fwd            → y | h1 | h3 | gate residual sum
//! backward   dy (times the loss scale)
//!   Packed   ffn_bwd_w2         → dgate              dh1 = dgate·h3·silu'(h1), dh3 = dgate·silu(h1)
//!            ffn_bwd_w13        → dx
//!   others   ffn_bwd            → dx | dh1 | dh3
//!                                                    RMSNorm backward, residual sum → dy
//!            wo_bwd             → dout
//!            attn_bwd1          → dv | dp            ds = p∘(dp − Σ p∘dp)
//!            attn_bwd2          → dq | dk            dq · 1/√head_dim, rotate both back
//!            qkv_bwd            → dx                 RMSNorm backward, residual sum
//! ```
//!
//! The classifier goes slice by slice: `cls_fwd` → logits, loss over all slices, `cls_dx` → a part of dx, summed in fp32.
//!
//! # How a weight gradient is made
//! Each [`GradSpec`] names two fields: `dW += dy·xᵀ` over their columns. Columns of padding must be zero in `dy`.
//!
//! # Surfaces
//! [`PortSpec::sharing`] says which bindings may use one surface. Places that a field does not fill (padding) must be zero
//! when the surface is made and stay so.
//!
//! One file a family: `qkv`, `attention`, `wo`, `ffn`, `classifier`; `projection` holds the matmul that most of them are
//! made of, `emit` writes a program and its port table side by side.

mod attention;
mod classifier;
mod emit;
mod error;
mod ffn;
mod projection;
mod qkv;
mod sharing;
mod spec;
mod wo;

pub use attention::causal_mask;
pub use error::ProgramError;
pub use spec::{
    Act, BlobContent, BlobSpec, Content, Dir, FieldSpec, GradSpec, PortSpec, ProgramKind, ProgramSpec, Sharing, Tap, WeightField,
    WeightPort,
};

use crate::{Config, Layout, MAX_SEQ, Shape};
use serde::{Deserialize, Serialize};

/// How weights reach the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weights {
    /// Beside the activation, along its columns, in one port.
    Packed,
    /// As ports of their own, `[1, out, in]`; forward and backward share the surface.
    Ports,
    /// As constants of the program; the classifier's stay ports.
    Baked,
}

/// How attention is cut into programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Attention {
    /// Scores on the device, causal mask and softmax on the CPU, values on the device.
    Split,
    /// Scores, mask, softmax and values in one program, which returns the probabilities too.
    Fused,
}

/// Which variant of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Options {
    /// How weights reach the device.
    pub weights: Weights,
    /// How attention is cut into programs.
    pub attention: Attention,
}

/// The forward pass of attention, between the projections.
#[derive(Clone, Debug, PartialEq)]
pub enum AttentionForward {
    /// Two programs; mask and softmax between them on the CPU.
    Split {
        /// Scores.
        qk: ProgramSpec,
        /// Probabilities times values.
        pv: ProgramSpec,
    },
    /// One program.
    Fused {
        /// Scores to result, and the probabilities.
        attn: ProgramSpec,
    },
}

/// The backward pass of the feed-forward network.
#[derive(Clone, Debug, PartialEq)]
pub enum FfnBackward {
    /// Two programs; between them the CPU turns the gate's gradient into those of `h1` and `h3`.
    Apart {
        /// `dy → dgate`.
        w2: ProgramSpec,
        /// `dh1 | dh3 → dx`.
        w13: ProgramSpec,
    },
    /// One program, with the activation's gradient inside.
    Joined {
        /// `dy | h1 | h3 → dx | dh1 | dh3`.
        all: ProgramSpec,
    },
}

/// A slice of the classifier. The programs of all slices are equal: compile those of the first and bind them for each.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassifierSlice {
    /// First token.
    pub first: usize,
    /// Number of tokens; rows of logits past it are padding.
    pub len: usize,
    /// Logits.
    pub fwd: ProgramSpec,
    /// Gradient of the input, a part of the sum over slices.
    pub dx: ProgramSpec,
    /// Gradient of the slice's rows of the classifier.
    pub grad: GradSpec,
}

/// The programs of a layer, and of the classifier.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerPrograms {
    /// Where things lie.
    pub layout: Layout,
    /// `x → q | k | v`.
    pub qkv_fwd: ProgramSpec,
    /// `q, k, v → out`.
    pub attention: AttentionForward,
    /// `out → y`.
    pub wo_fwd: ProgramSpec,
    /// `x → y | h1 | h3 | gate`.
    pub ffn_fwd: ProgramSpec,
    /// `dy → dx`, and `dh1`, `dh3`.
    pub ffn_bwd: FfnBackward,
    /// `dy → dout`.
    pub wo_bwd: ProgramSpec,
    /// `p, dout, v → dv | dp`.
    pub attn_bwd1: ProgramSpec,
    /// `ds, q, k → dq | dk`.
    pub attn_bwd2: ProgramSpec,
    /// `dq | dk | dv → dx`.
    pub qkv_bwd: ProgramSpec,
    /// The layer's weight gradients, in the order in which the backward pass can make them.
    pub grads: Vec<GradSpec>,
    /// The classifier, slice by slice.
    pub classifier: Vec<ClassifierSlice>,
}

impl LayerPrograms {
    /// The layer's programs in order of dispatch: forward, then backward.
    pub fn layer(&self) -> Vec<&ProgramSpec> {
        let mut all = vec![&self.qkv_fwd];
        match &self.attention {
            AttentionForward::Split { qk, pv } => all.extend([qk, pv]),
            AttentionForward::Fused { attn } => all.push(attn),
        }
        all.extend([&self.wo_fwd, &self.ffn_fwd]);
        match &self.ffn_bwd {
            FfnBackward::Apart { w2, w13 } => all.extend([w2, w13]),
            FfnBackward::Joined { all: joined } => all.push(joined),
        }
        all.extend([&self.wo_bwd, &self.attn_bwd1, &self.attn_bwd2, &self.qkv_bwd]);
        all
    }

    /// The layer's program of this kind, if the variant has it.
    pub fn get(&self, kind: ProgramKind) -> Option<&ProgramSpec> {
        self.layer().into_iter().find(|p| p.kind == kind)
    }

    /// Programs dispatched for one micro-batch, forward and backward.
    pub fn dispatches(&self, n_layers: usize) -> usize {
        n_layers * self.layer().len() + 2 * self.classifier.len()
    }

    /// Programs compiled before the first step: baked ones once a layer, all others once.
    pub fn compiles(&self, n_layers: usize) -> usize {
        self.layer().iter().map(|p| if p.is_baked() { n_layers } else { 1 }).sum::<usize>() + 2
    }

    /// Programs compiled anew after each update of the weights: the baked ones.
    pub fn recompiles(&self, n_layers: usize) -> usize {
        n_layers * self.layer().iter().filter(|p| p.is_baked()).count()
    }
}

/// What the families build from.
struct Context {
    layout: Layout,
    options: Options,
    /// Values that are read after their program ran for other layers.
    kept: Vec<Tap>,
}

impl Context {
    /// Columns of position-wise programs.
    fn columns(&self) -> usize {
        self.layout.shape.columns()
    }
}

/// The programs of `config` for micro-batches of `shape`.
///
/// # Errors
/// When the configuration is not a model, the micro-batch is empty, a sequence is longer than 512 tokens (query tiles are
/// not built yet), or a port or intermediate would be longer than every chip takes.
pub fn layer_programs(config: &Config, shape: Shape, options: Options) -> Result<LayerPrograms, ProgramError> {
    config.check()?;
    let Shape { batch, seq } = shape;
    if batch == 0 || seq == 0 {
        return Err(ProgramError::Empty { batch, seq });
    }
    if seq > MAX_SEQ {
        return Err(ProgramError::Tiles { seq });
    }
    let rows = batch.saturating_mul(config.n_heads).saturating_mul(shape.seq_padded());
    if rows > emit::CHANNEL_LIMIT as usize {
        return Err(ProgramError::Scores { batch, rows });
    }
    let mut cx = Context { layout: Layout::new(config, shape), options, kept: Vec::new() };
    let grads = [ffn::grads(&cx), wo::grads(&cx), qkv::grads(&cx)].concat();
    cx.kept = sharing::kept(&grads);
    Ok(LayerPrograms {
        qkv_fwd: qkv::forward(&cx)?,
        attention: attention::forward(&cx)?,
        wo_fwd: wo::forward(&cx)?,
        ffn_fwd: ffn::forward(&cx)?,
        ffn_bwd: ffn::backward(&cx)?,
        wo_bwd: wo::backward(&cx)?,
        attn_bwd1: attention::backward1(&cx)?,
        attn_bwd2: attention::backward2(&cx)?,
        qkv_bwd: qkv::backward(&cx)?,
        grads,
        classifier: classifier::slices(&cx, config)?,
        layout: cx.layout,
    })
}
