//! `anneal mil`: MIL programs checked, run and explained.

mod blobs;
mod check;
mod cost;
mod emit;
mod fmt;
mod npy;
mod run;
mod source;

use crate::args::MilCommand;
use crate::failure::Outcome;
use std::io::{ErrorKind, Write};

pub(crate) fn run(command: MilCommand) -> Outcome {
    match command {
        MilCommand::Check(args) => check::run(&args),
        MilCommand::Fmt(args) => fmt::run(&args),
        MilCommand::Run(args) => run::run(&args),
        MilCommand::Cost(args) => cost::run(&args),
        MilCommand::Emit(args) => emit::run(&args),
        MilCommand::Blobs(args) => blobs::run(&args),
    }
}

/// Writes to stdout; a reader that has gone away, such as `head`, wants no more.
fn say(text: &str) -> std::io::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
