//! What a run writes beside its steps: checkpoints, its record, samples.

use super::record;
use super::sampler::Sampler;
use super::trainer::{Trainer, tell};
use super::{Event, RunError, SampleError};
use crate::Net;
use crate::checkpoint::{State, companions};
use store::{Checkpoint, RealFs, Retention, StoreError};

impl Trainer<'_> {
    /// Writes a checkpoint of this step, unless there is one. Too little room is an error only for the last.
    pub(super) fn save(&mut self, net: &Net, last: bool) -> Result<(), RunError> {
        if self.saved == self.step {
            return Ok(());
        }
        self.metrics.sync()?;
        let (params, m, v) = (borrow(net.params()), borrow(&self.opt.m), borrow(&self.opt.v));
        let state = State::new(&self.plan, &self.inputs, &self.opt, &self.scaler, self.tokens_seen);
        let files = companions(&self.plan.model, self.inputs.tokenizer.as_ref())?;
        let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
        let checkpoint =
            Checkpoint { config: &self.plan.model, params: &params, exp_avg: &m, exp_avg_sq: &v, state: &state, files: &files };
        match store::checkpoint::save(&RealFs, self.dir.path(), self.step, &checkpoint) {
            Ok(dir) => {
                self.saved = self.step;
                let retention = Retention { keep_last: self.plan.cadence.keep_last, ..Retention::default() };
                store::prune(&RealFs, self.dir.path(), &retention)?;
                tell(&mut self.dir, self.observer, &Event::Saved { step: self.step, dir: &dir });
            }
            Err(e) if e.is_no_space() && !last => {
                let warning = format!("step {} is not saved: {e}; training goes on", self.step);
                tell(&mut self.dir, self.observer, &Event::Warning(&warning));
            }
            Err(e) => return Err(e.into()),
        }
        self.keep_record("").map_err(Into::into)
    }

    /// Brings `run.json` up to date.
    pub(super) fn keep_record(&mut self, ended: &str) -> Result<(), StoreError> {
        let budget = self.machine.device.budget();
        if let Some(process) = self.record.processes.last_mut() {
            process.to_step = self.step;
            process.seconds = self.started.elapsed().as_secs_f64();
            process.compiles = budget.compiles;
            process.ended = ended.into();
        }
        self.dir.write(record::NAME, &self.record.to_json())
    }

    /// A sample of text, where there is a tokenizer and the compile budget has room for it.
    pub(super) fn sample(&mut self, net: &Net) -> Result<(), RunError> {
        let Some(tokenizer) = &self.inputs.tokenizer else { return Ok(()) };
        if self.sampler.is_none() && !self.machine.device.budget().allows(Sampler::MAX_COMPILES + net.compiles_per_update() as u32) {
            return Ok(());
        }
        let failed = |source: SampleError| RunError::Sample { step: self.step, source };
        let sampler = match &mut self.sampler {
            Some(sampler) => sampler,
            none => none.insert(Sampler::new(&self.machine, &self.plan, tokenizer).map_err(failed)?),
        };
        let text = sampler.sample(tokenizer, net.params(), self.plan.seed ^ self.step).map_err(failed)?;
        self.dir.write(&format!("samples/step-{:08}.txt", self.step), format!("{}\n", text.trim()).as_bytes())?;
        tell(&mut self.dir, self.observer, &Event::Sample { step: self.step, text: &text });
        Ok(())
    }
}

fn borrow(all: &[Vec<f32>]) -> Vec<&[f32]> {
    all.iter().map(Vec::as_slice).collect()
}
