//! What `--resume` means: which run, and from which of its checkpoints.

use anyhow::{Result, bail, ensure};
use std::path::{Path, PathBuf};
use train::run::StartAt;

/// A run to go on with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) run_dir: PathBuf,
    pub(crate) from: StartAt,
}

/// Finds the run: `auto` is the one in `run`, else the newest under runs/; anything else is a run's directory or a checkpoint's.
pub(crate) fn target(resume: &str, run: Option<&Path>) -> Result<Target> {
    if resume == "auto" {
        let run_dir = match run {
            Some(dir) => dir.to_path_buf(),
            None => newest(Path::new("runs"))?,
        };
        return Ok(Target { run_dir, from: StartAt::Latest });
    }
    let path = Path::new(resume);
    ensure!(path.is_dir(), "--resume {resume}: there is no such directory");
    let target = match checkpoint(path) {
        Some((run_dir, step)) => Target { run_dir, from: StartAt::Step(step) },
        None => {
            ensure!(is_run(path), "--resume {resume}: neither a run (it has no config.toml) nor a checkpoint of one");
            Target { run_dir: path.into(), from: StartAt::Latest }
        }
    };
    if let Some(run) = run
        && std::path::absolute(run)? != std::path::absolute(&target.run_dir)?
    {
        bail!("--resume {resume} is not in --run {}: give one of the two", run.display());
    }
    Ok(target)
}

/// Whether a directory holds a run.
pub(crate) fn is_run(dir: &Path) -> bool {
    dir.join("config.toml").is_file()
}

/// `RUN/checkpoints/step-N` as (RUN, N).
fn checkpoint(path: &Path) -> Option<(PathBuf, u64)> {
    let path = std::path::absolute(path).ok()?;
    let step = path.file_name()?.to_str()?.strip_prefix("step-")?.parse().ok()?;
    let above = path.parent().filter(|p| p.file_name().is_some_and(|n| n == "checkpoints"))?;
    let run = above.parent()?;
    (store::checkpoint::path(run, step) == path).then(|| (run.to_path_buf(), step))
}

/// The run that was written to last.
fn newest(runs: &Path) -> Result<PathBuf> {
    let written = |dir: &Path| std::fs::metadata(dir.join("run.json")).and_then(|m| m.modified()).ok();
    let entries = std::fs::read_dir(runs).into_iter().flatten().flatten().map(|entry| entry.path());
    let newest = entries.filter(|dir| is_run(dir)).filter_map(|dir| Some((written(&dir)?, dir))).max();
    match newest {
        Some((_, dir)) => Ok(dir),
        None => bail!("--resume: there is no run under runs/; name one with --run DIR or --resume DIR"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_path_is_a_run_or_one_of_its_checkpoints() {
        let home = tempfile::tempdir().unwrap();
        let run = home.path().join("a");
        let step = run.join("checkpoints/step-00000012");
        std::fs::create_dir_all(&step).unwrap();
        let of = |path: &Path, run: Option<&Path>| target(path.to_str().unwrap(), run);
        assert_eq!(of(&step, None).unwrap(), Target { run_dir: run.clone(), from: StartAt::Step(12) });
        assert!(of(&run, None).unwrap_err().to_string().contains("neither a run"));
        std::fs::write(run.join("config.toml"), "").unwrap();
        assert_eq!(of(&run, None).unwrap(), Target { run_dir: run.clone(), from: StartAt::Latest });
        assert!(of(&step, Some(home.path())).unwrap_err().to_string().contains("is not in --run"));
        assert!(of(&home.path().join("none"), None).unwrap_err().to_string().contains("no such directory"));
    }

    #[test]
    fn the_newest_run_is_the_one_written_last() {
        let home = tempfile::tempdir().unwrap();
        assert!(newest(home.path()).unwrap_err().to_string().contains("no run"));
        for name in ["b", "a"] {
            std::fs::create_dir(home.path().join(name)).unwrap();
            std::fs::write(home.path().join(name).join("config.toml"), "").unwrap();
            std::fs::write(home.path().join(name).join("run.json"), "").unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(newest(home.path()).unwrap(), home.path().join("a"));
    }
}
