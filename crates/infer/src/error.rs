//! What can go wrong between a model and a device.

/// Why a network could not be built or run.
#[derive(Debug, thiserror::Error)]
pub enum InferError {
    /// The model has no programs of this shape.
    #[error(transparent)]
    Programs(#[from] model::ProgramError),
    /// The configuration is no model.
    #[error(transparent)]
    Config(#[from] model::ConfigError),
    /// A program of ours does not verify for the chip: a bug, or a chip that cannot hold the model.
    #[error("program `{program}` does not verify for {chip:?}:\n{text}")]
    Verify {
        /// Program.
        program: String,
        /// Chip.
        chip: mil::Chip,
        /// The verifier's report.
        text: String,
    },
    /// The device's compiler refused.
    #[error(transparent)]
    Compile(#[from] ane::CompileError),
    /// Surfaces and ports do not fit.
    #[error(transparent)]
    Bind(#[from] ane::BindError),
    /// A surface was not to be had.
    #[error(transparent)]
    Surface(#[from] ane::SurfaceError),
    /// An evaluation failed.
    #[error(transparent)]
    Eval(#[from] ane::EvalError),
    /// A token that the model does not know.
    #[error(
        "token {token} at position {position} is not in the model's vocabulary of {vocab_size}: the tokenizer and the model do not belong together"
    )]
    Token {
        /// Token.
        token: u32,
        /// Where.
        position: usize,
        /// The vocabulary's size.
        vocab_size: usize,
    },
    /// More tokens than the model can hold.
    #[error("{tokens} tokens do not fit: this network holds {limit}; give a shorter prompt")]
    TooLong {
        /// Tokens.
        tokens: usize,
        /// Limit.
        limit: usize,
    },
    /// Nothing to continue.
    #[error("the prompt has no tokens: give at least a start token")]
    Empty,
    /// Weights that are not the configuration's.
    #[error("parameter `{name}` has {found} values, the configuration wants {wanted}")]
    Weights {
        /// Parameter.
        name: String,
        /// Values given.
        found: usize,
        /// Values wanted.
        wanted: usize,
    },
}
