//! The settings of a run: flags of `train` and keys of its configuration file, which are the same.

use super::{AttentionChoice, ChipChoice, CompileBudget, DeviceChoice, MatmulChoice, WeightsChoice};
use anyhow::{Context, Result, anyhow};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Everything is optional: what is left open is answered by the layer below, the last of which is the defaults.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// A preset (storybook, stories260k, stories15m, stories42m, stories110m), or a model to train on: a run, a checkpoint, a Hugging
    /// Face directory or a llama2.c .bin file.
    #[arg(long, value_name = "PRESET|PATH", help_heading = "Model")]
    pub(crate) model: Option<String>,
    /// Take only the shape of --model and start from new weights.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL", help_heading = "Model")]
    pub(crate) scratch: Option<bool>,
    /// Tokens that the model knows.
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub(crate) vocab_size: Option<usize>,
    /// Width of the residual stream.
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub(crate) dim: Option<usize>,
    /// Width of the feed-forward hidden layer.
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub(crate) hidden_dim: Option<usize>,
    /// Layers.
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub(crate) n_layers: Option<usize>,
    /// Query heads.
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub(crate) n_heads: Option<usize>,
    /// Key/value heads.
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub(crate) n_kv_heads: Option<usize>,
    /// Channels of a head.
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub(crate) head_dim: Option<usize>,

    /// A UTF-8 text, a .jsonl file with a `text` on each line, or a .bin file of u16 tokens; without it, the built-in corpus.
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    pub(crate) data: Option<PathBuf>,
    /// Data to measure on; without it, the last twentieth of --data.
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    pub(crate) val_data: Option<PathBuf>,
    /// A tokenizer.json, or llama2.c's tokenizer.bin; without it one is trained on the data.
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    pub(crate) tokenizer: Option<PathBuf>,

    /// Steps.
    #[arg(long, alias = "steps", value_name = "N", help_heading = "Training")]
    pub(crate) iters: Option<u64>,
    /// Sequences of a micro-batch.
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub(crate) batch_size: Option<usize>,
    /// Micro-batches of a step.
    #[arg(long, alias = "grad-accum", value_name = "N", help_heading = "Training")]
    pub(crate) grad_accumulation_steps: Option<usize>,
    /// Tokens of a sequence, padded to a multiple of 64 on the device.
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub(crate) max_seq_length: Option<usize>,
    /// Highest learning rate.
    #[arg(long, alias = "lr", allow_negative_numbers = true, value_name = "LR", help_heading = "Training")]
    pub(crate) learning_rate: Option<f64>,
    /// Lowest learning rate, reached at the last step; a tenth of the highest if not given.
    #[arg(long, alias = "min-lr", value_name = "LR", help_heading = "Training")]
    pub(crate) min_learning_rate: Option<f64>,
    /// Steps over which the learning rate rises.
    #[arg(long, alias = "warmup-steps", value_name = "N", help_heading = "Training")]
    pub(crate) warmup: Option<u64>,
    /// Decoupled weight decay of matrices.
    #[arg(long, value_name = "X", help_heading = "Training")]
    pub(crate) weight_decay: Option<f64>,
    /// Decay of Adam's first moment.
    #[arg(long, value_name = "X", help_heading = "Training")]
    pub(crate) beta1: Option<f64>,
    /// Decay of Adam's second moment.
    #[arg(long, value_name = "X", help_heading = "Training")]
    pub(crate) beta2: Option<f64>,
    /// Added to the root of Adam's second moment.
    #[arg(long, value_name = "X", help_heading = "Training")]
    pub(crate) adam_eps: Option<f64>,
    /// Largest norm of the gradient; larger ones are scaled down to it.
    #[arg(long, value_name = "X", help_heading = "Training")]
    pub(crate) max_grad_norm: Option<f64>,
    /// Seed of initial weights, data order and samples.
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub(crate) seed: Option<u64>,
    /// Seconds of training after which the run is saved and stops.
    #[arg(long, value_name = "SECONDS", help_heading = "Training")]
    pub(crate) wall_time: Option<u64>,

    /// Steps from one line of progress to the next.
    #[arg(long, value_name = "N", help_heading = "Watching and saving")]
    pub(crate) steps_per_report: Option<u64>,
    /// Steps from one measurement on validation data to the next; 0 is never.
    #[arg(long, value_name = "N", help_heading = "Watching and saving")]
    pub(crate) steps_per_eval: Option<u64>,
    /// Micro-batches of a measurement; -1 takes all of the data.
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Watching and saving")]
    pub(crate) val_batches: Option<i64>,
    /// Steps from one checkpoint to the next; 0 saves at the end only.
    #[arg(long, value_name = "N", help_heading = "Watching and saving")]
    pub(crate) save_every: Option<u64>,
    /// Newest checkpoints that are kept.
    #[arg(long, value_name = "N", help_heading = "Watching and saving")]
    pub(crate) keep_last: Option<usize>,
    /// Steps from one sample of text to the next; 0 is never.
    #[arg(long, value_name = "N", help_heading = "Watching and saving")]
    pub(crate) sample_every: Option<u64>,
    /// What samples continue.
    #[arg(long, value_name = "TEXT", help_heading = "Watching and saving")]
    pub(crate) sample_prompt: Option<String>,
    /// Tokens of a sample.
    #[arg(long, value_name = "N", help_heading = "Watching and saving")]
    pub(crate) sample_tokens: Option<usize>,

    /// What runs the programs.
    #[arg(long, value_enum, help_heading = "Device")]
    pub(crate) device: Option<DeviceChoice>,
    /// The chip to imitate.
    #[arg(long, value_enum, help_heading = "Device")]
    pub(crate) chip: Option<ChipChoice>,
    /// How attention is cut into programs.
    #[arg(long, value_enum, help_heading = "Device")]
    pub(crate) attention: Option<AttentionChoice>,
    /// How weights reach the device.
    #[arg(long, value_enum, help_heading = "Device")]
    pub(crate) weights: Option<WeightsChoice>,
    /// How the CPU multiplies matrices.
    #[arg(long, value_enum, help_heading = "Device")]
    pub(crate) matmul: Option<MatmulChoice>,
    /// Compiles that a process has before it restarts itself, or `none`.
    #[arg(long, value_name = "N|none", help_heading = "Device")]
    pub(crate) compile_budget: Option<CompileBudget>,
    /// CPU threads; 0 is one for each core.
    #[arg(long, value_name = "N", help_heading = "Device")]
    pub(crate) threads: Option<usize>,
}

impl Settings {
    /// Reads a configuration file.
    pub(crate) fn read(path: &Path) -> Result<Settings> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read the configuration {}", path.display()))?;
        toml::from_str(&text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start);
            let before = text.get(..at).unwrap_or_default();
            let (line, column) = (before.matches('\n').count() + 1, at - before.rfind('\n').map_or(0, |n| n + 1) + 1);
            // The list of all keys is for `--help`.
            let reason = e.message().split(", expected one of").next().unwrap_or_default().to_owned();
            anyhow!("{}:{line}:{column}: {reason}", path.display())
        })
    }

    /// These settings, with those of `below` where these leave a question open.
    pub(crate) fn over(&self, below: &Settings) -> Result<Settings> {
        let mut table = toml::Table::try_from(below)?;
        table.extend(toml::Table::try_from(self)?);
        Ok(table.try_into()?)
    }

    /// As the text of a configuration file.
    pub(crate) fn to_toml(&self) -> Result<String> {
        Ok(toml::to_string(self)?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn flags_go_before_the_file() {
        let below = Settings { iters: Some(5), seed: Some(1), compile_budget: Some(CompileBudget(None)), ..Settings::default() };
        let above = Settings { iters: Some(7), scratch: Some(true), ..Settings::default() };
        let both = above.over(&below).unwrap();
        assert_eq!(
            both,
            Settings {
                iters: Some(7),
                seed: Some(1),
                scratch: Some(true),
                compile_budget: Some(CompileBudget(None)),
                ..Settings::default()
            }
        );
    }

    #[test]
    fn a_file_reads_what_was_written() {
        let settings = Settings {
            model: Some("stories260k".into()),
            learning_rate: Some(3e-4),
            val_batches: Some(-1),
            compile_budget: Some(CompileBudget(Some(40))),
            weights: Some(WeightsChoice::Baked),
            ..Settings::default()
        };
        let kept = file(&settings.to_toml().unwrap());
        assert_eq!(Settings::read(kept.path()).unwrap(), settings);
    }

    #[test]
    fn unknown_keys_and_bad_values_are_named_in_one_line_with_their_place() {
        for (text, wanted) in [
            ("iters = 3\nbatchsize = 4\n", ":2:1: unknown field `batchsize`"),
            ("iters = \"many\"\n", ":1:9: invalid type"),
            ("compile_budget = \"some\"\n", "neither a number"),
            ("device = \"gpu\"\n", "unknown variant `gpu`"),
            ("iters = = 3\n", ":1:9: "),
        ] {
            let kept = file(text);
            let message = format!("{:#}", Settings::read(kept.path()).unwrap_err());
            assert!(message.contains(wanted) && !message.contains('\n'), "{text:?}: {message}");
        }
    }
}
