//! The step against PyTorch, in every variant and on both matmul paths.
#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod causality;
mod determinism;
mod faults;
mod fidelity;
mod golden;
mod loss_scale;
mod support;
