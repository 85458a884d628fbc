//! Integration tests of the whole path from text to batches.
//!
//! Some compare with real files: those of the directory `ANNEAL_CORPUS`, or `../shared/corpus` beside the workspace. Where it is absent
//! they say so and pass.
#![allow(clippy::unwrap_used)]

mod corpus;
mod data;
mod fuzz;
mod llama2c;
mod trained;

use std::path::PathBuf;

/// A real file, or nothing and a word about it.
fn real(name: &str) -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let path = std::env::var_os("ANNEAL_CORPUS").map_or_else(|| PathBuf::from(beside), PathBuf::from).join(name);
    if path.is_file() {
        return Some(path);
    }
    eprintln!("skipped: no {}", path.display());
    None
}
