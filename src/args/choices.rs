//! Values of flags that are one word out of a few.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// `--device`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DeviceChoice {
    /// The Neural Engine where there is one, else the emulator.
    #[default]
    Auto,
    /// The Apple Neural Engine.
    Ane,
    /// Executes the same programs on the CPU.
    Emulator,
    /// Answers at once and computes nothing; for `bench` only.
    Null,
}

/// `--chip`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ChipChoice {
    M1,
    M2,
    M3,
    #[default]
    M4,
    M5,
}

impl From<ChipChoice> for train::plan::ChipName {
    fn from(choice: ChipChoice) -> Self {
        match choice {
            ChipChoice::M1 => Self::M1,
            ChipChoice::M2 => Self::M2,
            ChipChoice::M3 => Self::M3,
            ChipChoice::M4 => Self::M4,
            ChipChoice::M5 => Self::M5,
        }
    }
}

/// `--matmul`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MatmulChoice {
    /// The fastest that this CPU has.
    #[default]
    Auto,
    /// AMX tiles.
    Amx,
    /// The gemm crate, on any CPU.
    Portable,
}

impl From<MatmulChoice> for cpu::matmul::Choice {
    fn from(choice: MatmulChoice) -> Self {
        match choice {
            MatmulChoice::Auto => Self::Auto,
            MatmulChoice::Amx => Self::Amx,
            MatmulChoice::Portable => Self::Portable,
        }
    }
}

/// `--attention`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AttentionChoice {
    /// Mask and softmax on the CPU between two programs.
    #[default]
    Split,
    /// One program.
    Fused,
}

impl From<AttentionChoice> for model::programs::Attention {
    fn from(choice: AttentionChoice) -> Self {
        match choice {
            AttentionChoice::Split => Self::Split,
            AttentionChoice::Fused => Self::Fused,
        }
    }
}

/// `--weights`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WeightsChoice {
    /// Beside the activation, in one port.
    Packed,
    /// As ports of their own, which both directions share.
    #[default]
    Ports,
    /// As constants: every update compiles anew.
    Baked,
}

impl From<WeightsChoice> for model::programs::Weights {
    fn from(choice: WeightsChoice) -> Self {
        match choice {
            WeightsChoice::Packed => Self::Packed,
            WeightsChoice::Ports => Self::Ports,
            WeightsChoice::Baked => Self::Baked,
        }
    }
}

/// `--compile-budget`: a number, or `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BudgetValue", into = "BudgetValue")]
pub(crate) struct CompileBudget(pub(crate) Option<u32>);

impl Default for CompileBudget {
    /// What a process has on the chip's compile service (programs.md 4).
    fn default() -> Self {
        CompileBudget(Some(119))
    }
}

impl FromStr for CompileBudget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(CompileBudget(None)),
            n => n.parse().map(|n| CompileBudget(Some(n))).map_err(|_| format!("`{text}` is neither a number of compiles nor `none`")),
        }
    }
}

/// How a file spells a budget.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum BudgetValue {
    Number(u32),
    Word(String),
}

impl TryFrom<BudgetValue> for CompileBudget {
    type Error = String;

    fn try_from(value: BudgetValue) -> Result<Self, String> {
        match value {
            BudgetValue::Number(n) => Ok(CompileBudget(Some(n))),
            BudgetValue::Word(word) => word.parse(),
        }
    }
}

impl From<CompileBudget> for BudgetValue {
    fn from(budget: CompileBudget) -> Self {
        budget.0.map_or(BudgetValue::Word("none".into()), BudgetValue::Number)
    }
}

impl fmt::Display for CompileBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(n) => write!(f, "{n}"),
            None => f.write_str("none"),
        }
    }
}
