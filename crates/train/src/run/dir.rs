//! The run directory: who may write to it, and the files in it that are not checkpoints.
//!
//! ```text
//! RUN/config.toml     the resolved configuration; `train -c` reads it again
//! RUN/tokenizer.json  the tokenizer of the run
//! RUN/run.json        what the run was made on, process by process (Record)
//! RUN/metrics.jsonl   one object a step
//! RUN/log.txt         what was printed, with the time
//! RUN/samples/        text samples, by step
//! RUN/restart.json    the plan, while a restart is under way
//! RUN/discarded/      checkpoints after the one that a run was resumed from
//! ```
//! The rest is `store`'s: `.lock`, `latest`, `checkpoints/`, `corrupt/`.

use std::io::Write;
use std::path::{Path, PathBuf};
use store::{FileSystem, FileWrite, RealFs, RunLock, StoreError};

/// A locked run directory.
pub(crate) struct RunDir {
    path: PathBuf,
    log: Box<dyn FileWrite>,
    _lock: RunLock,
}

/// A run is there already.
#[derive(Debug, thiserror::Error)]
#[error("{} holds a run already ({checkpoints} checkpoints): add --resume to go on with it, or choose another --run directory", dir.display())]
pub struct RunExists {
    dir: PathBuf,
    checkpoints: usize,
}

/// Refuses a directory that holds a run, so that a new one never mixes with an old one.
///
/// # Errors
/// If it does; the system's.
pub fn check_fresh(dir: &Path) -> Result<(), crate::RunError> {
    let checkpoints = store::list_steps(&RealFs, dir)?.len();
    if checkpoints > 0 || dir.join("metrics.jsonl").exists() {
        return Err(RunExists { dir: dir.into(), checkpoints }.into());
    }
    Ok(())
}

/// Creates the first free `runs/NAME-001`, `-002`, … and returns its path.
///
/// # Errors
/// The system's.
pub fn fresh_dir(name: &str) -> Result<PathBuf, StoreError> {
    let runs = Path::new("runs");
    store::create_dirs(&RealFs, runs)?;
    for n in 1u32.. {
        let dir = runs.join(format!("{name}-{n:03}"));
        match std::fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(StoreError::Io { action: "create", path: dir, source }),
        }
    }
    Err(StoreError::Input("runs/ is full".into()))
}

/// The tokenizer that a run keeps, if it has one.
pub fn kept_tokenizer(run_dir: &Path) -> Option<PathBuf> {
    Some(run_dir.join("tokenizer.json")).filter(|path| path.is_file())
}

impl RunDir {
    /// Locks the directory, creating it if need be, and clears what a crash left half-done.
    pub(crate) fn open(path: &Path) -> Result<RunDir, StoreError> {
        let lock = RunLock::acquire(&RealFs, path)?;
        store::sweep(&RealFs, path)?;
        let log = path.join("log.txt");
        let log = RealFs.append(&log).map_err(|source| StoreError::Io { action: "open", path: log, source })?;
        Ok(RunDir { path: path.into(), log, _lock: lock })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the metrics are.
    pub(crate) fn metrics(&self) -> PathBuf {
        self.path.join("metrics.jsonl")
    }

    /// Replaces a small file.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.path.join(name);
        if let Some(dir) = path.parent() {
            store::create_dirs(&RealFs, dir)?;
        }
        store::write_atomic(&RealFs, &path, bytes)
    }

    /// Appends lines to the log. A log that cannot be written is no reason to stop training.
    pub(crate) fn log(&mut self, text: &str) {
        let seconds = super::record::unix_seconds();
        let lines: String = text.lines().map(|line| format!("{seconds} {line}\n")).collect();
        let _ = self.log.write_all(lines.as_bytes());
    }
}
