//! Why a model has no programs.

use super::ProgramKind;
use crate::ConfigError;

/// Why a configuration, a shape and options give no programs.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProgramError {
    /// The configuration is not a model.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A micro-batch without tokens.
    #[error("a micro-batch of {batch} sequences of {seq} tokens is empty: both must be at least 1")]
    Empty {
        /// Sequences.
        batch: usize,
        /// Tokens of a sequence.
        seq: usize,
    },
    /// A sequence that needs query tiles.
    #[error("a sequence of {seq} tokens needs attention in query tiles, which are not built yet: use at most {} tokens", crate::MAX_SEQ)]
    Tiles {
        /// Tokens of a sequence.
        seq: usize,
    },
    /// Scores of a micro-batch do not fit in one program.
    #[error(
        "attention of {batch} sequences has {rows} rows of scores (batch · heads · sequence), more than 65536: use a smaller batch and \
         accumulate gradients"
    )]
    Scores {
        /// Sequences.
        batch: usize,
        /// `batch · n_heads · seq_padded`.
        rows: usize,
    },
    /// Activation and weights side by side are too wide.
    #[error(
        "{program}: {columns} columns of activation and {weights} of packed weights make {} columns, more than 16384 (ane-facts 5.3): \
         bind the weights as ports, or use a smaller batch", columns + weights
    )]
    Packed {
        /// The program.
        program: ProgramKind,
        /// Columns of the micro-batch.
        columns: usize,
        /// Columns of weights.
        weights: usize,
    },
    /// An axis of a port or an intermediate is longer than any chip takes.
    #[error("{program}: `{value}` has an axis of {length}, more than {limit} (ane-facts 5.3): use a smaller batch or model")]
    Axis {
        /// The program.
        program: ProgramKind,
        /// The value.
        value: String,
        /// Its longest axis.
        length: u64,
        /// What all chips take.
        limit: u64,
    },
    /// The program could not be put together: an error of this crate.
    #[error("{program} could not be built: {source}")]
    Build {
        /// The program.
        program: ProgramKind,
        /// What the builder said.
        source: mil::BuildError,
    },
}
