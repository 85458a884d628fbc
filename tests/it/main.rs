//! The program from outside: command lines in, exit codes, output and run directories out.
//!
//! One test binary. Models are tiny, so that the whole takes a minute or two; what takes longer, or needs a quiet machine, is
//! `#[ignore]`d and said so in docs/testing.md.
#![allow(clippy::unwrap_used)]

mod bad_input;
mod commands;
mod determinism;
mod lab;
mod mil;
mod mil_warnings;
mod restart;
mod storybook;
mod upstream;
