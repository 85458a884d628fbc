//! The loop around the step: a run directory, checkpoints, measurements, samples, and every way to end.
//!
//! ```text
//! open the directory → find where to go on from → build the network → for each step:
//!     asked to stop? out of time? no compiles left?  → save, and end in that way
//!     batches of (seed, step) → step → metrics → perhaps measure, save, sample
//! ```

mod dir;
mod ending;
mod event;
mod inputs;
mod keep;
mod record;
mod sampler;
mod start;
mod trainer;

pub use dir::{RunExists, check_fresh, fresh_dir, kept_tokenizer};
pub use event::{Event, Observer, Progress};
pub use inputs::{BUILT_IN_SEED, InputError, Inputs, is_token_file};
pub use record::{Process, Record};
pub use sampler::{SampleError, start};

use crate::StepError;
use crate::checkpoint::ResumeError;
use crate::plan::Plan;
use crate::report::Report;
use crate::restart::{Restart, RestartStorm};
use crate::signals::Stop;
use infer::{InferError, Machine};
use std::path::PathBuf;
use store::StoreError;

/// Where a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// At its plan's weights, or from scratch.
    Start,
    /// At the newest checkpoint that verifies; at the start if there is none.
    Latest,
    /// At the checkpoint of this step; later ones are moved out of the way.
    Step(u64),
}

/// A run about to be made.
pub struct Session<'a> {
    /// What to do.
    pub plan: Plan,
    /// Where to begin.
    pub from: StartAt,
    /// The restart that started this process, if one did.
    pub previous: Option<Restart>,
    /// What to run on.
    pub machine: Machine,
    /// What to learn from.
    pub inputs: Inputs,
    /// The plan's weights, where the caller has read them already.
    pub weights: Option<Vec<Vec<f32>>>,
    /// What was said before the run began, for its log.
    pub opening: Vec<String>,
    /// Whether to stop.
    pub stop: Stop,
    /// Who is told.
    pub observer: &'a mut dyn Observer,
}

/// How a process's part of a run ended. In every case what was learnt is saved.
#[derive(Debug)]
pub enum Ending {
    /// All steps are done.
    Finished,
    /// The step to stop at was reached.
    StoppedAt,
    /// The time allowed is over.
    WallTime,
    /// A signal asked for it.
    Signal(i32),
    /// The process must be replaced to go on.
    Restart(Box<Restart>),
}

/// A run that ended without an error.
#[derive(Debug)]
pub struct Done {
    /// How.
    pub ending: Ending,
    /// What it came to; none before a restart.
    pub report: Option<Report>,
    /// Texts by the model, when all steps are done and there is a tokenizer.
    pub samples: Vec<String>,
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The directory holds a run.
    #[error(transparent)]
    Exists(#[from] RunExists),
    /// Something on disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing to resume from.
    #[error("no checkpoint of {} is whole, so nothing was changed: {reason}; restore one from a copy, or start a new run", run.display())]
    NoneWhole {
        /// The run.
        run: PathBuf,
        /// What is wrong with the newest.
        reason: String,
    },
    /// The checkpoint does not belong to the plan.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// The network could not be built.
    #[error("cannot build the model on the device: {0}")]
    Build(InferError),
    /// A step failed; what was learnt before it is saved.
    #[error("step {step} failed: {source}")]
    Step {
        /// The step.
        step: u64,
        /// Why.
        source: StepError,
    },
    /// A measurement failed.
    #[error("measuring the model after step {step} failed: {source}")]
    Evaluate {
        /// The step.
        step: u64,
        /// Why.
        source: InferError,
    },
    /// A sample failed.
    #[error("the sample after step {step} failed: {source}")]
    Sample {
        /// The step.
        step: u64,
        /// Why.
        source: SampleError,
    },
    /// Restarting did not help.
    #[error(transparent)]
    Storm(#[from] RestartStorm),
}

/// Trains.
///
/// # Errors
/// See [`RunError`]; checkpoints on disk are whole whatever happens.
pub fn run(session: Session<'_>) -> Result<Done, RunError> {
    trainer::Trainer::open(session)?.run()
}
