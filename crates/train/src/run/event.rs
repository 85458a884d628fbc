//! What a run tells its observer. The loop prints nothing itself.

use crate::metrics::{Row, Times};
use std::path::Path;

/// Something that happened.
pub enum Event<'a> {
    /// Something worth knowing.
    Note(&'a str),
    /// Something that went wrong without stopping the run.
    Warning(&'a str),
    /// The first step of this process is about to begin.
    Begin {
        /// Steps done before.
        done: u64,
        /// Steps of the run.
        iters: u64,
    },
    /// A step was finished.
    Step {
        /// Its record.
        row: &'a Row,
        /// Means since the last report, when one is due.
        report: Option<&'a Progress>,
    },
    /// The model was measured on validation data.
    Evaluated {
        /// After this step.
        step: u64,
        /// Mean loss in nats.
        loss: f64,
    },
    /// A checkpoint was written.
    Saved {
        /// Of this step.
        step: u64,
        /// There.
        dir: &'a Path,
    },
    /// A sample of text.
    Sample {
        /// After this step.
        step: u64,
        /// The text, prompt included.
        text: &'a str,
    },
}

/// Means over the steps since the last report.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// The step.
    pub step: u64,
    /// Steps of the run.
    pub iters: u64,
    /// Mean loss.
    pub loss: f64,
    /// Learning rate of the last step.
    pub lr: f32,
    /// Targets learnt from in a second of steps.
    pub tokens_per_second: f64,
    /// Mean times of a step.
    pub times: Times,
}

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let t = &self.times;
        write!(
            f,
            "step {:>5}/{}  loss {:.4}  lr {:.2e}  {:.0} tokens/s  {:.0} ms/step (device {:.0}, cpu {:.0}, staging {:.0}, waiting {:.0})",
            self.step, self.iters, self.loss, self.lr, self.tokens_per_second, t.ms, t.device_ms, t.cpu_ms, t.staging_ms, t.waiting_ms
        )
    }
}

impl Event<'_> {
    /// The line that a log keeps of it; most steps leave none.
    pub fn line(&self) -> Option<String> {
        Some(match self {
            Event::Note(text) => (*text).into(),
            Event::Warning(text) => format!("warning: {text}"),
            Event::Begin { done: 0, iters } => format!("training for {iters} steps"),
            Event::Begin { done, iters } => format!("going on from step {done} to step {iters}"),
            Event::Step { report: Some(progress), .. } => progress.to_string(),
            Event::Step { row, .. } if row.skipped => {
                format!("step {:>5}: gradients overflowed, update skipped; the loss scale was {}", row.step, row.loss_scale)
            }
            Event::Step { .. } => return None,
            Event::Evaluated { step, loss } => format!("step {step:>5}  validation loss {loss:.4}  perplexity {:.2}", loss.exp()),
            Event::Saved { dir, .. } => format!("saved {}", dir.display()),
            Event::Sample { step, text } => format!("step {step:>5}  sample: {}", text.trim()),
        })
    }
}

/// Sees the events of a run.
pub trait Observer {
    /// Something happened.
    fn event(&mut self, event: &Event<'_>);
}
