//! AdamW with decoupled weight decay, PyTorch's formula, fused with the fp16 copy that goes to the device.

use crate::round::round;
use crate::simd::dispatch;
use half::f16;

/// The hyperparameters of one parameter group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hyper {
    /// Learning rate of this step.
    pub lr: f64,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Decoupled weight decay; 0 for gains.
    pub weight_decay: f64,
}

/// The constants of one update, computed in fp64 and applied in fp32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    decay: f32,
    one_minus_beta1: f32,
    beta2: f32,
    one_minus_beta2: f32,
    step_size: f32,
    root_scale: f32,
    eps: f32,
    grad_scale: f32,
}

impl Step {
    /// Update number `step` (the first is 1). `grad_scale` multiplies every gradient first: 1 / loss scale times the clipping factor.
    ///
    /// # Panics
    /// When `step` is 0.
    pub fn new(step: u64, hyper: Hyper, grad_scale: f32) -> Step {
        assert!(step > 0, "adamw: the first step is number 1");
        let power = i32::try_from(step).unwrap_or(i32::MAX);
        let bias1 = 1.0 - hyper.beta1.powi(power);
        let bias2 = 1.0 - hyper.beta2.powi(power);
        Step {
            decay: (1.0 - hyper.lr * hyper.weight_decay) as f32,
            one_minus_beta1: (1.0 - hyper.beta1) as f32,
            beta2: hyper.beta2 as f32,
            one_minus_beta2: (1.0 - hyper.beta2) as f32,
            step_size: (hyper.lr / bias1) as f32,
            root_scale: (1.0 / bias2.sqrt()) as f32,
            eps: hyper.eps as f32,
            grad_scale,
        }
    }
}

/// Elements of one block: all its streams stay in the first-level cache.
const BLOCK: usize = 512;

/// One AdamW update of a slice of a parameter: p ← p·(1 − lr·wd) − lr/bias1 · m / (√v/√bias2 + eps), with m and v updated first.
/// `staged`, when given, receives fp16(p) in the same pass. The caller cuts and parallelises; a cut changes no bit.
///
/// # Panics
/// When the lengths differ.
pub fn update(step: &Step, p: &mut [f32], g: &[f32], m: &mut [f32], v: &mut [f32], staged: Option<&mut [f16]>) {
    let n = p.len();
    assert!(g.len() == n && m.len() == n && v.len() == n, "adamw: lengths differ");
    let mut staged = staged;
    assert!(staged.as_ref().is_none_or(|s| s.len() == n), "adamw: staged length differs");
    for (i, (((p, g), m), v)) in p.chunks_mut(BLOCK).zip(g.chunks(BLOCK)).zip(m.chunks_mut(BLOCK)).zip(v.chunks_mut(BLOCK)).enumerate() {
        dispatch(
            #[inline(always)]
            || block(step, p, g, m, v),
        );
        if let Some(staged) = &mut staged {
            round(p, &mut staged[i * BLOCK..][..p.len()]);
        }
    }
}

#[inline(always)]
fn block(s: &Step, p: &mut [f32], g: &[f32], m: &mut [f32], v: &mut [f32]) {
    for (((p, g), m), v) in p.iter_mut().zip(g).zip(m).zip(v) {
        let g = g * s.grad_scale;
        *m += s.one_minus_beta1 * (g - *m);
        *v = *v * s.beta2 + s.one_minus_beta2 * (g * g);
        let denominator = v.sqrt() * s.root_scale + s.eps;
        *p = *p * s.decay - s.step_size * (*m / denominator);
    }
}
