//! Safetensors files: a writer of ours, whose bytes depend on nothing but what is written, and a reader that takes its
//! header through the `safetensors` crate and its data by position, so that a file is never in memory twice.

mod read;
mod write;

pub use read::{Reader, Weights};
pub(crate) use write::write_hashed;
pub use write::{Dtype, Tensor, encoded_len, write};
