//! What can be wrong with a tokenizer.

/// Why a tokenizer cannot be read, trained or used.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// The file cannot be read.
    #[error("cannot read the tokenizer {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file looks like a `tokenizer.json` and is none.
    #[error("{file} is not a usable tokenizer.json: {reason}")]
    Json {
        /// The file.
        file: String,
        /// What the parser says.
        reason: String,
    },
    /// The file is no `tokenizer.json` and no sound `tokenizer.bin` of llama2.c either.
    #[error("{file} is neither a tokenizer.json nor a llama2.c tokenizer.bin (byte {offset}: {reason})")]
    Llama2c {
        /// The file.
        file: String,
        /// Where in the file, in bytes from its start.
        offset: usize,
        /// What is wrong there.
        reason: String,
    },
    /// A vocabulary too small to hold every byte.
    #[error("a byte-level tokenizer needs at least {least} tokens and {asked} were asked for; use a vocabulary size of {least} or more")]
    VocabTooSmall {
        /// The size asked for.
        asked: usize,
        /// The least size.
        least: usize,
    },
    /// Training failed.
    #[error("cannot train a tokenizer: {0}")]
    Train(String),
    /// The tokenizer refuses a text: its `tokenizer.json` has no token for some part of it.
    #[error("the tokenizer cannot encode a text: {0}")]
    Encode(String),
    /// The tokenizer refuses some tokens.
    #[error("the tokenizer cannot decode: {0}")]
    Decode(String),
}
