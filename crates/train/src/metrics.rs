//! `metrics.jsonl`: one object a step.
//!
//! Every field is a function of (configuration, data, seed, step) except those whose names are `ms` or end in `_ms`, which are
//! times: without them the file has the same bytes for any thread count and any cutting of the run into pieces.

use crate::{Outcome, Phases};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What is recorded of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The step, from 1.
    pub step: u64,
    /// Mean loss over the step's tokens in nats, before its update.
    pub loss: f64,
    /// Learning rate.
    pub lr: f32,
    /// Norm of the gradient before clipping; not finite, and then `null`, when it overflowed.
    pub grad_norm: f64,
    /// Loss scale of the step.
    pub loss_scale: f32,
    /// Targets of the step.
    pub tokens: usize,
    /// The update was skipped because gradients overflowed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    /// Mean loss on validation data after the step, where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub val_loss: Option<f64>,
    /// Where the step's time went.
    #[serde(flatten)]
    pub times: Times,
}

/// Times of a step in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The whole step.
    pub ms: f64,
    /// Programs running on the device.
    pub device_ms: f64,
    /// The CPU's own work on the step's thread.
    pub cpu_ms: f64,
    /// Optimizer, and rounding weights into surfaces.
    pub staging_ms: f64,
    /// Waiting for weight gradients.
    pub waiting_ms: f64,
}

impl Times {
    /// The phases in milliseconds, to the microsecond.
    pub fn of(phases: &Phases) -> Times {
        let ms = |d: Duration| (d.as_secs_f64() * 1e6).round() / 1e3;
        Times {
            ms: ms(phases.total),
            device_ms: ms(phases.device),
            cpu_ms: ms(phases.cpu()),
            staging_ms: ms(phases.staging),
            waiting_ms: ms(phases.waiting),
        }
    }

    /// Adds another step's.
    pub fn add(&mut self, other: &Times) {
        self.ms += other.ms;
        self.device_ms += other.device_ms;
        self.cpu_ms += other.cpu_ms;
        self.staging_ms += other.staging_ms;
        self.waiting_ms += other.waiting_ms;
    }

    /// The mean of so many steps of which this is the sum.
    pub fn per(&self, steps: u64) -> Times {
        let n = steps.max(1) as f64;
        Times {
            ms: self.ms / n,
            device_ms: self.device_ms / n,
            cpu_ms: self.cpu_ms / n,
            staging_ms: self.staging_ms / n,
            waiting_ms: self.waiting_ms / n,
        }
    }
}

impl Row {
    /// What `step` did at learning rate `lr`.
    pub fn new(step: u64, lr: f32, outcome: &Outcome, phases: &Phases) -> Row {
        Row {
            step,
            loss: outcome.loss,
            lr,
            grad_norm: outcome.norm,
            loss_scale: outcome.scale,
            tokens: outcome.tokens,
            skipped: outcome.skipped,
            val_loss: None,
            times: Times::of(phases),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_row_names_what_it_must() {
        let outcome = Outcome { loss: 5.5, norm: 1.25, skipped: false, tokens: 64, scale: 1024.0 };
        let phases = Phases { total: Duration::from_micros(1500), device: Duration::from_micros(1000), ..Phases::default() };
        let row = serde_json::to_string(&Row::new(3, 0.5, &outcome, &phases)).unwrap();
        assert_eq!(
            row,
            r#"{"step":3,"loss":5.5,"lr":0.5,"grad_norm":1.25,"loss_scale":1024.0,"tokens":64,"ms":1.5,"device_ms":1.0,"cpu_ms":0.5,"staging_ms":0.0,"waiting_ms":0.0}"#
        );
    }
}
