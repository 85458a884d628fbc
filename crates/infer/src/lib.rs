//! A model's forward pass on a device, and what is made of it: generation and evaluation.
//!
//! [`Network`] is a model bound to a device: programs compiled, surfaces allocated, calls bound. Training builds its backward pass on
//! the same network. [`Generator`] continues text with it, [`evaluate`] measures its loss.

mod assemble;
mod attention;
mod error;
mod evaluate;
mod generate;
mod head;
mod machine;
mod network;
mod weights;

pub use assemble::{Assembly, Unit};
pub use attention::{Attention, gather_sequences, scatter_sequences};
pub use error::InferError;
pub use evaluate::{Loss, evaluate};
pub use generate::{Generator, Sampling};
pub use head::{Head, Logits, Slice};
pub use machine::Machine;
pub use network::{FeedForward, Layer, Network, Use};
pub use weights::{WeightSlot, place};
