//! What a run is, resolved: every question that flags, files and defaults leave open is answered before a [`Plan`] exists.
//!
//! A plan is plain data that survives a restart of the process (see [`crate::restart`]): nothing in it is a flag.

use crate::{AdamWConfig, Schedule};
use model::programs::{LayerPrograms, Options, ProgramError, layer_programs};
use model::{Config, Shape};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where the training text comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataSource {
    /// The story grammar.
    BuiltIn,
    /// A text, JSONL or token file.
    File(PathBuf),
}

/// The device that runs the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// Executes MIL on the CPU.
    Emulator,
    /// Answers at once and computes nothing.
    Null,
}

/// A chip generation by the name people know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // the names say it
pub enum ChipName {
    M1,
    M2,
    M3,
    M4,
    M5,
}

impl ChipName {
    /// The engine's generation in that chip.
    pub fn chip(self) -> mil::Chip {
        match self {
            ChipName::M1 => mil::Chip::H13,
            ChipName::M2 => mil::Chip::H14,
            ChipName::M3 => mil::Chip::H15,
            ChipName::M4 => mil::Chip::H16,
            ChipName::M5 => mil::Chip::H17,
        }
    }

    /// Highest fp16 rate measured on such a chip, in TFLOP/s, where one is published (ane-facts: conv chains; M3 is a Pro's).
    pub fn peak_tflops(self) -> Option<f64> {
        match self {
            ChipName::M1 | ChipName::M2 => None,
            ChipName::M3 => Some(10.0),
            ChipName::M4 => Some(18.6),
            ChipName::M5 => Some(12.4),
        }
    }
}

impl std::fmt::Display for ChipName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "m{}", *self as u8 + 1)
    }
}

/// How the CPU multiplies matrices. Part of the plan, not detected again after a restart: bits depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Matmul {
    /// AMX tiles.
    Amx,
    /// The `gemm` crate in fp32.
    Portable,
}

impl std::fmt::Display for Matmul {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.path().fmt(f)
    }
}

impl Matmul {
    /// The path of the CPU crate.
    pub fn path(self) -> cpu::matmul::Path {
        match self {
            Matmul::Amx => cpu::matmul::Path::Amx,
            Matmul::Portable => cpu::matmul::Path::Portable,
        }
    }
}

impl From<cpu::matmul::Path> for Matmul {
    fn from(path: cpu::matmul::Path) -> Matmul {
        match path {
            cpu::matmul::Path::Amx => Matmul::Amx,
            cpu::matmul::Path::Portable => Matmul::Portable,
        }
    }
}

/// The machine that a run is made on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachinePlan {
    /// The device.
    pub device: DeviceKind,
    /// The chip that it is, or imitates.
    pub chip: ChipName,
    /// How the CPU multiplies.
    pub matmul: Matmul,
    /// Compiles that one process has; `None` is no limit.
    pub compile_budget: Option<u32>,
    /// CPU threads; 0 is one for each core.
    pub threads: usize,
    /// Faults to inject, as `--fault` spells them.
    pub faults: Vec<String>,
}

/// How often what happens beside the steps, in steps; 0 is never.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cadence {
    /// A line of progress.
    pub report: u64,
    /// A measurement on validation data.
    pub eval: u64,
    /// Micro-batches of a measurement; `None` takes all of the data.
    pub val_batches: Option<usize>,
    /// A checkpoint; one is always written at the end.
    pub save: u64,
    /// Newest checkpoints that are kept.
    pub keep_last: usize,
    /// A sample of text.
    pub sample: u64,
}

/// Share of the probability that samples are drawn from: the tail, where a small model's nonsense words are, is left out (llama2.c's value).
pub const TOP_P: f32 = 0.9;

/// Models of fewer parameters are small: defaults differ.
pub const SMALL: usize = 20_000_000;

/// The text samples of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplePlan {
    /// What they continue; empty starts from the tokenizer's start token.
    pub prompt: String,
    /// Tokens of each.
    pub tokens: usize,
    /// Temperature of the draws.
    pub temperature: f32,
}

/// What may differ from the checkpoint that a run is resumed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allow {
    /// The training data.
    pub data: bool,
    /// The tokenizer.
    pub tokenizer: bool,
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The run directory.
    pub run_dir: PathBuf,
    /// What the model is called: a preset's name or a path.
    pub model_name: String,
    /// The model.
    pub model: Config,
    /// Weights to start from; `None` starts from scratch.
    pub weights: Option<PathBuf>,
    /// Training data.
    pub data: DataSource,
    /// Validation data; `None` sets a part of the training data aside.
    pub val_data: Option<PathBuf>,
    /// The tokenizer; `None` trains one on the data, unless the run has one already.
    pub tokenizer: Option<PathBuf>,
    /// The vocabulary was named, so a token file needs no tokenizer.
    pub vocab_named: bool,
    /// Sequences of a micro-batch.
    pub batch_size: usize,
    /// Tokens of a sequence.
    pub seq: usize,
    /// Micro-batches of a step.
    pub parts: usize,
    /// Steps, and the learning rate of each.
    pub schedule: Schedule,
    /// The optimizer.
    pub adamw: AdamWConfig,
    /// Seed of initial values, data order and samples.
    pub seed: u64,
    /// Which variant of the programs.
    pub options: Options,
    /// The machine.
    pub machine: MachinePlan,
    /// What happens how often.
    pub cadence: Cadence,
    /// Text samples.
    pub sample: SamplePlan,
    /// Seconds of training, restarts included, after which the run is saved and stops.
    pub wall_time: Option<u64>,
    /// A step after which the run is saved and stops, the schedule being that of the whole run.
    pub stop_at: Option<u64>,
    /// What may have changed since the checkpoint.
    pub allow: Allow,
    /// Text to keep as `config.toml`.
    pub config_toml: String,
    /// The programs are written here as MIL text.
    pub dump_mil: Option<PathBuf>,
}

impl Plan {
    /// A micro-batch.
    pub fn shape(&self) -> Shape {
        Shape { batch: self.batch_size, seq: self.seq }
    }

    /// Whether the model is one that makes a text in seconds rather than minutes.
    pub fn model_is_small(&self) -> bool {
        self.model.parameter_count() < SMALL
    }

    /// Tokens of a step.
    pub fn tokens_per_step(&self) -> usize {
        self.batch_size * self.seq * self.parts
    }

    /// The programs of the run.
    ///
    /// # Errors
    /// When the model has none of this shape.
    pub fn programs(&self) -> Result<LayerPrograms, ProgramError> {
        layer_programs(&self.model, self.shape(), self.options)
    }

    /// Operations of a step ([`model::train_flops`]).
    pub fn flops_per_step(&self) -> u64 {
        model::train_flops(&self.model, self.shape()) * self.parts as u64
    }

    /// The last step of this process: the schedule's, or an earlier one that was asked for.
    pub fn last_step(&self) -> u64 {
        self.stop_at.map_or(self.schedule.iters, |stop| stop.min(self.schedule.iters))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use model::programs::{Attention, Weights};

    /// A plan for the smallest preset.
    pub(crate) fn tiny() -> Plan {
        let preset = model::Preset::by_name("stories260k").unwrap();
        Plan {
            run_dir: "runs/tiny".into(),
            model_name: preset.name.into(),
            model: preset.config,
            weights: None,
            data: DataSource::BuiltIn,
            val_data: None,
            tokenizer: None,
            vocab_named: false,
            batch_size: 1,
            seq: 64,
            parts: 2,
            schedule: Schedule { peak: 1e-3, min: 1e-4, warmup: 2, iters: 10 },
            adamw: AdamWConfig { beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.1, max_grad_norm: 1.0 },
            seed: 0,
            options: Options { weights: Weights::Ports, attention: Attention::Split },
            machine: MachinePlan {
                device: DeviceKind::Null,
                chip: ChipName::M4,
                matmul: Matmul::Portable,
                compile_budget: Some(119),
                threads: 1,
                faults: Vec::new(),
            },
            cadence: Cadence { report: 1, eval: 0, val_batches: Some(1), save: 5, keep_last: 2, sample: 0 },
            sample: SamplePlan { prompt: String::new(), tokens: 8, temperature: 0.8 },
            wall_time: None,
            stop_at: None,
            allow: Allow::default(),
            config_toml: String::new(),
            dump_mil: None,
        }
    }

    #[test]
    fn a_process_ends_at_the_schedules_end_or_where_it_was_told() {
        let mut plan = tiny();
        assert_eq!(plan.last_step(), 10);
        plan.stop_at = Some(4);
        assert_eq!(plan.last_step(), 4);
        plan.stop_at = Some(40);
        assert_eq!(plan.last_step(), 10);
    }
}
