//! `run.json`: what a run was made on and what it took, process by process. Everything that is no function of the plan.

use crate::metrics::Times;
use serde::{Deserialize, Serialize};
use std::path::Path;
use store::{RealFs, StoreError};

/// The file.
pub(crate) const NAME: &str = "run.json";

/// A run's record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of the program that started the run.
    pub program: String,
    /// The model's name.
    pub model: String,
    /// Its parameters.
    pub parameters: usize,
    /// Loss of the first step.
    pub first_loss: Option<f64>,
    /// Every process that worked on the run, in order.
    pub processes: Vec<Process>,
}

/// One process of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// The machine's name.
    pub host: String,
    /// Operating system and CPU architecture.
    pub system: String,
    /// Version of the program.
    pub program: String,
    /// The device.
    pub device: String,
    /// How the device computes.
    pub arithmetic: String,
    /// How the CPU multiplies.
    pub matmul: String,
    /// CPU threads.
    pub threads: usize,
    /// When it started, in seconds since 1970.
    pub started: u64,
    /// Whether it was started by a restart.
    pub restarted: bool,
    /// The step it went on from.
    pub from_step: u64,
    /// The last step it finished, as of the last save.
    pub to_step: u64,
    /// Steps it finished, those that a later process did again included.
    pub steps: u64,
    /// Of those, updates skipped for overflow.
    pub skipped: u64,
    /// Seconds from its start, as of the last save.
    pub seconds: f64,
    /// Programs compiled.
    pub compiles: u32,
    /// Calls that failed and were tried again.
    pub retries: u64,
    /// Times of its steps, summed.
    pub times: Times,
    /// How it ended; empty while it runs, or when it was killed.
    pub ended: String,
}

impl Record {
    /// Reads a run's record; a run without one gets a new one.
    pub(crate) fn read(run_dir: &Path) -> Result<Record, StoreError> {
        let path = run_dir.join(NAME);
        if !path.is_file() {
            return Ok(Record::default());
        }
        serde_json::from_str(&store::read_text(&RealFs, &path)?)
            .map_err(|e| StoreError::Bad { path, problem: format!("does not parse: {e}; remove it to go on without the run's history") })
    }

    /// As text.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        // Numbers, texts and lists: there is nothing that JSON cannot hold.
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }

    /// Seconds of all processes together.
    pub fn seconds(&self) -> f64 {
        self.processes.iter().map(|p| p.seconds).sum()
    }

    /// Seconds of the processes that the current one, the last, was restarted from.
    pub(crate) fn seconds_before(&self) -> f64 {
        let chain = self.processes.iter().rev();
        chain.clone().skip(1).zip(chain.take_while(|p| p.restarted)).map(|(before, _)| before.seconds).sum()
    }

    /// Sums over all processes.
    pub(crate) fn totals(&self) -> Process {
        self.processes.iter().fold(Process::default(), |mut sum, p| {
            sum.steps += p.steps;
            sum.skipped += p.skipped;
            sum.compiles += p.compiles;
            sum.retries += p.retries;
            sum.times.add(&p.times);
            sum
        })
    }

    /// Restarts by `exec()`.
    pub fn restarts(&self) -> usize {
        self.processes.iter().filter(|p| p.restarted).count()
    }
}

/// Seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// The machine's name.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restarted_process_counts_the_time_of_those_before_it() {
        let process = |seconds, restarted| Process { seconds, restarted, ..Process::default() };
        let mut record = Record { processes: vec![process(1.0, false), process(2.0, false)], ..Record::default() };
        assert_eq!(record.seconds_before(), 0.0);
        record.processes.extend([process(4.0, true), process(8.0, true)]);
        assert_eq!(record.seconds_before(), 6.0);
        assert_eq!(record.restarts(), 2);
        assert_eq!(record.seconds(), 15.0);
    }
}
