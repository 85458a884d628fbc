//! AdamW on fp32 masters, in one pass with the rounding into the surfaces that programs read.

use cpu::adamw::{Hyper, Step, update};
use model::ParamSpec;
use serde::{Deserialize, Serialize};

/// Hyperparameters of AdamW.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdamWConfig {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Decoupled weight decay, on matrices only.
    pub weight_decay: f64,
    /// Largest norm of all gradients together; larger ones are scaled down to it.
    pub max_grad_norm: f64,
}

/// The optimizer and its moments.
pub struct AdamW {
    /// Hyperparameters.
    pub config: AdamWConfig,
    /// Updates so far.
    pub t: u64,
    /// First moments, one vector a parameter.
    pub m: Vec<Vec<f32>>,
    /// Second moments.
    pub v: Vec<Vec<f32>>,
    decays: Vec<bool>,
}

impl AdamW {
    /// An optimizer that has made no update.
    pub fn new(config: AdamWConfig, parameters: &[ParamSpec]) -> AdamW {
        let zeros = || parameters.iter().map(|p| vec![0.0; p.len()]).collect();
        AdamW { config, t: 0, m: zeros(), v: zeros(), decays: parameters.iter().map(ParamSpec::decays).collect() }
    }

    /// The factor that brings gradients of `norm` down to the largest allowed (PyTorch's `clip_grad_norm_`).
    pub fn clip(&self, norm: f64) -> f64 {
        (self.config.max_grad_norm / (norm + 1e-6)).min(1.0)
    }

    /// The constants of the next update for parameter `param`; gradients are multiplied by `factor` first.
    pub(crate) fn constants(&self, param: usize, lr: f32, factor: f64) -> Step {
        let AdamWConfig { beta1, beta2, eps, weight_decay, .. } = self.config;
        let weight_decay = if self.decays[param] { weight_decay } else { 0.0 };
        Step::new(self.t + 1, Hyper { lr: f64::from(lr), beta1, beta2, eps, weight_decay }, factor as f32)
    }
}

/// The rows of one parameter with its moments and gradient.
pub(crate) struct Rows<'a> {
    pub(crate) p: &'a mut [f32],
    pub(crate) g: &'a [f32],
    pub(crate) m: &'a mut [f32],
    pub(crate) v: &'a mut [f32],
}

impl<'a> Rows<'a> {
    /// Cuts after `n` elements.
    pub(crate) fn split(self, n: usize) -> (Rows<'a>, Rows<'a>) {
        let ((p, p2), (g, g2)) = (self.p.split_at_mut(n), self.g.split_at(n));
        let ((m, m2), (v, v2)) = (self.m.split_at_mut(n), self.v.split_at_mut(n));
        (Rows { p, g, m, v }, Rows { p: p2, g: g2, m: m2, v: v2 })
    }

    /// Updates all rows, `width` elements each, in parallel; `staged`, rows of stride `stride`, gets them rounded.
    pub(crate) fn update(self, pool: &cpu::Pool, step: &Step, width: usize, staged: Option<cpu::ViewMut<'_>>) {
        use rayon::prelude::*;
        // About 32 Ki elements a task: 0.9 MB of traffic, some 50 µs.
        let height = (32 * 1024 / width).max(1);
        let n = height * width;
        let rows = self.p.par_chunks_mut(n).zip(self.g.par_chunks(n)).zip(self.m.par_chunks_mut(n)).zip(self.v.par_chunks_mut(n));
        pool.install(|| match staged {
            None => rows.for_each(|(((p, g), m), v)| update(step, p, g, m, v, None)),
            Some(staged) => {
                let stride = staged.stride;
                rows.zip(staged.data.par_chunks_mut(height * stride)).for_each(|((((p, g), m), v), staged)| {
                    let lines = p.chunks_mut(width).zip(g.chunks(width)).zip(m.chunks_mut(width)).zip(v.chunks_mut(width));
                    for ((((p, g), m), v), line) in lines.zip(staged.chunks_mut(stride)) {
                        update(step, p, g, m, v, Some(&mut line[..width]));
                    }
                });
            }
        });
    }
}
