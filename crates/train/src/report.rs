//! The closing report of a run.

use crate::metrics::Times;
use crate::plan::Plan;
use crate::run::Record;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Share of a step's operations that the device does: forward pass and dx, which are two of three equal parts; dW is the CPU's.
const DEVICE_SHARE: f64 = 2.0 / 3.0;

/// What a run came to. Times, compiles and restarts are those of all its processes together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The run directory.
    pub run: PathBuf,
    /// The model's name.
    pub model: String,
    /// Its parameters.
    pub parameters: usize,
    /// Steps that the weights have behind them.
    pub steps: u64,
    /// Updates skipped for overflow.
    pub skipped: u64,
    /// Loss of the first step.
    pub first_loss: Option<f64>,
    /// Mean loss of the last steps, as many as a progress report covers.
    pub last_loss: Option<f64>,
    /// Last measurement on validation data.
    pub val_loss: Option<f64>,
    /// Seconds, from start to end of every process.
    pub seconds: f64,
    /// Mean times of a step.
    #[serde(flatten)]
    pub times: Times,
    /// Targets in a second of steps.
    pub tokens_per_second: f64,
    /// Operations of a step.
    pub flops_per_step: u64,
    /// The device.
    pub device: String,
    /// The chip that it is, or imitates.
    pub chip: String,
    /// TFLOP/s while the device was busy.
    pub device_tflops: f64,
    /// The chip's peak in TFLOP/s, where published.
    pub peak_tflops: Option<f64>,
    /// Programs compiled.
    pub compiles: u32,
    /// Device calls that failed and were tried again.
    pub retries: u64,
    /// Restarts by `exec()`.
    pub restarts: usize,
    /// Most memory that this process held, in MiB.
    pub peak_rss_mib: Option<u64>,
}

/// The losses that a report shows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Losses {
    pub(crate) last: Option<f64>,
    pub(crate) val: Option<f64>,
}

impl Report {
    pub(crate) fn new(plan: &Plan, record: &Record, device: &ane::DeviceInfo, steps: u64, losses: Losses) -> Report {
        let totals = record.totals();
        let times = totals.times.per(totals.steps);
        let flops = plan.flops_per_step();
        let per_second = |work: f64, ms: f64| if ms > 0.0 { work / (ms / 1e3) } else { 0.0 };
        Report {
            run: plan.run_dir.clone(),
            model: plan.model_name.clone(),
            parameters: plan.model.parameter_count(),
            steps,
            skipped: totals.skipped,
            first_loss: record.first_loss,
            last_loss: losses.last,
            val_loss: losses.val,
            seconds: record.seconds(),
            times,
            tokens_per_second: per_second(plan.tokens_per_step() as f64, times.ms),
            flops_per_step: flops,
            device: device.name.clone(),
            chip: plan.machine.chip.to_string(),
            device_tflops: per_second(flops as f64 * DEVICE_SHARE, times.device_ms) / 1e12,
            peak_tflops: plan.machine.chip.peak_tflops(),
            compiles: totals.compiles,
            retries: totals.retries,
            restarts: record.restarts(),
            peak_rss_mib: peak_rss_mib(),
        }
    }
}

/// Most memory that this process has held, in MiB, where the system says.
pub fn peak_rss_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.div_ceil(1024))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Times { ms, device_ms, cpu_ms, staging_ms, waiting_ms } = self.times;
        let share = |part: f64| if ms > 0.0 { 100.0 * part / ms } else { 0.0 };
        let skipped = if self.skipped > 0 { format!(", {} updates skipped for overflow", self.skipped) } else { String::new() };
        writeln!(f, "steps      {}{skipped}; {:.0} s in all, {:.0} tokens/s", self.steps, self.seconds, self.tokens_per_second)?;
        if let (Some(first), Some(last)) = (self.first_loss, self.last_loss) {
            let val = self.val_loss.map_or(String::new(), |v| format!("; validation {v:.3}, perplexity {:.2}", v.exp()));
            writeln!(f, "loss       {first:.3} at first, {last:.3} at last{val}")?;
        }
        writeln!(
            f,
            "step       {ms:.1} ms: device {device_ms:.1} ({:.0} %), cpu {cpu_ms:.1} ({:.0} %), staging {staging_ms:.1} ({:.0} %), waiting {waiting_ms:.1} ({:.0} %)",
            share(device_ms),
            share(cpu_ms),
            share(staging_ms),
            share(waiting_ms)
        )?;
        let gflop = self.flops_per_step as f64 / 1e9;
        write!(f, "arithmetic {gflop:.1} GFLOP a step; {:.3} TFLOP/s reached on the device", self.device_tflops)?;
        if let Some(peak) = self.peak_tflops.filter(|&peak| peak > 0.0) {
            let of = if self.device == "emulator" { "of the imitated" } else { "of the" };
            write!(f, ", {:.2} % {of} {}'s peak of {peak:.1}", 100.0 * self.device_tflops / peak, self.chip)?;
        }
        writeln!(f)?;
        write!(f, "device     {} ({}); {} compiles, {} restarts", self.device, self.chip, self.compiles, self.restarts)?;
        if self.retries > 0 {
            write!(f, ", {} calls tried again", self.retries)?;
        }
        if let Some(rss) = self.peak_rss_mib {
            write!(f, "; at most {rss} MiB of memory")?;
        }
        writeln!(f)?;
        write!(f, "saved in   {}", self.run.display())
    }
}
