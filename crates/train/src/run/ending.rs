//! The ways in which a process's part of a run ends.

use super::sampler::Sampler;
use super::trainer::{Trainer, tell};
use super::{Done, Ending, Event, RunError, SampleError};
use crate::report::Report;
use crate::restart::{Restart, RestartStorm};
use crate::{Net, StepError};
use ane::{CompileError, EvalError};
use infer::InferError;

/// Samples that a finished run shows, of a model that is quick and of one that is not.
const FINAL_SAMPLES: [u64; 2] = [3, 1];

/// What an error of the device asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Remedy {
    /// Another process: this one has no compiles left, or its compiler refuses, as it does then.
    NewCompiles,
    /// Another process: this one's device is dead.
    NewDevice,
    /// None that this program knows.
    None,
}

fn remedy(error: &InferError) -> Remedy {
    match error {
        InferError::Compile(CompileError::Budget { .. } | CompileError::Refused { .. }) => Remedy::NewCompiles,
        InferError::Eval(EvalError::Hung { .. }) => Remedy::NewDevice,
        _ => Remedy::None,
    }
}

impl Trainer<'_> {
    /// The network was not built: nothing is lost, and a new process may help.
    pub(super) fn not_built(mut self, error: InferError) -> Result<Done, RunError> {
        match remedy(&error) {
            Remedy::None => Err(RunError::Build(error)),
            _ => self.restart(error.to_string()),
        }
    }

    /// Something failed after the network was built. What was learnt is saved, if the weights are still those of a finished step.
    pub(super) fn failed(mut self, net: &Net, error: RunError) -> Result<Done, RunError> {
        let source = match &error {
            RunError::Step { source: StepError::Network(e), .. } => e,
            RunError::Evaluate { source, .. } | RunError::Sample { source: SampleError::Infer(source), .. } => source,
            _ => return Err(error),
        };
        let remedy = remedy(source);
        // Compiles come last in an update: by then the weights are another step's, whose record is lost.
        let whole = !(remedy == Remedy::NewCompiles && matches!(error, RunError::Step { .. }));
        if whole {
            self.save(net, true)?;
        }
        match remedy {
            Remedy::None => {
                self.keep_record(&format!("error: {error}"))?;
                Err(error)
            }
            _ => self.restart(error.to_string()),
        }
    }

    fn restart(&mut self, reason: String) -> Result<Done, RunError> {
        let next = self.next_process(reason);
        if let Err(storm) = &next {
            self.keep_record(&format!("error: {storm}"))?;
        }
        self.ended(Ending::Restart(Box::new(next?)))
    }

    /// The process that goes on where this one saved last.
    pub(super) fn next_process(&mut self, reason: String) -> Result<Restart, RestartStorm> {
        Restart::after(self.previous.as_ref(), &self.plan, self.saved.saturating_sub(self.from), reason)
    }

    /// An end without an error, everything saved.
    pub(super) fn end(mut self, mut net: Net, ending: Ending) -> Result<Done, RunError> {
        let mut done = self.ended(ending)?;
        if matches!(done.ending, Ending::Finished) {
            let params = std::mem::take(&mut net.params);
            drop(net); // its memory is the sampler's
            done.samples = self.final_samples(&params);
        }
        Ok(done)
    }

    fn ended(&mut self, ending: Ending) -> Result<Done, RunError> {
        self.keep_record(&match &ending {
            Ending::Finished => "finished".into(),
            Ending::StoppedAt => "stopped at the step that was asked for".into(),
            Ending::WallTime => "the time allowed was over".into(),
            Ending::Signal(signal) => format!("signal {signal}"),
            Ending::Restart(restart) => format!("restart: {}", restart.reason),
        })?;
        let report = match &ending {
            Ending::Restart(restart) => {
                let note = format!("restart {} from step {}: {}", restart.number, self.saved, restart.reason);
                tell(&mut self.dir, self.observer, &Event::Note(&note));
                None
            }
            _ => {
                let window = &self.window;
                if window.steps > 0 {
                    self.losses.last = Some(window.loss / window.steps as f64);
                }
                Some(Report::new(&self.plan, &self.record, self.machine.device.info(), self.step, self.losses))
            }
        };
        Ok(Done { ending, report, samples: Vec::new() })
    }

    /// A few texts; that they cannot be had does not undo the training.
    fn final_samples(&mut self, params: &[Vec<f32>]) -> Vec<String> {
        let Some(tokenizer) = &self.inputs.tokenizer else { return Vec::new() };
        if self.plan.cadence.sample == 0 || !self.machine.device.budget().allows(Sampler::MAX_COMPILES) {
            return Vec::new();
        }
        let count = FINAL_SAMPLES[usize::from(!self.plan.model_is_small())];
        let texts = Sampler::new(&self.machine, &self.plan, tokenizer).and_then(|mut sampler| {
            (1..=count).map(|n| sampler.sample(tokenizer, params, self.plan.seed ^ (n << 32))).collect::<Result<Vec<_>, _>>()
        });
        match texts {
            Ok(texts) => {
                // A copy for later; what matters is saved already.
                let _ = self.dir.write("samples/final.txt", texts.join("\n\n").as_bytes());
                texts
            }
            Err(e) => {
                tell(&mut self.dir, self.observer, &Event::Warning(&format!("no samples: {e}")));
                Vec::new()
            }
        }
    }
}
