//! `anneal train`: settings to a plan, a plan to a run, and a run to its end, over any number of processes.

use crate::args::{self, Settings, TrainArgs};
use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::out;
use crate::resolve::{self, Resolved};
use crate::resume;
use anyhow::{Context, Result};
use model::programs::LayerPrograms;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use store::RealFs;
use train::plan::{Allow, DataSource, Plan};
use train::restart::Restart;
use train::run::{Done, Ending, Inputs, Session, StartAt};
use train::signals::Stop;
use train::{Cost, Report, RunError};

pub(crate) fn run(args: TrainArgs) -> Outcome {
    // Asked now: the file may be replaced, or moved, while the run goes on.
    let program = std::env::current_exe().context("cannot find this program's own file, which a restart needs")?;
    if let Some(path) = &args.restart_state {
        let restart = Restart::read(&RealFs, path)?;
        return go(Prepared::restarted(restart), &program, args.json);
    }
    let target = args.resume.as_deref().map(|resume| resume::target(resume, args.run.as_deref())).transpose()?;
    let settings = layered(&args, target.as_ref())?;
    let run_dir = target.as_ref().map(|t| t.run_dir.clone()).or(args.run.clone());
    let Resolved { mut plan, weights, why, notes } = resolve::resolve(&settings, run_dir.clone().unwrap_or_default())?;
    plan.stop_at = args.stop_at;
    plan.allow = Allow { data: args.allow_data_change, tokenizer: args.allow_tokenizer_change };
    plan.dump_mil = args.dump_mil;
    for fault in &args.fault {
        fault.parse::<ane::fault::Fault>()?;
    }
    plan.machine.faults = args.fault;
    let cost = plan.cost()?;
    let from = target.map_or(StartAt::Start, |t| t.from);
    let fresh = run_dir.is_none();
    if args.dry_run {
        return dry_run(&plan, &cost, why, args.json);
    }
    if from == StartAt::Start && !fresh {
        train::run::check_fresh(&plan.run_dir)?;
    }
    if let Some(dir) = &plan.dump_mil {
        dump(&plan.programs()?, dir)?;
    }
    go(Prepared { plan, from, fresh, previous: None, weights, opening: Some((cost, why, notes)) }, &program, args.json)
}

/// Flags over the file of `--config`, over that of the run that is resumed.
fn layered(args: &TrainArgs, target: Option<&resume::Target>) -> Result<Settings> {
    let mut settings = match target {
        Some(target) if resume::is_run(&target.run_dir) => Settings::read(&target.run_dir.join("config.toml"))?,
        _ => Settings::default(),
    };
    if let Some(path) = &args.config {
        settings = Settings::read(path)?.over(&settings)?;
    }
    args.settings.over(&settings)
}

/// A run that was found possible.
struct Prepared {
    plan: Plan,
    from: StartAt,
    /// The run directory is still to be made.
    fresh: bool,
    previous: Option<Restart>,
    weights: Option<Vec<Vec<f32>>>,
    /// What to say before it begins; a restart has said it.
    opening: Option<(Cost, &'static str, Vec<String>)>,
}

impl Prepared {
    fn restarted(restart: Restart) -> Prepared {
        let plan = restart.plan.clone();
        Prepared { plan, from: StartAt::Latest, fresh: false, previous: Some(restart), weights: None, opening: None }
    }
}

/// Reads the data, makes the machine, trains, and ends this process or replaces it.
fn go(prepared: Prepared, program: &Path, json: bool) -> Outcome {
    let Prepared { mut plan, from, fresh, previous, weights, opening } = prepared;
    let mut console = Console::default();
    let mut said = Vec::new();
    let mut say = |console: &Console, line: String| {
        console.say(&line);
        said.push(line);
    };
    if let Some((cost, why, notes)) = &opening {
        for line in about(&plan, cost, why).into_iter().chain(notes.iter().map(|note| format!("note       {note}"))) {
            say(&console, line);
        }
    }
    let kept = if from == StartAt::Start { None } else { train::run::kept_tokenizer(&plan.run_dir) };
    let inputs = Inputs::read(&plan, kept.as_deref())?;
    let machine = args::build(&plan.machine)?;
    if fresh {
        plan.run_dir = train::run::fresh_dir(&plan.model_name)?;
    }
    if opening.is_some() {
        for line in about_inputs(&plan, &inputs) {
            say(&console, line);
        }
    }
    let stop = Stop::on_signals().context("cannot watch for signals")?;
    let session = Session { plan, from, previous, machine, inputs, weights, opening: said, stop, observer: &mut console };
    let done = train::run(session).map_err(|e| match e {
        RunError::Exists(_) | RunError::Resume(_) | RunError::NoneWhole { .. } => Failure::from(e),
        e => Failure::running(e),
    })?;
    drop(console);
    end(done, program, json)
}

fn end(done: Done, program: &Path, json: bool) -> Outcome {
    let Done { ending, report, samples } = done;
    if let Ending::Restart(restart) = &ending {
        let state = restart.write(&RealFs).map_err(Failure::running)?;
        let mut args: Vec<OsString> = vec!["train".into(), "--restart-state".into(), state.into()];
        if json {
            args.push("--json".into());
        }
        let error = train::restart::exec(program, &args).err();
        let error = error.map_or_else(|| anyhow::anyhow!("it returned"), anyhow::Error::from);
        return Err(Failure::running(error.context(format!("cannot start {} again", program.display()))));
    }
    if let Some(report) = &report {
        if json {
            out::line(format_args!("{}", serde_json::to_string(report)?))?;
        } else {
            print_report(report, &samples, &ending)?;
        }
    }
    Ok(match ending {
        Ending::Signal(signal) => (128 + signal) as u8,
        _ => 0,
    })
}

fn print_report(report: &Report, samples: &[String], ending: &Ending) -> std::io::Result<()> {
    for (n, sample) in samples.iter().enumerate() {
        out::line(format_args!("sample {}: {}\n", n + 1, sample.trim()))?;
    }
    out::line(format_args!("{report}"))?;
    let me = std::env::args().next().unwrap_or_else(|| "anneal".into());
    let run = report.run.display();
    match ending {
        Ending::Finished => out::line(format_args!("try it     {me} generate --model {run}")),
        _ => out::line(format_args!("go on      {me} train --resume {run}")),
    }
}

fn dry_run(plan: &Plan, cost: &Cost, why: &str, json: bool) -> Outcome {
    if json {
        out::line(format_args!("{}", serde_json::json!({ "plan": plan, "cost": cost, "memory_total": cost.memory.total() })))?;
    } else {
        about(plan, cost, why).iter().try_for_each(out::line)?;
    }
    Ok(0)
}

/// What is about to happen, as far as it is known before the data is read.
fn about(plan: &Plan, cost: &Cost, why: &str) -> Vec<String> {
    let (c, s) = (&plan.model, &plan.schedule);
    let kv = if c.n_kv_heads == c.n_heads { String::new() } else { format!(" ({} of keys and values)", c.n_kv_heads) };
    let origin = plan.weights.as_ref().map_or("from new weights".into(), |path| format!("from the weights in {}", path.display()));
    let mib = |bytes: usize| bytes.div_ceil(1 << 20);
    let m = &cost.memory;
    let budget = plan.machine.compile_budget.map_or("no limit".into(), |n| format!("{n} a process"));
    let rebakes = if cost.compiles_per_update > 0 { format!(", {} after each update", cost.compiles_per_update) } else { String::new() };
    vec![
        format!(
            "model      {}: {:.1} million parameters, dim {}, {} layers, {} heads{kv}, {} tokens; {origin}",
            plan.model_name,
            cost.parameters as f64 / 1e6,
            c.dim,
            c.n_layers,
            c.n_heads,
            c.vocab_size
        ),
        format!("device     {} of an {}: {why}; matmul {}", device_name(plan), plan.machine.chip, plan.machine.matmul),
        format!(
            "programs   weights {:?}, attention {:?}; {} compiles{rebakes} ({budget}), {} dispatches and {:.1} GFLOP a step",
            plan.options.weights,
            plan.options.attention,
            cost.compiles,
            cost.dispatches_per_step,
            cost.flops_per_step as f64 / 1e9
        ),
        format!(
            "steps      {} of {} x {} x {} tokens; learning rate {} after {} steps of warm-up, down to {}",
            s.iters, plan.parts, plan.batch_size, plan.seq, s.peak, s.warmup, s.min
        ),
        format!(
            "memory     about {} MiB: {} of fp32 weights, gradients and moments, {} of fp16 weights, {} of activations",
            mib(m.total()),
            mib(m.masters),
            mib(m.weights),
            mib(m.surfaces + m.saved)
        ),
    ]
}

/// What is about to happen: data and directory.
fn about_inputs(plan: &Plan, inputs: &Inputs) -> Vec<String> {
    let train = inputs.train.tokens();
    let val =
        inputs.val.as_ref().map_or("too little to set any aside for validation".into(), |v| format!("validation on {}", v.tokens().len()));
    let source = match &plan.data {
        DataSource::BuiltIn => "the built-in corpus".into(),
        DataSource::File(path) => path.display().to_string(),
    };
    let tokenizer = inputs.tokenizer.as_ref().map_or("none: the data is tokens already".into(), |t| t.describe());
    vec![
        format!("data       {source}: {} tokens, {val}", train.len()),
        format!("tokenizer  {tokenizer}; the model has room for {}", plan.model.vocab_size),
        format!("run        {}", plan.run_dir.display()),
    ]
}

fn device_name(plan: &Plan) -> &'static str {
    match plan.machine.device {
        train::plan::DeviceKind::Emulator => "emulator",
        train::plan::DeviceKind::Null => "null device",
    }
}

/// Writes the programs as text, one file each; layers have the same ones.
fn dump(programs: &LayerPrograms, dir: &Path) -> Result<()> {
    store::create_dirs(&RealFs, dir)?;
    let classifier = programs.classifier.first().into_iter().flat_map(|slice| [&slice.fwd, &slice.dx]);
    for spec in programs.layer().into_iter().chain(classifier) {
        let path: PathBuf = dir.join(format!("{}.mil", spec.name()));
        store::write_atomic(&RealFs, &path, mil::print(&spec.program).as_bytes())?;
    }
    Ok(())
}
