//! `anneal doctor`: what this machine is, which device would be used, and why.

use crate::args::DoctorArgs;
use crate::failure::Outcome;
use crate::out;
use serde::Serialize;

#[derive(Serialize)]
struct Report {
    version: &'static str,
    os: String,
    arch: &'static str,
    cpu: String,
    features: Vec<&'static str>,
    cores: usize,
    memory_mib: Option<u64>,
    neural_engine: &'static str,
    device: String,
    why: &'static str,
    matmul: String,
    compile_budget: Option<u32>,
    live_budget: Option<u32>,
}

pub(crate) fn run(args: DoctorArgs) -> Outcome {
    let (plan, why) = args.machine.plan()?;
    let machine = crate::args::build(&plan)?;
    let budget = machine.device.budget();
    let uname = rustix::system::uname();
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        os: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
        arch: std::env::consts::ARCH,
        cpu: cpu_name().unwrap_or_else(|| "unknown".into()),
        features: features(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_mib: memory_mib(),
        neural_engine: if cfg!(all(target_os = "macos", target_arch = "aarch64")) {
            "this Mac has one, but this version cannot use it: its Apple back end is not built yet"
        } else {
            "none: only Apple's chips have one"
        },
        device: format!("{} of an {}", machine.device.info().name, plan.chip),
        why,
        matmul: plan.matmul.to_string(),
        compile_budget: budget.compile_limit,
        live_budget: budget.live_limit,
    };
    if args.json {
        out::line(format_args!("{}", serde_json::to_string(&report)?))?;
        return Ok(0);
    }
    let limit = |n: Option<u32>| n.map_or("unlimited".into(), |n| n.to_string());
    out::line(format_args!("anneal         {}", report.version))?;
    out::line(format_args!("system         {} on {}", report.os, report.arch))?;
    out::line(format_args!("cpu            {}, {} threads; {}", report.cpu, report.cores, report.features.join(", ")))?;
    out::line(format_args!("memory         {}", report.memory_mib.map_or("unknown".into(), |m| format!("{m} MiB"))))?;
    out::line(format_args!("neural engine  {}", report.neural_engine))?;
    out::line(format_args!("device         {}: {}", report.device, report.why))?;
    out::line(format_args!("matmul         {}", report.matmul))?;
    out::line(format_args!(
        "compiles       a process has {}, and {} programs at once; training with --weights ports needs about a dozen",
        limit(report.compile_budget),
        limit(report.live_budget)
    ))?;
    Ok(0)
}

/// The CPU's name, as the system tells it.
fn cpu_name() -> Option<String> {
    if cfg!(target_os = "macos") {
        let out = std::process::Command::new("/usr/sbin/sysctl").args(["-n", "machdep.cpu.brand_string"]).output().ok()?;
        return String::from_utf8(out.stdout).ok().map(|name| name.trim().to_owned());
    }
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    info.lines().find_map(|line| Some(line.strip_prefix("model name")?.split_once(':')?.1.trim().to_owned()))
}

/// The features that decide how fast the emulator is.
fn features() -> Vec<&'static str> {
    let mut found = Vec::new();
    #[cfg(target_arch = "x86_64")]
    for (name, there) in [
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
        ("f16c", std::arch::is_x86_feature_detected!("f16c")),
        ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
    ] {
        if there {
            found.push(name);
        }
    }
    if cfg!(target_arch = "aarch64") {
        found.push("neon");
    }
    found.push(if cpu::matmul::Path::amx_available() { "amx tiles with bf16" } else { "no amx tiles" });
    found
}

/// Memory of the machine.
fn memory_mib() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? / 1024)
}
