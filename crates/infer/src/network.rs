//! A model on a device: every program compiled, every surface allocated, every call bound.

use crate::assemble::{Assembly, Unit};
use crate::attention::Attention;
use crate::error::InferError;
use crate::head::Head;
use crate::machine::Machine;
use ane::{Queue, Slot};
use cpu::loss::IGNORE;
use cpu::rope::Rope;
use model::programs::{Act, LayerPrograms, Options, ProgramKind, ProgramSpec, layer_programs};
use model::{Config, Role, Shape};
use std::time::Duration;

/// The longest that one evaluation may take. Programs take milliseconds on the chip; the emulator's largest, seconds.
const EVALUATE_LIMIT: Duration = Duration::from_secs(30);

/// The forward pass of a model, bound to a device.
pub struct Network {
    /// What it runs on.
    pub machine: Machine,
    /// The model.
    pub config: Config,
    /// Its programs, as data.
    pub programs: LayerPrograms,
    /// The device thread.
    pub queue: Queue,
    /// Surfaces of weights, and what to compile anew when baked weights change.
    pub assembly: Assembly,
    /// Layers, first to last.
    pub layers: Vec<Layer>,
    /// The classifier.
    pub head: Head,
    /// Rotary angles.
    pub rope: Rope,
    /// The embedding, among the parameters.
    pub embedding: usize,
}

/// One layer: attention, then the feed-forward network.
pub struct Layer {
    /// Attention.
    pub attn: Attention,
    /// The feed-forward network.
    pub ffn: FeedForward,
}

/// The feed-forward network of a layer. The slots are the taps that the backward pass reads.
pub struct FeedForward {
    /// The gain of the norm before it, among the parameters.
    pub norm: usize,
    /// Its input: the normed residual stream, `[D, T]`.
    pub x: Slot,
    /// What it adds to the residual stream, `[D, T]`.
    pub y: Slot,
    /// Gate projection before its activation, `[H, T]`.
    pub h1: Slot,
    /// Up projection, `[H, T]`.
    pub h3: Slot,
    /// `silu(h1) · h3`, `[H, T]`.
    pub gate: Slot,
    /// The program.
    pub forward: Unit,
}

impl FeedForward {
    fn build(a: &mut Assembly, layer: usize) -> Result<FeedForward, InferError> {
        let forward = a.unit(ProgramKind::FfnFwd, 0, layer, &[])?;
        Ok(FeedForward {
            norm: a.param(Role::FfnNorm, layer),
            x: forward.input(Act::X),
            y: forward.output(Act::Y),
            h1: forward.output(Act::H1),
            h3: forward.output(Act::H3),
            gate: forward.output(Act::Gate),
            forward,
        })
    }
}

/// Which programs a network needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Those of the forward pass.
    Inference,
    /// Those of the backward pass too; binding them is up to the caller.
    Training,
}

impl Network {
    /// Compiles `config`'s programs for micro-batches of `shape`, allocates, binds, and stages `values`, one vector a parameter in
    /// canonical order.
    ///
    /// # Errors
    /// When the model has no such programs, the values are not the configuration's, the device refuses, or memory is short.
    pub fn new(
        machine: &Machine,
        config: &Config,
        shape: Shape,
        options: Options,
        values: &[Vec<f32>],
        uses: Use,
    ) -> Result<Network, InferError> {
        let programs = layer_programs(config, shape, options)?;
        let parameters = config.parameters();
        let mut a = Assembly::new(machine, parameters);
        a.check(values)?;
        for spec in programs.layer() {
            if uses == Use::Training || is_forward(spec) {
                a.load(spec.clone(), 0, config.n_layers, values)?;
            }
        }
        for (i, slice) in programs.classifier.iter().enumerate() {
            // All slices have the same programs (model::ClassifierSlice): the first one's executable serves them all.
            a.load_slice(&slice.fwd, i)?;
            if uses == Use::Training {
                a.load_slice(&slice.dx, i)?;
            }
        }
        let layers = (0..config.n_layers)
            .map(|layer| {
                Ok(Layer {
                    attn: Attention::build(&mut a, &programs.layout, config.head_dim, layer)?,
                    ffn: FeedForward::build(&mut a, layer)?,
                })
            })
            .collect::<Result<_, InferError>>()?;
        let network = Network {
            machine: machine.clone(),
            config: config.clone(),
            head: Head::build(&mut a, &programs.classifier)?,
            rope: rope_of(config, shape),
            embedding: a.param(Role::Embedding, 0),
            queue: Queue::new(EVALUATE_LIMIT),
            assembly: a,
            layers,
            programs,
        };
        network.stage(values)?;
        Ok(network)
    }

    /// Columns of a micro-batch, padding included.
    pub fn columns(&self) -> usize {
        self.programs.layout.shape.columns()
    }

    /// Writes all parameters, rounded to fp16, into the surfaces that programs read.
    ///
    /// # Errors
    /// When a surface is in use.
    pub fn stage(&self, values: &[Vec<f32>]) -> Result<(), InferError> {
        for w in &self.assembly.weights {
            w.stage(&self.machine.pool, &values[w.param], self.assembly.width(w.param))?;
        }
        Ok(())
    }

    /// Compiles programs with baked weights anew.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn rebake(&mut self, values: &[Vec<f32>]) -> Result<(), InferError> {
        for layer in &mut self.layers {
            for unit in layer.attn.units_mut().into_iter().chain([&mut layer.ffn.forward]) {
                self.assembly.rebake(unit, values)?;
            }
        }
        Ok(())
    }

    /// Tokens of a micro-batch, one column each; columns without a token get token 0, which no real token sees.
    ///
    /// # Errors
    /// When a token is not in the vocabulary, or there are too many.
    pub fn columns_of(&self, tokens: &[u32]) -> Result<Vec<u32>, InferError> {
        self.place(tokens, 0)
    }

    /// Targets of a micro-batch, one column each; columns without a target do not count.
    ///
    /// # Errors
    /// As [`Network::columns_of`].
    pub fn target_columns(&self, targets: &[u32]) -> Result<Vec<u32>, InferError> {
        self.place(targets, IGNORE)
    }

    fn place(&self, tokens: &[u32], filler: u32) -> Result<Vec<u32>, InferError> {
        let shape = self.programs.layout.shape;
        if tokens.len() > shape.batch * shape.seq {
            return Err(InferError::TooLong { tokens: tokens.len(), limit: shape.batch * shape.seq });
        }
        let mut columns = vec![filler; shape.columns()];
        for (position, &token) in tokens.iter().enumerate() {
            if token as usize >= self.config.vocab_size && token != filler {
                return Err(InferError::Token { token, position, vocab_size: self.config.vocab_size });
            }
            columns[position / shape.seq * shape.seq_padded() + position % shape.seq] = token;
        }
        Ok(columns)
    }

    /// The forward pass: from tokens (see [`Network::columns_of`]) to logits, which [`Head::read`] opens.
    ///
    /// # Errors
    /// When the values are not the configuration's, or an evaluation failed.
    pub fn forward(&self, values: &[Vec<f32>], columns: &[u32]) -> Result<(), InferError> {
        self.assembly.check(values)?;
        let (pool, t, eps) = (&*self.machine.pool, self.columns(), self.config.norm_eps);
        let mut inv_rms = vec![0.0; t];
        let mut x = vec![0.0; self.config.dim * t];
        cpu::elementwise::embed(pool, &values[self.embedding], columns, &mut x);
        for layer in &self.layers {
            cpu::norm::rmsnorm(pool, &x, t, &values[layer.attn.norm], eps, layer.attn.x.write()?.view_mut(), &mut inv_rms);
            layer.attn.forward(&self.queue, &self.machine, &self.programs.layout, &self.rope)?;
            cpu::elementwise::add_into(pool, &mut x, layer.attn.y.read()?.view());
            cpu::norm::rmsnorm(pool, &x, t, &values[layer.ffn.norm], eps, layer.ffn.x.write()?.view_mut(), &mut inv_rms);
            self.queue.run(&layer.ffn.forward.binding)?;
            cpu::elementwise::add_into(pool, &mut x, layer.ffn.y.read()?.view());
        }
        cpu::norm::rmsnorm(pool, &x, t, &values[self.head.norm], eps, self.head.x.write()?.view_mut(), &mut inv_rms);
        self.head.forward(&self.queue)
    }
}

fn is_forward(spec: &ProgramSpec) -> bool {
    use ProgramKind::{Attn, FfnFwd, Pv, Qk, QkvFwd, WoFwd};
    matches!(spec.kind, QkvFwd | Qk | Pv | Attn | WoFwd | FfnFwd)
}

fn rope_of(config: &Config, shape: Shape) -> Rope {
    let style = match config.rope {
        model::Rope::Half => cpu::rope::Style::Half,
        model::Rope::Interleaved => cpu::rope::Style::Interleaved,
    };
    Rope::new(config.head_dim, f64::from(config.rope_theta), 0..shape.seq_padded(), style)
}
