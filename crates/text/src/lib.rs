//! Everything between text and token numbers: tokenizers ([`Tokenizer`]), the built-in corpus ([`corpus::Corpus`]) and the readers
//! that turn files into [`data::Tokens`] and those into [`data::Batches`].
//!
//! Every function here is pure in its arguments and in the bytes of the files it reads: the same seed, step and data give the same
//! batch on any machine and with any number of threads.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod data;
mod rng;
pub mod tokenizer;

pub use data::{Batch, Batches, DataError, Documents, Tokens};
pub use tokenizer::{Tokenizer, TokenizerError};
