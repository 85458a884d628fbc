//! A scratch directory with data, and runs of the program in it.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use text::corpus::Corpus;

/// The files of a checkpoint that are a function of (configuration, data, seed, step).
pub(crate) const PURE: [&str; 4] = ["model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"];

/// Flags of a model that trains a step in milliseconds.
pub(crate) const TINY: [&str; 12] = [
    "--model",
    "stories260k",
    "--n-layers",
    "2",
    "--max-seq-length",
    "64",
    "--batch-size",
    "2",
    "--learning-rate",
    "0.002",
    "--sample-every",
    "0",
];

/// A scratch directory.
pub(crate) struct Lab {
    dir: tempfile::TempDir,
}

impl Lab {
    /// With `data.txt`, some stories.
    pub(crate) fn new() -> Lab {
        let lab = Lab { dir: tempfile::tempdir().unwrap() };
        let stories: Vec<String> = (0..60).map(|n| Corpus::new(9).story(n)).collect();
        lab.write("data.txt", stories.join("\n").as_bytes());
        lab
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    /// The program, in this directory.
    pub(crate) fn anneal(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anneal"));
        command.current_dir(self.dir.path()).args(args).stdin(Stdio::null());
        command
    }

    /// `train` of the tiny model on `data.txt` into `run`.
    pub(crate) fn train(&self, run: &str, args: &[&str]) -> Command {
        let mut command = self.anneal(&["train", "--data", "data.txt", "--run", run]);
        command.args(TINY).args(args);
        command
    }

    /// `train --resume` of a run, on its own settings.
    pub(crate) fn resume(&self, run: &str, args: &[&str]) -> Command {
        let mut command = self.anneal(&["train", "--resume", run]);
        command.args(args);
        command
    }

    /// The rows of a run's metrics, without times, as text.
    pub(crate) fn metrics(&self, run: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(run).join("metrics.jsonl")).unwrap_or_default();
        text.lines()
            .map(|line| {
                let mut row: serde_json::Map<String, Value> = serde_json::from_str(line).unwrap();
                row.retain(|key, _| key != "ms" && !key.ends_with("_ms"));
                serde_json::to_string(&row).unwrap()
            })
            .collect()
    }

    pub(crate) fn checkpoint(&self, run: &str, step: u64) -> PathBuf {
        self.path(run).join(format!("checkpoints/step-{step:08}"))
    }

    /// The names of a run's checkpoints, oldest first.
    pub(crate) fn checkpoints(&self, run: &str) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.path(run).join("checkpoints"))
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// A run's record.
    pub(crate) fn record(&self, run: &str) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.path(run).join("run.json")).unwrap()).unwrap()
    }

    /// Asserts that two runs are the same in all that must not depend on how they were made.
    pub(crate) fn assert_same(&self, one: &str, other: &str, step: u64) {
        for name in PURE {
            let read =
                |run| std::fs::read(self.checkpoint(run, step).join(name)).unwrap_or_else(|e| panic!("{run}, step {step}, {name}: {e}"));
            assert!(read(one) == read(other), "{name} of step {step} differs between {one} and {other}");
        }
        let (a, b) = (self.metrics(one), self.metrics(other));
        assert_eq!(a.len(), step as usize, "{one} has a row for each step");
        assert_eq!(a, b, "metrics of {one} and {other}");
    }
}

/// Where the shared corpus is, if it is anywhere: `$ANNEAL_CORPUS`, or beside the repository.
pub(crate) fn corpus() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    let dir = std::env::var_os("ANNEAL_CORPUS").map_or(beside, PathBuf::from);
    if dir.is_dir() {
        return Some(dir);
    }
    eprintln!("skipped: no corpus at {} (set ANNEAL_CORPUS to have this tested)", dir.display());
    None
}

/// Runs to the end; asserts success.
pub(crate) fn ok(mut command: Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", stderr(&output));
    output
}

/// Runs to the end; asserts this exit code and returns what was written to stderr.
pub(crate) fn fails(mut command: Command, code: i32) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{command:?}\n{}", stderr(&output));
    stderr(&output)
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Starts and leaves running.
pub(crate) fn start(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Waits until a run has recorded so many steps.
pub(crate) fn wait_for_steps(lab: &Lab, run: &str, steps: usize) {
    let since = Instant::now();
    let rows = || std::fs::read(lab.path(run).join("metrics.jsonl")).map_or(0, |text| text.iter().filter(|&&b| b == b'\n').count());
    while rows() < steps {
        assert!(since.elapsed() < Duration::from_secs(60), "{run} has not made {steps} steps in a minute");
        std::thread::sleep(Duration::from_millis(2));
    }
}
