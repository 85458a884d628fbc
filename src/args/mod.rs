//! The command line, as it is written. What it means is resolved elsewhere: [`crate::resolve`] for `train`, each command for its own.

mod choices;
mod machine;
mod mil;
mod settings;

pub(crate) use choices::{AttentionChoice, ChipChoice, CompileBudget, DeviceChoice, MatmulChoice, WeightsChoice};
pub(crate) use machine::{MachineArgs, build};
pub(crate) use mil::{ArithmeticChoice, MilBlobsArgs, MilCheckArgs, MilCommand, MilCostArgs, MilEmitArgs, MilFmtArgs, MilRunArgs};
pub(crate) use settings::Settings;

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed while running, 2 refused before running (flags, files, data), 130 and 143 stopped by SIGINT and SIGTERM \
after saving. Progress goes to stderr, results go to stdout.";

/// Train transformers on the Apple Neural Engine, or on an emulator of it.
#[derive(Parser)]
#[command(name = "anneal", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Train a model; with no flags, a small one that learns to tell stories in a few minutes.
    Train(Box<TrainArgs>),
    /// Continue a text with a trained model.
    Generate(GenerateArgs),
    /// Loss and perplexity of a model on a text.
    Eval(EvalArgs),
    /// What this machine is, which device would be used, and why.
    Doctor(DoctorArgs),
    /// Turn a llama2.c or Hugging Face model into a Hugging Face directory that this program trains on.
    Import(ImportArgs),
    /// Write a run's model as a Hugging Face directory that `transformers` loads.
    Export(ExportArgs),
    /// Measure speed.
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Check, run and explain programs in MIL, the language of the Neural Engine.
    #[command(subcommand)]
    Mil(MilCommand),
}

#[derive(Args)]
#[command(args_override_self = true)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Read settings from a TOML file: the names of the flags with `_` for `-`. Flags go before the file, the file before defaults.
    #[arg(short, long, value_name = "FILE", help_heading = "Run")]
    pub(crate) config: Option<PathBuf>,
    /// The run directory; a fresh one under runs/ if not given.
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    pub(crate) run: Option<PathBuf>,
    /// Go on with a run: with the one in --run, else with the newest under runs/; or with the run or checkpoint at PATH.
    #[arg(long, value_name = "auto|PATH", num_args = 0..=1, default_missing_value = "auto", help_heading = "Run")]
    pub(crate) resume: Option<String>,
    /// Save and stop after this step, on the learning rates of the whole run: for cutting a run into pieces.
    #[arg(long, value_name = "STEP", help_heading = "Run")]
    pub(crate) stop_at: Option<u64>,
    /// Resume though the training data has changed.
    #[arg(long, help_heading = "Run")]
    pub(crate) allow_data_change: bool,
    /// Resume though the tokenizer has changed.
    #[arg(long, help_heading = "Run")]
    pub(crate) allow_tokenizer_change: bool,
    /// Say what would be done and what it would cost, and do nothing.
    #[arg(long, help_heading = "Run")]
    pub(crate) dry_run: bool,
    /// Print the closing report (or the plan, with --dry-run) as one JSON object.
    #[arg(long, help_heading = "Run")]
    pub(crate) json: bool,
    /// Write every program of the run to DIR as MIL text.
    #[arg(long, value_name = "DIR", help_heading = "Device")]
    pub(crate) dump_mil: Option<PathBuf>,
    /// Let the device fail on purpose: evaluate@N=fail|hang|inf|zero|stale or compile@N=fail|hang, N+ for the N-th call and all after it.
    #[arg(long, value_name = "FAULT", help_heading = "Device")]
    pub(crate) fault: Vec<String>,
    /// The state file of a restart; given by the program to itself.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) restart_state: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct GenerateArgs {
    /// A run, a checkpoint, a Hugging Face directory or a llama2.c .bin file.
    #[arg(long, value_name = "RUN|DIR")]
    pub(crate) model: PathBuf,
    /// The text to continue; without it the model begins one.
    #[arg(long, default_value = "")]
    pub(crate) prompt: String,
    /// Tokens to make.
    #[arg(long, default_value_t = 200)]
    pub(crate) max_tokens: usize,
    /// 0 takes the likeliest token every time; 1 draws by the model's own probabilities.
    #[arg(long, default_value_t = 0.8, allow_negative_numbers = true)]
    pub(crate) temperature: f32,
    /// Draw among the K likeliest tokens only.
    #[arg(long, value_name = "K")]
    pub(crate) top_k: Option<usize>,
    /// Draw among the likeliest tokens that together have this probability.
    #[arg(long, value_name = "P", default_value_t = train::plan::TOP_P)]
    pub(crate) top_p: f32,
    /// Seed of the draws.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Go on after the end of a text, with another one.
    #[arg(long)]
    pub(crate) ignore_end: bool,
    /// A tokenizer.json, or llama2.c's tokenizer.bin; needed if none lies beside the weights.
    #[arg(long, value_name = "FILE")]
    pub(crate) tokenizer: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
}

#[derive(Args)]
pub(crate) struct EvalArgs {
    /// A run, a checkpoint, a Hugging Face directory or a llama2.c .bin file.
    #[arg(long, value_name = "RUN|DIR")]
    pub(crate) model: PathBuf,
    /// A text, JSONL or token file.
    #[arg(long, value_name = "FILE")]
    pub(crate) data: PathBuf,
    /// A tokenizer.json, or llama2.c's tokenizer.bin; needed if none lies beside the weights.
    #[arg(long, value_name = "FILE")]
    pub(crate) tokenizer: Option<PathBuf>,
    /// Tokens that are seen together.
    #[arg(long, value_name = "N")]
    pub(crate) max_seq_length: Option<usize>,
    /// Every document of a JSONL file (every line of a text) is a sequence of its own, cut off at --max-seq-length.
    #[arg(long)]
    pub(crate) separate: bool,
    /// Write the first sequence and its logits to a safetensors file (`ids`, `logits`), for comparing with another implementation.
    #[arg(long, value_name = "FILE")]
    pub(crate) logits: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
}

#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
}

#[derive(Args)]
pub(crate) struct ImportArgs {
    /// A llama2.c .bin file, or a directory with config.json and safetensors.
    #[arg(value_name = "FILE|DIR")]
    pub(crate) from: PathBuf,
    /// Its tokenizer, if none lies beside the weights: a tokenizer.json, or llama2.c's tokenizer.bin.
    #[arg(long, value_name = "FILE")]
    pub(crate) tokenizer: Option<PathBuf>,
    /// The directory to write.
    #[arg(long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

/// `--dtype` of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DtypeChoice {
    F32,
    F16,
    Bf16,
}

#[derive(Args)]
pub(crate) struct ExportArgs {
    /// A run, a checkpoint, or any other model.
    #[arg(value_name = "RUN|DIR")]
    pub(crate) from: PathBuf,
    /// A tokenizer, if none lies beside the weights.
    #[arg(long, value_name = "FILE")]
    pub(crate) tokenizer: Option<PathBuf>,
    /// The type of the exported weights.
    #[arg(long, value_enum, default_value_t = DtypeChoice::F32)]
    pub(crate) dtype: DtypeChoice,
    /// The directory to write.
    #[arg(long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

#[derive(Subcommand)]
pub(crate) enum BenchCommand {
    /// Time training steps on random tokens.
    Step(BenchStepArgs),
}

#[derive(Args)]
pub(crate) struct BenchStepArgs {
    /// A preset.
    #[arg(long, value_name = "PRESET", default_value = model::Preset::DEFAULT)]
    pub(crate) model: String,
    /// Steps to time, at least 5.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(5..))]
    pub(crate) steps: u64,
    /// Sequences of a step.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) batch_size: u64,
    /// Tokens of a sequence.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_seq_length: u64,
    /// How attention is cut into programs.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) attention: AttentionChoice,
    /// How weights reach the device.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) weights: WeightsChoice,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
}
