//! CPU math of a training step: matmul, norms, softmax, cross-entropy, RoPE, AdamW, fp16 rounding.
//!
//! Activations are channels first: `[D, T]`, row = channel, column = token. What a device reads or writes is fp16
//! ([`View`], [`ViewMut`]: rows with a stride); what the CPU keeps (residual stream, gradients, weights) is dense fp32.
//!
//! **Determinism.** A result never depends on the thread count: chunks are fixed, sums are combined in a fixed order,
//! and transcendental functions are one source for every instruction set, never contracted to fused multiply-adds.
//! Only the matmul has two arithmetics ([`matmul::Path`]), and a run names the one it uses.
//!
//! Shapes are the caller's contract: a function given slices that do not fit together panics and says which. Nothing here
//! sees user input.

pub mod adamw;
pub mod elementwise;
pub mod loss;
pub mod math;
pub mod matmul;
pub mod norm;
pub mod pool;
pub mod rope;
pub mod round;
mod simd;
pub mod softmax;
pub mod stats;
pub mod view;

pub use half::f16;
pub use pool::Pool;
pub use round::Finish;
pub use simd::dispatch;
pub use view::{View, ViewMut};
