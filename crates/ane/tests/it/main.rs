//! The emulator against an obvious evaluator, and its habits.
#![allow(clippy::unwrap_used, missing_docs)]

mod coverage;
mod fidelity;
mod habits;
mod numbers;
mod random;
mod reference;
mod rig;
mod silero;
mod training;
