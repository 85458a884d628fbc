//! Restart by `exec()`: the same process, a fresh allowance of compiles.
//!
//! A process that has used up its compiles, or whose device hangs, cannot go on; a new program image in its place can. The whole
//! resolved plan goes with it in a state file, so that nothing depends on the flags of the first start. Two restarts in a row
//! without a finished step are enough to know that the third would not help.

use crate::plan::Plan;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use store::{FileSystem, StoreError};

/// The state file in the run directory.
const STATE: &str = "restart.json";
/// Version of the state file.
const FORMAT: u32 = 1;
/// Restarts in a row without a finished step.
const MAX_FRUITLESS: u32 = 2;

/// What the next process has to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    format: u32,
    /// Restarts of the run so far, this one included.
    pub number: u32,
    /// How many of the last ones ended without a finished step.
    pub fruitless: u32,
    /// Why.
    pub reason: String,
    /// The run.
    pub plan: Plan,
}

/// Restarting would not help.
#[derive(Debug, thiserror::Error)]
#[error("{restarts} restarts did not finish a single step, so another would not help; the last error was:\n{reason}")]
pub struct RestartStorm {
    /// Restarts without a finished step.
    pub restarts: u32,
    /// What made them necessary.
    pub reason: String,
}

impl Restart {
    /// The restart that follows `previous` after a process that finished `steps` steps.
    ///
    /// # Errors
    /// When two restarts in a row have not finished a step.
    pub fn after(previous: Option<&Restart>, plan: &Plan, steps: u64, reason: String) -> Result<Restart, RestartStorm> {
        let before = previous.map_or(0, |p| p.fruitless);
        if steps == 0 && before >= MAX_FRUITLESS {
            return Err(RestartStorm { restarts: before, reason });
        }
        let mut plan = plan.clone();
        // `call@N` means the N-th call of the run; only `call@N+` is a fault of every process.
        plan.machine.faults.retain(|fault| fault.contains("+="));
        let fruitless = if steps == 0 { before + 1 } else { 0 };
        Ok(Restart { format: FORMAT, number: previous.map_or(0, |p| p.number) + 1, fruitless, reason, plan })
    }

    /// Writes the state file into the run directory and returns its path.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&self, fs: &dyn FileSystem) -> Result<PathBuf, StoreError> {
        let path = self.plan.run_dir.join(STATE);
        let text = serde_json::to_vec_pretty(self).map_err(|e| StoreError::Input(format!("{}: {e}", path.display())))?;
        store::write_atomic(fs, &path, &text)?;
        Ok(path)
    }

    /// Removes the state file: this process has taken the run over, and from here on `--resume` does.
    pub(crate) fn taken_over(fs: &dyn FileSystem, run_dir: &Path) {
        // One that cannot be removed is overwritten by the next restart, and read by none.
        let _ = fs.remove_file(&run_dir.join(STATE));
    }

    /// Reads a state file.
    ///
    /// # Errors
    /// The system's; a file of another form.
    pub fn read(fs: &dyn FileSystem, path: &Path) -> Result<Restart, StoreError> {
        let bad = |problem: String| StoreError::Bad { path: path.to_path_buf(), problem };
        let restart: Restart = serde_json::from_str(&store::read_text(fs, path)?).map_err(|e| bad(format!("does not parse: {e}")))?;
        if restart.format != FORMAT {
            return Err(bad(format!("has format {}, this program reads {FORMAT}", restart.format)));
        }
        Ok(restart)
    }
}

/// Replaces this process by `program` with `args`. Returns only if that failed.
///
/// # Errors
/// The system's.
#[cfg(unix)]
pub fn exec(program: &Path, args: &[std::ffi::OsString]) -> io::Result<Infallible> {
    use std::os::unix::process::CommandExt;
    Err(std::process::Command::new(program).args(args).exec())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::plan::tests::tiny;

    #[test]
    fn stops_after_two_restarts_without_a_step() {
        let plan = tiny();
        let first = Restart::after(None, &plan, 0, "no".into()).unwrap();
        let second = Restart::after(Some(&first), &plan, 0, "no".into()).unwrap();
        assert_eq!((second.number, second.fruitless), (2, 2));
        let storm = Restart::after(Some(&second), &plan, 0, "the compiler's words".into()).unwrap_err().to_string();
        assert!(storm.contains("2 restarts") && storm.contains("the compiler's words"), "{storm}");
    }

    #[test]
    fn a_finished_step_starts_the_count_anew() {
        let plan = tiny();
        let mut last = None;
        for n in 1..10 {
            let next = Restart::after(last.as_ref(), &plan, 1, "budget".into()).unwrap();
            assert_eq!((next.number, next.fruitless), (n, 0));
            last = Some(next);
        }
    }

    #[test]
    fn the_state_file_holds_the_whole_plan_and_faults_of_every_process() {
        let dir = tempfile::tempdir().unwrap();
        let mut plan = tiny();
        plan.run_dir = dir.path().to_path_buf();
        plan.machine.faults = vec!["evaluate@3=hang".into(), "compile@1+=fail".into()];
        let restart = Restart::after(None, &plan, 4, "hung".into()).unwrap();
        let back = Restart::read(&store::RealFs, &restart.write(&store::RealFs).unwrap()).unwrap();
        assert_eq!(back, restart);
        assert_eq!(back.plan.machine.faults, ["compile@1+=fail"]);
        plan.machine.faults = back.plan.machine.faults.clone();
        assert_eq!(back.plan, plan);
    }
}
