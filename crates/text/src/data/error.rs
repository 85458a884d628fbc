//! What can be wrong with training data.

use crate::TokenizerError;

/// Why a file cannot serve as data.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The file cannot be read.
    #[error("cannot read the data {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// There is nothing in it.
    #[error("{file} holds no text; give a file with some")]
    Empty {
        /// The file.
        file: String,
    },
    /// A text file that is not UTF-8.
    #[error("{file} is not UTF-8 at byte {offset}; convert it, or give token files the ending .bin")]
    NotUtf8 {
        /// The file.
        file: String,
        /// The first byte that is wrong, from the start of the file.
        offset: usize,
    },
    /// A line of a JSONL file that is no object with a `text`.
    #[error("{file}:{line}:{column}: {reason}; every line must be an object like {{\"text\": \"...\"}}")]
    Json {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
        /// What is wrong there.
        reason: String,
    },
    /// A token file whose length is no multiple of two.
    #[error("{file} has an odd number of bytes ({bytes}); token files hold little-endian u16 numbers, so it may be cut off")]
    OddLength {
        /// The file.
        file: String,
        /// Its length.
        bytes: usize,
    },
    /// A token outside the vocabulary.
    #[error("{file}: token {index} is {token}, but the vocabulary has {vocab_size}; use the tokenizer the file was made with")]
    TokenOutOfRange {
        /// The file.
        file: String,
        /// Which token, from 0; at byte `2 * index` of a token file.
        index: usize,
        /// Its value.
        token: u32,
        /// Tokens in the vocabulary.
        vocab_size: usize,
    },
    /// Too little for one training sequence.
    #[error("{source_name} holds {have} tokens and one sequence needs {need}; give more data or a smaller --max-seq-length")]
    TooShort {
        /// Where the tokens are from.
        source_name: String,
        /// Tokens there are.
        have: usize,
        /// Tokens needed: the sequence length and one more.
        need: usize,
    },
    /// A sequence length of zero.
    #[error("a sequence must have at least one token")]
    NoSequence,
    /// The tokenizer refuses a document.
    #[error("{file}: {source}")]
    Tokenizer {
        /// The file.
        file: String,
        /// Its reason.
        source: TokenizerError,
    },
}
