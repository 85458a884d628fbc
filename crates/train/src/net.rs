//! A model in training: parameters, the network on its device, its backward pass, gradients.

use crate::backward::LayerBack;
use crate::dw::DwQueue;
use crate::grads::Grads;
use crate::head_back::HeadBack;
use crate::optimizer::{AdamW, Rows};
use crate::watch::WatchSum;
use cpu::loss::IGNORE;
use cpu::stats::Watch;
use infer::{InferError, Loss, Machine, Network, Use};
use model::programs::Options;
use model::{Config, Shape};
use std::time::{Duration, Instant};

/// A micro-batch: tokens and the tokens that follow them, sequence after sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// `B·S` tokens.
    pub tokens: Vec<u32>,
    /// `B·S` targets; [`IGNORE`] where none counts.
    pub targets: Vec<u32>,
}

impl Batch {
    /// How many targets count.
    pub fn targets(&self) -> usize {
        self.targets.iter().filter(|&&t| t != IGNORE).count()
    }
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Mean loss over the step's targets, in nats, before the update.
    pub loss: f64,
    /// Norm of the gradient, without loss scale, before clipping.
    pub norm: f64,
    /// Whether the update was skipped because gradients overflowed.
    pub skipped: bool,
    /// Targets that counted.
    pub tokens: usize,
    /// The loss scale that was used.
    pub scale: f32,
}

/// Why a step was not finished. The weights are those of the last finished one.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The network or its device.
    #[error(transparent)]
    Network(#[from] InferError),
    /// The loss scaler gave up.
    #[error(transparent)]
    Scaler(#[from] crate::ScalerError),
    /// Nothing to learn.
    #[error("the batch has no targets: every one is ignored")]
    NoTargets,
}

impl From<ane::SurfaceError> for StepError {
    fn from(e: ane::SurfaceError) -> Self {
        StepError::Network(e.into())
    }
}

impl From<ane::EvalError> for StepError {
    fn from(e: ane::EvalError) -> Self {
        StepError::Network(e.into())
    }
}

/// What the backward pass of a norm needs: its input and the reciprocal roots.
#[derive(Default)]
pub(crate) struct Saved {
    x: Vec<f32>,
    inv_rms: Vec<f32>,
}

impl Saved {
    fn new(dim: usize, t: usize) -> Saved {
        Saved { x: vec![0.0; dim * t], inv_rms: vec![0.0; t] }
    }

    /// Keeps the input, and lends the place for the roots.
    pub(crate) fn keep(&mut self, x: &[f32]) -> &mut [f32] {
        self.x.copy_from_slice(x);
        &mut self.inv_rms
    }

    /// The input and the roots.
    pub(crate) fn get(&self) -> (&[f32], &[f32]) {
        (&self.x, &self.inv_rms)
    }
}

/// [`Saved`] of every norm.
pub(crate) struct AllSaved {
    pub(crate) layers: Vec<LayerSaved>,
    pub(crate) head: Saved,
}

/// [`Saved`] of a layer's norms.
pub(crate) struct LayerSaved {
    pub(crate) attn: Saved,
    pub(crate) ffn: Saved,
}

/// Where the time of steps went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phases {
    /// Programs running on the device.
    pub device: Duration,
    /// Of that, matrix products, where the device can tell.
    pub device_matmul: Duration,
    /// Optimizer, and rounding weights into surfaces.
    pub staging: Duration,
    /// Waiting for weight gradients with nothing else to do.
    pub waiting: Duration,
    /// All the time, from begin to end.
    pub total: Duration,
}

impl Phases {
    /// The CPU's own work on the step's thread: what is none of the others.
    pub fn cpu(&self) -> Duration {
        self.total.saturating_sub(self.device + self.staging + self.waiting)
    }
}

/// A model in training.
pub struct Net {
    /// The forward pass on its device.
    pub forward: Network,
    /// Gradients, loss scale in.
    pub grads: Grads,
    pub(crate) params: Vec<Vec<f32>>,
    pub(crate) back: Vec<LayerBack>,
    pub(crate) head_back: HeadBack,
    pub(crate) dw: DwQueue,
    pub(crate) watch: WatchSum,
    pub(crate) saved: AllSaved,
    pub(crate) times: Phases,
    reported: ane::QueueStats,
}

impl Net {
    /// Builds `config` with these parameter values on a machine, for micro-batches of `shape`.
    ///
    /// # Errors
    /// When the model has no such programs, the device refuses, or memory is short.
    pub fn new(machine: &Machine, config: &Config, shape: Shape, options: Options, params: Vec<Vec<f32>>) -> Result<Net, InferError> {
        let mut forward = Network::new(machine, config, shape, options, &params, Use::Training)?;
        let head_back = HeadBack::build(&mut forward)?;
        let back = (0..config.n_layers).map(|layer| LayerBack::build(&mut forward, layer)).collect::<Result<_, _>>()?;
        // The backward pass brought weight fields of its own where weights are packed.
        forward.stage(&params)?;
        let saved = || Saved::new(config.dim, forward.columns());
        Ok(Net {
            grads: Grads::new(&config.parameters()),
            params,
            back,
            head_back,
            dw: DwQueue::new(machine.pool.clone(), machine.path),
            watch: WatchSum::new(),
            saved: AllSaved { layers: (0..config.n_layers).map(|_| LayerSaved { attn: saved(), ffn: saved() }).collect(), head: saved() },
            times: Phases::default(),
            reported: ane::QueueStats::default(),
            forward,
        })
    }

    /// Parameter values, fp32, in canonical order.
    pub fn params(&self) -> &[Vec<f32>] {
        &self.params
    }

    /// What the last step's dx outputs looked like.
    pub fn watched(&self) -> Watch {
        self.watch.0
    }

    /// Programs that each update compiles anew: none, unless weights are baked in.
    pub fn compiles_per_update(&self) -> usize {
        self.forward.programs.recompiles(self.forward.config.n_layers)
    }

    /// Where the time went since the last call.
    pub fn take_times(&mut self) -> Phases {
        let stats = self.forward.queue.stats();
        let mut times = std::mem::take(&mut self.times);
        times.device = stats.busy.elapsed - self.reported.busy.elapsed;
        times.device_matmul = stats.busy.matmul - self.reported.busy.matmul;
        self.reported = stats;
        times
    }

    /// Loss of a batch, without learning from it.
    ///
    /// # Errors
    /// When a token is unknown or an evaluation failed.
    pub fn evaluate(&self, batch: &Batch) -> Result<Loss, InferError> {
        infer::evaluate(&self.forward, &self.params, &batch.tokens, &batch.targets)
    }

    /// Starts a step.
    pub(crate) fn begin(&mut self) {
        self.grads.clear();
        self.watch = WatchSum::new();
    }

    /// AdamW on every parameter, each rounded into its surfaces in the same pass where its rows lie there one by one; programs with
    /// baked weights are compiled anew. Gradients are multiplied by `factor` first.
    pub(crate) fn update(&mut self, opt: &mut AdamW, lr: f32, factor: f64) -> Result<(), InferError> {
        let start = Instant::now();
        let Net { forward, grads, params, .. } = self;
        let pool = &*forward.machine.pool;
        for (param, values) in params.iter_mut().enumerate() {
            let constants = opt.constants(param, lr, factor);
            let width = forward.assembly.width(param);
            let mut rest = Rows { p: &mut *values, g: grads.get(param), m: &mut opt.m[param], v: &mut opt.v[param] };
            let places: Vec<_> = forward.assembly.weights.iter().filter(|w| w.param == param).collect();
            // One place, or slices one after another, whose rows are whole rows of the surface: update and stage in one pass.
            let direct = |w: &infer::WeightSlot| {
                let whole = |a: &model::Axis| matches!(a.segments(), [s] if s.to == 0);
                !w.transposed && whole(&w.rows) && whole(&w.cols) && w.cols.held() == width
            };
            let mut next = 0;
            let in_order = places.iter().all(|w| {
                let [s] = w.rows.segments() else { return false };
                let fits = direct(w) && s.from == next;
                next += s.len;
                fits
            });
            if !places.is_empty() && in_order && next * width == rest.p.len() {
                for w in places {
                    let mut guard = w.slot.write()?;
                    let (rows, tail) = rest.split(w.rows.held() * width);
                    rows.update(pool, &constants, width, Some(guard.view_mut()));
                    rest = tail;
                }
            } else {
                rest.update(pool, &constants, width, None);
                for w in places {
                    w.stage(pool, values, width)?;
                }
            }
        }
        opt.t += 1;
        if self.compiles_per_update() > 0 {
            self.rebake()?;
        }
        self.times.staging += start.elapsed();
        Ok(())
    }

    fn rebake(&mut self) -> Result<(), InferError> {
        self.forward.rebake(&self.params)?;
        for back in &mut self.back {
            for unit in back.ffn.units_mut().into_iter().chain(back.attn.units_mut()) {
                self.forward.assembly.rebake(unit, &self.params)?;
            }
        }
        Ok(())
    }
}
