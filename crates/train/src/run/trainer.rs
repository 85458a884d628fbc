//! The loop, and what happens beside its steps.

use super::dir::RunDir;
use super::record::{self, Process, Record};
use super::sampler::Sampler;
use super::start::{self, Start};
use super::{Done, Ending, Event, Inputs, Observer, Progress, RunError, Session, StartAt};
use crate::metrics::{Row, Times};
use crate::plan::Plan;
use crate::report::Losses;
use crate::restart::Restart;
use crate::signals::Stop;
use crate::{AdamW, Batch, LossScaler, Net, StepError, step};
use infer::{Loss, Machine};
use std::time::Instant;
use store::{JsonLines, RealFs};

/// A run in progress.
pub(super) struct Trainer<'a> {
    pub(super) plan: Plan,
    pub(super) machine: Machine,
    pub(super) inputs: Inputs,
    pub(super) stop: Stop,
    pub(super) previous: Option<Restart>,
    pub(super) observer: &'a mut dyn Observer,
    pub(super) dir: RunDir,
    pub(super) metrics: JsonLines,
    pub(super) record: Record,
    pub(super) opt: AdamW,
    pub(super) scaler: LossScaler,
    pub(super) sampler: Option<Sampler>,
    /// Parameters until the network is built, which then owns them.
    pub(super) params: Vec<Vec<f32>>,
    /// Steps done.
    pub(super) step: u64,
    /// Steps that were done before this process.
    pub(super) from: u64,
    /// Steps that the newest checkpoint has.
    pub(super) saved: u64,
    pub(super) tokens_seen: u64,
    pub(super) started: Instant,
    pub(super) window: Window,
    pub(super) losses: Losses,
}

/// Sums since the last progress report.
#[derive(Default)]
pub(super) struct Window {
    pub(super) steps: u64,
    pub(super) loss: f64,
    tokens: usize,
    times: Times,
}

impl<'a> Trainer<'a> {
    /// Takes the run directory and finds where to go on from.
    pub(super) fn open(session: Session<'a>) -> Result<Trainer<'a>, RunError> {
        let Session { plan, from, previous, machine, inputs, weights, opening, stop, observer } = session;
        if from == StartAt::Start {
            super::check_fresh(&plan.run_dir)?;
        }
        let mut dir = RunDir::open(&plan.run_dir)?;
        opening.iter().for_each(|line| dir.log(line));
        let Start { step, params, opt, scaler, tokens_seen, warnings } = start::find(&plan, from, &inputs, weights)?;
        warnings.iter().for_each(|warning| tell(&mut dir, observer, &Event::Warning(warning)));
        dir.write("config.toml", plan.config_toml.as_bytes())?;
        if let Some(json) = inputs.tokenizer_json() {
            dir.write("tokenizer.json", json)?;
        }
        let cut = JsonLines::truncate_to_step(&RealFs, &dir.metrics(), step)?;
        if cut.missing > 0 {
            let warning = format!("{} of the steps up to {step} have no line in metrics.jsonl: they were lost with the power", cut.missing);
            tell(&mut dir, observer, &Event::Warning(&warning));
        }
        let metrics = JsonLines::append_to(&RealFs, &dir.metrics())?;
        let mut record = Record::read(dir.path())?;
        if record.program.is_empty() {
            record.program = env!("CARGO_PKG_VERSION").into();
        }
        record.model = plan.model_name.clone();
        record.parameters = plan.model.parameter_count();
        record.processes.push(process(&plan, &machine, step, previous.is_some()));
        let mut trainer = Trainer {
            plan,
            machine,
            inputs,
            stop,
            previous,
            observer,
            dir,
            metrics,
            record,
            opt,
            scaler,
            sampler: None,
            params,
            step,
            from: step,
            saved: step,
            tokens_seen,
            started: Instant::now(),
            window: Window::default(),
            losses: Losses::default(),
        };
        trainer.keep_record("")?;
        Restart::taken_over(&RealFs, trainer.dir.path());
        Ok(trainer)
    }

    /// Trains to the end of this process.
    pub(super) fn run(mut self) -> Result<Done, RunError> {
        let params = std::mem::take(&mut self.params);
        let options = self.plan.options;
        let mut net = match Net::new(&self.machine, &self.plan.model, self.plan.shape(), options, params) {
            Ok(net) => net,
            Err(e) => return self.not_built(e),
        };
        let begin = Event::Begin { done: self.step, iters: self.plan.schedule.iters };
        tell(&mut self.dir, self.observer, &begin);
        match self.steps(&mut net) {
            Ok(Ending::Restart(restart)) => self.end(net, Ending::Restart(restart)),
            Ok(ending) => {
                self.save(&net, true)?;
                self.end(net, ending)
            }
            Err(error) => self.failed(&net, error),
        }
    }

    /// Steps until something ends them.
    fn steps(&mut self, net: &mut Net) -> Result<Ending, RunError> {
        let before = self.record.seconds_before();
        loop {
            if self.step >= self.plan.last_step() {
                return Ok(if self.step >= self.plan.schedule.iters { Ending::Finished } else { Ending::StoppedAt });
            }
            if let Some(signal) = self.stop.asked() {
                return Ok(Ending::Signal(signal));
            }
            if self.plan.wall_time.is_some_and(|limit| before + self.started.elapsed().as_secs_f64() >= limit as f64) {
                return Ok(Ending::WallTime);
            }
            let budget = self.machine.device.budget();
            if !budget.allows(net.compiles_per_update() as u32) {
                self.save(net, true)?;
                let (used, limit) = (budget.compiles, budget.compile_limit.unwrap_or(budget.compiles));
                let reason = format!("{used} of {limit} compiles are used, and the next update needs {}", net.compiles_per_update());
                return Ok(Ending::Restart(Box::new(self.next_process(reason)?)));
            }
            self.one_step(net)?;
        }
    }

    fn one_step(&mut self, net: &mut Net) -> Result<(), RunError> {
        let number = self.step + 1;
        let failed = |source: StepError| RunError::Step { step: number, source };
        let parts: Vec<Batch> = (0..self.plan.parts as u64)
            .map(|micro| batch(self.inputs.train.batch(self.plan.seed, number, micro, self.plan.batch_size)))
            .collect();
        let lr = self.plan.schedule.at(number);
        let outcome = step(net, &mut self.opt, &mut self.scaler, &parts, lr).map_err(failed)?;
        self.step = number;
        self.tokens_seen += if outcome.skipped { 0 } else { outcome.tokens as u64 };
        let mut row = Row::new(number, lr, &outcome, &net.take_times());
        let (cadence, last) = (self.plan.cadence.clone(), number == self.plan.schedule.iters);
        let due = |every: u64| every > 0 && (number.is_multiple_of(every) || last);
        if due(cadence.eval) {
            row.val_loss = self.evaluate(net)?;
        }
        self.metrics.push(&row)?;
        self.count(&row, net.forward.queue.stats().retries);
        let report = due(cadence.report).then(|| self.progress(lr));
        tell(&mut self.dir, self.observer, &Event::Step { row: &row, report: report.as_ref() });
        if let Some(loss) = row.val_loss {
            tell(&mut self.dir, self.observer, &Event::Evaluated { step: number, loss });
        }
        if cadence.save > 0 && number.is_multiple_of(cadence.save) {
            self.save(net, false)?;
        }
        // A finished run shows samples anyway.
        if cadence.sample > 0 && number.is_multiple_of(cadence.sample) && !last {
            self.sample(net)?;
        }
        Ok(())
    }

    fn count(&mut self, row: &Row, retries: u64) {
        self.window.steps += 1;
        self.window.loss += row.loss;
        self.window.tokens += row.tokens;
        self.window.times.add(&row.times);
        if row.step == 1 {
            self.record.first_loss = Some(row.loss);
        }
        if let Some(process) = self.record.processes.last_mut() {
            process.steps += 1;
            process.skipped += u64::from(row.skipped);
            process.retries = retries;
            process.times.add(&row.times);
        }
    }

    /// Means since the last report, which this one is.
    fn progress(&mut self, lr: f32) -> Progress {
        let window = std::mem::take(&mut self.window);
        let loss = window.loss / window.steps.max(1) as f64;
        self.losses.last = Some(loss);
        Progress {
            step: self.step,
            iters: self.plan.schedule.iters,
            loss,
            lr,
            tokens_per_second: window.tokens as f64 / (window.times.ms / 1e3).max(1e-9),
            times: window.times.per(window.steps),
        }
    }

    /// Mean loss on validation data, if there is any.
    fn evaluate(&mut self, net: &mut Net) -> Result<Option<f64>, RunError> {
        let Some(val) = &self.inputs.val else { return Ok(None) };
        let mut sum = Loss::default();
        for part in val.pass(self.plan.batch_size).take(self.plan.cadence.val_batches.unwrap_or(usize::MAX)) {
            let loss = net.evaluate(&batch(part)).map_err(|source| RunError::Evaluate { step: self.step, source })?;
            sum = Loss { nll: sum.nll + loss.nll, targets: sum.targets + loss.targets };
        }
        // The device's time was the measurement's, not the next step's.
        net.take_times();
        self.losses.val = Some(sum.mean());
        Ok(self.losses.val)
    }
}

/// A batch of the data as the step takes it.
fn batch(batch: text::Batch) -> Batch {
    Batch { tokens: batch.tokens, targets: batch.targets }
}

/// This process, for the record.
fn process(plan: &Plan, machine: &Machine, step: u64, restarted: bool) -> Process {
    let info = machine.device.info();
    Process {
        host: record::host(),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        program: env!("CARGO_PKG_VERSION").into(),
        device: format!("{} {}", info.name, plan.machine.chip),
        arithmetic: info.arithmetic.clone(),
        matmul: plan.machine.matmul.to_string(),
        threads: machine.pool.threads(),
        started: record::unix_seconds(),
        restarted,
        from_step: step,
        to_step: step,
        ..Process::default()
    }
}

/// Tells the observer, and the log.
pub(super) fn tell(dir: &mut RunDir, observer: &mut dyn Observer, event: &Event<'_>) {
    if let Some(line) = event.line() {
        dir.log(&line);
    }
    observer.event(event);
}
