//! Flags of `anneal mil`.

use super::{AttentionChoice, ChipChoice, WeightsChoice};
use ane::emulator::{Arithmetic, Mac};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Subcommand)]
pub(crate) enum MilCommand {
    /// Say what is wrong with a program, and where; exit code 0 without errors, 1 with some.
    Check(MilCheckArgs),
    /// Lay a text out: one statement a line, comments kept.
    Fmt(MilFmtArgs),
    /// Run a program on the emulator.
    Run(MilRunArgs),
    /// What each op of a program computes and moves.
    Cost(MilCostArgs),
    /// Print a program that training sends; without --program, list them.
    Emit(MilEmitArgs),
    /// List what a weight file holds.
    Blobs(MilBlobsArgs),
}

#[derive(Args)]
pub(crate) struct MilCheckArgs {
    /// A MIL text, or a compiled model's directory. Weight files are looked for beside the text.
    #[arg(value_name = "FILE|DIR")]
    pub(crate) file: PathBuf,
    /// Check against the rules of this chip too; without it, against those of the language only.
    #[arg(long, value_enum)]
    pub(crate) chip: Option<ChipChoice>,
    /// Print a JSON array of objects with severity, code, line, column, message and help.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct MilFmtArgs {
    /// MIL texts, each rewritten in place if it is laid out otherwise.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Print what it would be instead of rewriting it.
    #[arg(long, conflicts_with = "check")]
    pub(crate) stdout: bool,
    /// Change nothing; exit code 1 if a file is laid out otherwise.
    #[arg(long)]
    pub(crate) check: bool,
}

/// `--arithmetic`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArithmeticChoice {
    /// What training uses: exact products, wide sums, one rounding an op.
    #[default]
    Fast,
    /// The chip's own tiles, tables and roundings as measured, products on the grid of its error sweep; slow.
    Fidelity,
    /// As fidelity, but products as wide as its probes have them; slow.
    FidelityWide,
    /// What the language means: every op exact, rounded once to its type; fp32 and integers too; slow.
    Exact,
}

impl From<ArithmeticChoice> for Arithmetic {
    fn from(choice: ArithmeticChoice) -> Self {
        match choice {
            ArithmeticChoice::Fast => Self::Fast,
            ArithmeticChoice::Fidelity => Self::Fidelity(Mac::Grid),
            ArithmeticChoice::FidelityWide => Self::Fidelity(Mac::Wide),
            ArithmeticChoice::Exact => Self::Exact,
        }
    }
}

#[derive(Args)]
pub(crate) struct MilRunArgs {
    /// A MIL text, or a compiled model's directory. Weight files are looked for beside the text.
    #[arg(value_name = "FILE|DIR")]
    pub(crate) file: PathBuf,
    /// What a parameter is given: a NumPy file of its shape, or numbers in ±1 made from a seed. Once for each parameter.
    #[arg(long, value_name = "NAME=FILE.npy|NAME=random:SEED", value_parser = named)]
    pub(crate) input: Vec<(String, String)>,
    /// The directory for the results, one NumPy file each; without it they are only summed up.
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Hold the program to the rules and habits of this chip; without it, to those of the language only.
    #[arg(long, value_enum)]
    pub(crate) chip: Option<ChipChoice>,
    /// How the emulator computes.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) arithmetic: ArithmeticChoice,
    /// CPU threads; 0 is one for each core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
}

#[derive(Args)]
pub(crate) struct MilCostArgs {
    /// A MIL text, or a compiled model's directory. Weight files are not needed.
    #[arg(value_name = "FILE|DIR")]
    pub(crate) file: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct MilEmitArgs {
    /// A preset.
    #[arg(long, value_name = "PRESET", default_value = model::Preset::DEFAULT)]
    pub(crate) model: String,
    /// The program's name, such as ffn_fwd.
    #[arg(long, value_name = "NAME")]
    pub(crate) program: Option<String>,
    /// How weights reach the device.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) weights: WeightsChoice,
    /// How attention is cut into programs.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) attention: AttentionChoice,
    /// Sequences of a micro-batch; the preset's own if not given.
    #[arg(long, alias = "batch", value_name = "N")]
    pub(crate) batch_size: Option<usize>,
    /// Tokens of a sequence; the preset's own if not given.
    #[arg(long, value_name = "N")]
    pub(crate) max_seq_length: Option<usize>,
}

#[derive(Args)]
pub(crate) struct MilBlobsArgs {
    /// A weight file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// `name=what`.
fn named(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, what)) if !name.is_empty() && !what.is_empty() => Ok((name.into(), what.into())),
        _ => Err("write NAME=FILE.npy or NAME=random:SEED".into()),
    }
}
