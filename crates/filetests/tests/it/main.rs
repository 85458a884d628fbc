//! Every file under `files/`, and what they must cover together.
#![allow(clippy::unwrap_used)]

use ane::Device;
use ane::emulator::{Emulator, EmulatorOptions};
use cpu::Pool;
use filetests::{File, Outcome, Target, Test, run_file};
use mil::ops::OPS;
use mil::{Chip, LINTS};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rules that only a text of thousands of lines breaks; crates/mil tests them.
const TOO_LONG: [&str; 1] = ["program-size"];

/// Every file, by path.
fn files() -> Vec<PathBuf> {
    let list = |dir: &Path| std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect::<Vec<PathBuf>>();
    let families = list(&Path::new(env!("CARGO_MANIFEST_DIR")).join("files"));
    let mut found: Vec<PathBuf> = families.iter().flat_map(|dir| list(dir)).collect();
    found.sort();
    found
}

/// A device for the targets of this machine: emulators, of which each has a compile budget of its own.
fn device(target: &Target, pool: &Arc<Pool>) -> Option<Arc<dyn Device>> {
    let Target::Emulator(chip, arithmetic) = *target else { return None };
    let options = EmulatorOptions::new(chip.unwrap_or(Chip::H16), pool.clone());
    let options = EmulatorOptions { any_profile: chip.is_none(), arithmetic, ..options };
    Some(Arc::new(Emulator::new(options)))
}

#[test]
fn every_file_is_as_it_says() {
    let bless = std::env::var_os("ANNEAL_BLESS").is_some();
    let pool = Arc::new(Pool::new(1).unwrap());
    let (mut total, mut failed) = (Outcome::default(), Vec::new());
    for path in files() {
        match run_file(&path, &|target| device(target, &pool), bless) {
            Ok(outcome) => {
                total.met += outcome.met;
                total.skipped += outcome.skipped;
            }
            Err(e) => failed.push(format!("{}: {e}", path.display())),
        }
    }
    eprintln!("{} expectations met, {} runs skipped for want of a Neural Engine", total.met, total.skipped);
    assert!(failed.is_empty(), "{} files failed\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn every_op_that_the_emulator_runs_is_run() {
    let mut run = BTreeSet::new();
    for path in files() {
        let text = std::fs::read_to_string(&path).unwrap();
        if File::read(&text).is_ok_and(|f| f.tests.contains(&Test::Run)) {
            let program = mil::parse(&text).unwrap_or_else(|d| panic!("{}", d.render(&path.display().to_string(), &text)));
            run.extend(program.functions.iter().flat_map(|f| f.ops.iter().map(|(_, op)| op.kind)));
        }
    }
    let missing: Vec<&str> =
        OPS.iter().filter(|(kind, _)| kind.is_emulated() && !run.contains(kind)).map(|(kind, _)| kind.name()).collect();
    assert!(missing.is_empty(), "no file runs {missing:?}");
}

#[test]
fn every_rule_of_a_chip_is_broken() {
    let texts: Vec<String> = files().iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let read: Vec<File<'_>> = texts.iter().map(|text| File::read(text).unwrap()).collect();
    let expected: BTreeSet<&str> = read.iter().flat_map(File::codes).collect();
    let missing: Vec<&str> =
        LINTS.iter().map(|lint| lint.code).filter(|code| !expected.contains(code) && !TOO_LONG.contains(code)).collect();
    assert!(missing.is_empty(), "no file expects {missing:?}");
}
