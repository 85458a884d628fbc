//! The program `anneal`: flags in, exit code out. What it does is in `cmd`, one file a command.
#![forbid(unsafe_code)]

mod args;
mod cmd;
mod console;
mod failure;
mod models;
mod out;
mod resolve;
mod resume;

use args::{BenchCommand, Cli, Command};
use clap::Parser;
use console::Console;
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Train(args) => cmd::train::run(*args),
        Command::Generate(args) => cmd::generate::run(args),
        Command::Eval(args) => cmd::eval::run(args),
        Command::Doctor(args) => cmd::doctor::run(args),
        Command::Import(args) => cmd::import::run(args),
        Command::Export(args) => cmd::export::run(args),
        Command::Bench(BenchCommand::Step(args)) => cmd::bench::step(args),
        Command::Mil(command) => cmd::mil::run(command),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            Console::default().say(&format!("error: {failure}"));
            ExitCode::from(failure.code)
        }
    }
}
