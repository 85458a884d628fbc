//! The checkpoints of a run directory together: the lock, what is there, what is kept, what is moved aside, what is swept.

use crate::checkpoint::{Verified, path, verify};
use crate::error::{Context, Result, StoreError};
use crate::files::{TMP, TRASH, create_dirs, read_text, remove_tree};
use crate::fs::{FileSystem, Kind, LockGuard};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Prefix of a checkpoint that another of the same step is about to replace.
pub(crate) const OLD: &str = ".old-";
/// The file that names the newest checkpoint.
pub(crate) const LATEST: &str = "latest";

pub(crate) fn checkpoints(run_dir: &Path) -> PathBuf {
    run_dir.join("checkpoints")
}

pub(crate) fn step_name(step: u64) -> String {
    format!("step-{step:08}")
}

/// The step of a checkpoint's name; only the exact form that [`step_name`] gives counts.
pub(crate) fn step_of(name: &str) -> Option<u64> {
    let step = name.strip_prefix("step-")?.parse().ok()?;
    (step_name(step) == name).then_some(step)
}

/// Holds a run directory for one trainer; the system releases it when the process ends, however it ends.
pub struct RunLock {
    _guard: LockGuard,
}

impl RunLock {
    /// Takes `RUN/.lock`, creating the directory if need be.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another process holds it, with what that process wrote about itself.
    pub fn acquire(fs: &dyn FileSystem, run_dir: &Path) -> std::result::Result<RunLock, StoreError> {
        create_dirs(fs, run_dir)?;
        let path = run_dir.join(".lock");
        match fs.lock(&path, &format!("process {}", std::process::id())).doing("lock", &path)? {
            Some(guard) => Ok(RunLock { _guard: guard }),
            None => {
                let holder = read_text(fs, &path).ok().filter(|t| !t.trim().is_empty());
                Err(StoreError::Locked { path, holder: holder.map_or("another process".into(), |t| t.trim().into()) })
            }
        }
    }
}

/// A checkpoint that was passed over.
#[derive(Debug)]
pub struct Skipped {
    /// Its directory.
    pub dir: PathBuf,
    /// Why it was not taken.
    pub reason: StoreError,
}

/// What [`find_latest`] found.
#[derive(Debug)]
pub struct Found {
    /// The newest checkpoint that verifies.
    pub checkpoint: Option<Verified>,
    /// Newer ones that do not, newest first.
    pub skipped: Vec<Skipped>,
}

/// The steps that have a checkpoint directory, ascending; none is verified.
///
/// # Errors
/// The system's; a run without checkpoints is no error.
pub fn list_steps(fs: &dyn FileSystem, run_dir: &Path) -> std::result::Result<Vec<u64>, StoreError> {
    let all = checkpoints(run_dir);
    if fs.kind(&all).doing("look at", &all)?.is_none() {
        return Ok(Vec::new());
    }
    let entries = fs.list(&all).doing("list", &all)?;
    let mut steps: Vec<u64> = entries.iter().filter(|e| e.kind == Kind::Dir).filter_map(|e| step_of(&e.name)).collect();
    steps.sort_unstable();
    Ok(steps)
}

/// Verifies checkpoints from the newest on and returns the first that is whole. Changes nothing; a trainer calls
/// [`sweep`] first.
///
/// # Errors
/// If the directory cannot be listed. Damage is not an error here: it is what `skipped` is for.
pub fn find_latest(fs: &dyn FileSystem, run_dir: &Path) -> std::result::Result<Found, StoreError> {
    let mut skipped = Vec::new();
    for step in list_steps(fs, run_dir)?.into_iter().rev() {
        let dir = path(run_dir, step);
        match verify(fs, &dir) {
            Ok(checkpoint) => return Ok(Found { checkpoint: Some(checkpoint), skipped }),
            Err(reason) => skipped.push(Skipped { dir, reason }),
        }
    }
    Ok(Found { checkpoint: None, skipped })
}

/// Moves checkpoints that did not verify to `RUN/corrupt/`, where nothing looks for them and nothing is deleted. Returns
/// where they are now.
///
/// # Errors
/// The system's.
pub fn set_aside(fs: &dyn FileSystem, run_dir: &Path, skipped: &[Skipped]) -> std::result::Result<Vec<PathBuf>, StoreError> {
    let (corrupt, all) = (run_dir.join("corrupt"), checkpoints(run_dir));
    let mut moved = Vec::new();
    for one in skipped {
        create_dirs(fs, &corrupt)?;
        let name = one.dir.file_name().and_then(|n| n.to_str()).ok_or_else(|| StoreError::bad(&one.dir, "is not a checkpoint"))?;
        let mut to = corrupt.join(name);
        let mut again = 1;
        while fs.kind(&to).doing("look at", &to)?.is_some() {
            again += 1;
            to = corrupt.join(format!("{name}.{again}"));
        }
        fs.rename(&one.dir, &to).doing("move aside", &one.dir)?;
        moved.push(to);
    }
    if !moved.is_empty() {
        fs.sync_dir(&corrupt).doing("sync", &corrupt)?;
        fs.sync_dir(&all).doing("sync", &all)?;
    }
    Ok(moved)
}

/// Which checkpoints are kept.
#[derive(Clone, Debug, Default)]
pub struct Retention {
    /// The newest so many; at least 1.
    pub keep_last: usize,
    /// Also every step that is a multiple of this.
    pub keep_every: Option<u64>,
    /// Also these: the best so far, the one being resumed from.
    pub keep: Vec<u64>,
}

/// Removes the checkpoints that `retention` does not keep, oldest first, after the newest has verified. Returns their steps.
///
/// # Errors
/// If the newest does not verify nothing is removed. The system's.
pub fn prune(fs: &dyn FileSystem, run_dir: &Path, retention: &Retention) -> std::result::Result<Vec<u64>, StoreError> {
    let steps = list_steps(fs, run_dir)?;
    let Some(newest) = steps.last() else { return Ok(Vec::new()) };
    let last = steps.len().saturating_sub(retention.keep_last.max(1));
    let keep: BTreeSet<u64> = steps[last..].iter().chain(&retention.keep).copied().collect();
    let every = |step: u64| retention.keep_every.is_some_and(|n| n > 0 && step.is_multiple_of(n));
    let gone: Vec<u64> = steps.iter().copied().filter(|s| !keep.contains(s) && !every(*s)).collect();
    if gone.is_empty() {
        return Ok(gone);
    }
    verify(fs, &path(run_dir, *newest))?;
    let all = checkpoints(run_dir);
    let trash = |step: u64| all.join(format!("{TRASH}{}", step_name(step)));
    for step in &gone {
        let (from, to) = (path(run_dir, *step), trash(*step));
        if let Some(kind) = fs.kind(&to).doing("look at", &to)? {
            remove_tree(fs, &to, kind)?;
        }
        fs.rename(&from, &to).doing("discard", &from)?;
    }
    // Durable before any file goes: a checkpoint is never seen with files missing.
    fs.sync_dir(&all).doing("sync", &all)?;
    for step in &gone {
        remove_tree(fs, &trash(*step), Kind::Dir)?;
    }
    Ok(gone)
}

/// Clears what a crash left: unfinished `.tmp-` and `.trash-` entries are removed, and a checkpoint that was being replaced
/// is put back if its replacement did not arrive. Called at start, under the [`RunLock`], before [`find_latest`].
///
/// # Errors
/// The system's.
pub fn sweep(fs: &dyn FileSystem, run_dir: &Path) -> std::result::Result<(), StoreError> {
    for dir in [run_dir.to_path_buf(), checkpoints(run_dir)] {
        if fs.kind(&dir).doing("look at", &dir)? == Some(Kind::Dir) {
            sweep_dir(fs, &dir)?;
        }
    }
    Ok(())
}

fn sweep_dir(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let entries = fs.list(dir).doing("list", dir)?;
    let old = |name: &str| name.strip_prefix(OLD).filter(|n| step_of(n).is_some()).map(|n| dir.join(n));
    let stale = |name: &str| name.starts_with(TMP) || name.starts_with(TRASH);
    if !entries.iter().any(|e| stale(&e.name) || old(&e.name).is_some()) {
        return Ok(());
    }
    // The names of now become durable before any file goes; and again when all is done.
    fs.sync_dir(dir).doing("sync", dir)?;
    for entry in entries {
        let at = dir.join(&entry.name);
        match old(&entry.name) {
            Some(place) if fs.kind(&place).doing("look at", &place)?.is_none() => fs.rename(&at, &place).doing("put back", &place)?,
            Some(_) => remove_tree(fs, &at, entry.kind)?,
            None if stale(&entry.name) => remove_tree(fs, &at, entry.kind)?,
            None => {}
        }
    }
    fs.sync_dir(dir).doing("sync", dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_name_is_a_step() {
        assert_eq!(step_of("step-00000100"), Some(100));
        assert_eq!(step_of("step-123456789"), Some(123_456_789));
        for name in ["step-100", "step-+0000100", "step-000000100", "step-", "step-0000010x", ".tmp-step-00000100", "step-00000100.2"] {
            assert_eq!(step_of(name), None, "{name}");
        }
    }
}
