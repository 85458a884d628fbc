//! The machine that flags ask for: which device and why, and the making of it.

use super::{ChipChoice, CompileBudget, DeviceChoice, MatmulChoice};
use ane::Device;
use ane::emulator::{Emulator, EmulatorOptions};
use ane::fault::{Fault, Faulty};
use ane::null::Null;
use anyhow::{Result, bail};
use clap::Args;
use cpu::Pool;
use infer::Machine;
use std::sync::Arc;
use train::plan::{DeviceKind, MachinePlan};

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct MachineArgs {
    /// What runs the programs.
    #[arg(long, value_enum, default_value_t, help_heading = "Device")]
    pub(crate) device: DeviceChoice,
    /// The chip to imitate.
    #[arg(long, value_enum, default_value_t, help_heading = "Device")]
    pub(crate) chip: ChipChoice,
    /// How the CPU multiplies matrices.
    #[arg(long, value_enum, default_value_t, help_heading = "Device")]
    pub(crate) matmul: MatmulChoice,
    /// Compiles that a process has, or `none`.
    #[arg(long, value_name = "N|none", default_value_t, help_heading = "Device")]
    pub(crate) compile_budget: CompileBudget,
    /// CPU threads; 0 is one for each core.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Device")]
    pub(crate) threads: usize,
}

impl MachineArgs {
    /// The machine, with the reason for its device.
    pub(crate) fn plan(&self) -> Result<(MachinePlan, &'static str)> {
        let (device, why) = match self.device {
            DeviceChoice::Auto => (DeviceKind::Emulator, "this version has no Apple back end, so programs run on the CPU"),
            DeviceChoice::Emulator => (DeviceKind::Emulator, "as asked for"),
            DeviceChoice::Null => (DeviceKind::Null, "as asked for; it computes nothing"),
            DeviceChoice::Ane => {
                bail!(
                    "--device ane: the Apple back end is not built into this version; use --device emulator, which runs the same programs"
                )
            }
        };
        let path = cpu::matmul::Choice::from(self.matmul).resolve()?;
        Ok((
            MachinePlan {
                device,
                chip: self.chip.into(),
                matmul: path.into(),
                compile_budget: self.compile_budget.0,
                threads: self.threads,
                faults: Vec::new(),
            },
            why,
        ))
    }

    /// The machine itself, for a command that computes; only `bench` takes the null device.
    pub(crate) fn build(&self) -> Result<Machine> {
        if self.device == DeviceChoice::Null {
            bail!("--device null computes nothing: only `bench` takes it");
        }
        build(&self.plan()?.0)
    }
}

/// Makes the machine of a plan.
pub(crate) fn build(plan: &MachinePlan) -> Result<Machine> {
    let pool = Arc::new(Pool::new(plan.threads)?);
    let (chip, path) = (plan.chip.chip(), plan.matmul.path());
    let device: Arc<dyn Device> = match plan.device {
        DeviceKind::Emulator => {
            let options = EmulatorOptions { matmul: path, compile_limit: plan.compile_budget, ..EmulatorOptions::new(chip, pool.clone()) };
            Arc::new(Emulator::new(options))
        }
        DeviceKind::Null => Arc::new(Null::new(chip)),
    };
    let faults: Vec<Fault> = plan.faults.iter().map(|fault| fault.parse()).collect::<Result<_, _>>()?;
    let device = if faults.is_empty() { device } else { Arc::new(Faulty::new(device, faults)) };
    Ok(Machine { device, pool, path })
}
