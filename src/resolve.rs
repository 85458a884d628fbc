//! From settings to a plan: every open question answered, every wrong answer refused.

use crate::args::{MachineArgs, Settings};
use anyhow::{Context, Result, bail, ensure};
use model::programs::Options;
use model::{Config, Preset};
use std::path::{Path, PathBuf};
use store::RealFs;
use train::plan::{Allow, Cadence, DataSource, DeviceKind, Plan, SMALL, SamplePlan};
use train::{AdamWConfig, Schedule};

/// A plan and what was learnt while making it.
pub(crate) struct Resolved {
    pub(crate) plan: Plan,
    /// The weights that the plan starts from, if any.
    pub(crate) weights: Option<Vec<Vec<f32>>>,
    /// Why the device is the one it is.
    pub(crate) why: &'static str,
    /// Things worth a warning.
    pub(crate) notes: Vec<String>,
}

/// What a model's name stands for.
struct Named {
    name: String,
    config: Config,
    batch: usize,
    seq: usize,
    defaults: Defaults,
    /// Of a model that is there already: its path, weights and tokenizer.
    path: Option<PathBuf>,
    weights: Option<Vec<Vec<f32>>>,
    tokenizer: Option<PathBuf>,
    notes: Vec<String>,
}

/// Defaults that depend on the model.
#[derive(Clone, Copy)]
struct Defaults {
    iters: u64,
    learning_rate: f64,
    report: u64,
    sample: u64,
}

/// For a preset without defaults of its own: llama2.c's learning rate.
const SCRATCH: Defaults = Defaults { iters: 1000, learning_rate: 5e-4, report: 10, sample: 250 };
/// For weights that exist already.
const TUNING: Defaults = Defaults { iters: 100, learning_rate: 1e-4, report: 10, sample: 0 };
/// About two and a half minutes on two cores with AMX.
const STORYBOOK: Defaults = Defaults { iters: 1200, learning_rate: 3e-3, report: 20, sample: 400 };

/// Answers every question that `settings` leaves open. `run_dir` may be empty when a fresh one is to be made later.
pub(crate) fn resolve(settings: &Settings, run_dir: PathBuf) -> Result<Resolved> {
    let scratch = settings.scratch.unwrap_or(false);
    let mut named = named(settings.model.as_deref().unwrap_or(Preset::DEFAULT), scratch)?;
    let vocab_named = reshape(settings, &mut named)?;
    named.config.check()?;
    let d = named.defaults;

    let seq = settings.max_seq_length.unwrap_or(named.seq.min(named.config.max_seq_len));
    ensure!(seq > 0, "--max-seq-length 0: a sequence has at least one token");
    ensure!(
        seq <= named.config.max_seq_len,
        "--max-seq-length {seq} is longer than the model's longest sequence, {} tokens",
        named.config.max_seq_len
    );
    let iters = settings.iters.unwrap_or(d.iters);
    ensure!(iters > 0, "--iters 0: give at least one step");
    let batch_size = settings.batch_size.unwrap_or(named.batch);
    ensure!(batch_size > 0, "--batch-size 0: a micro-batch has at least one sequence");
    let parts = settings.grad_accumulation_steps.unwrap_or(1);
    ensure!(parts > 0, "--grad-accumulation-steps 0: a step has at least one micro-batch");

    let peak = settings.learning_rate.unwrap_or(d.learning_rate);
    let min = settings.min_learning_rate.unwrap_or(peak / 10.0);
    ensure!(peak.is_finite() && peak > 0.0, "--learning-rate {peak}: it must be above 0");
    ensure!((0.0..=peak).contains(&min), "--min-learning-rate {min}: it must lie between 0 and the learning rate, {peak}");
    let warmup = settings.warmup.unwrap_or((iters / 20).min(100));
    let adamw = AdamWConfig {
        beta1: settings.beta1.unwrap_or(0.9),
        beta2: settings.beta2.unwrap_or(0.95),
        eps: settings.adam_eps.unwrap_or(1e-8),
        weight_decay: settings.weight_decay.unwrap_or(0.1),
        max_grad_norm: settings.max_grad_norm.unwrap_or(1.0),
    };
    for (flag, beta) in [("--beta1", adamw.beta1), ("--beta2", adamw.beta2)] {
        ensure!((0.0..1.0).contains(&beta), "{flag} {beta}: it must be at least 0 and below 1");
    }
    ensure!(adamw.eps > 0.0 && adamw.eps.is_finite(), "--adam-eps {}: it must be above 0", adamw.eps);
    ensure!(adamw.weight_decay >= 0.0 && adamw.weight_decay.is_finite(), "--weight-decay {}: it must be at least 0", adamw.weight_decay);
    ensure!(adamw.max_grad_norm > 0.0, "--max-grad-norm {}: it must be above 0 (inf switches clipping off)", adamw.max_grad_norm);

    let val_batches = match settings.val_batches.unwrap_or(8) {
        -1 => None,
        n => Some(usize::try_from(n).map_err(|_| anyhow::anyhow!("--val-batches {n}: give a number, or -1 for all"))?),
    };
    let keep_last = settings.keep_last.unwrap_or(2);
    ensure!(keep_last > 0, "--keep-last 0: the newest checkpoint is always kept, so give at least 1");
    let cadence = Cadence {
        report: settings.steps_per_report.unwrap_or(d.report).max(1),
        eval: if val_batches == Some(0) { 0 } else { settings.steps_per_eval.unwrap_or(200) },
        val_batches,
        save: settings.save_every.unwrap_or(250),
        keep_last,
        sample: settings.sample_every.unwrap_or(d.sample),
    };
    let sample = SamplePlan {
        prompt: settings.sample_prompt.clone().unwrap_or_default(),
        tokens: settings.sample_tokens.unwrap_or(if named.config.parameter_count() < SMALL { 120 } else { 40 }),
        temperature: 0.8,
    };

    let (machine, why) = machine_args(settings).plan()?;
    ensure!(machine.device != DeviceKind::Null, "--device null computes nothing: only `bench` takes it");
    let tokenizer = settings.tokenizer.clone().or(named.tokenizer);
    let mut plan = Plan {
        run_dir,
        model_name: named.name,
        model: named.config,
        weights: named.path.filter(|_| !scratch),
        data: settings.data.clone().map_or(DataSource::BuiltIn, DataSource::File),
        val_data: settings.val_data.clone(),
        tokenizer,
        vocab_named,
        batch_size,
        seq,
        parts,
        schedule: Schedule { peak: peak as f32, min: min as f32, warmup, iters },
        adamw,
        seed: settings.seed.unwrap_or(0),
        options: Options { weights: settings.weights.unwrap_or_default().into(), attention: settings.attention.unwrap_or_default().into() },
        machine,
        cadence,
        sample,
        wall_time: settings.wall_time,
        stop_at: None,
        allow: Allow::default(),
        config_toml: String::new(),
        dump_mil: None,
    };
    plan.config_toml = filled(settings, &plan)?.to_toml()?;
    let mut notes = named.notes;
    if !seq.is_multiple_of(model::SEQ_MULTIPLE) {
        let padded = plan.shape().seq_padded();
        notes.push(format!(
            "sequences of {seq} tokens are padded to {padded} columns: the device takes multiples of {}",
            model::SEQ_MULTIPLE
        ));
    }
    Ok(Resolved { plan, weights: named.weights, why, notes })
}

/// The settings as far as they concern the machine.
pub(crate) fn machine_args(settings: &Settings) -> MachineArgs {
    MachineArgs {
        device: settings.device.unwrap_or_default(),
        chip: settings.chip.unwrap_or_default(),
        matmul: settings.matmul.unwrap_or_default(),
        compile_budget: settings.compile_budget.unwrap_or_default(),
        threads: settings.threads.unwrap_or(0),
    }
}

/// A preset, or a model that is there.
fn named(name: &str, scratch: bool) -> Result<Named> {
    if let Ok(preset) = Preset::by_name(name) {
        let defaults = if name == Preset::DEFAULT { STORYBOOK } else { SCRATCH };
        let Preset { config, batch, seq, .. } = preset;
        return Ok(Named {
            name: name.into(),
            config,
            batch,
            seq,
            defaults,
            path: None,
            weights: None,
            tokenizer: None,
            notes: Vec::new(),
        });
    }
    let path = Path::new(name);
    if !path.exists() {
        let presets: Vec<&str> = Preset::all().iter().map(|p| p.name).collect();
        bail!("--model {name}: neither a preset ({}) nor a file or directory", presets.join(", "));
    }
    let model = store::open_model(&RealFs, path)?;
    let small = model.config.parameter_count() < SMALL;
    let notes = model.skipped.iter().map(|s| format!("passed over a checkpoint of {name}: {}", s.reason)).collect();
    Ok(Named {
        name: path.file_stem().map_or(name.into(), |stem| stem.to_string_lossy().into_owned()),
        batch: if small { 4 } else { 1 },
        seq: 256,
        config: model.config,
        defaults: if scratch { SCRATCH } else { TUNING },
        path: Some(absolute(path)?),
        weights: (!scratch).then_some(model.params),
        tokenizer: model.tokenizer.map(|t| absolute(&t)).transpose()?,
        notes,
    })
}

/// Applies the flags that change the model's shape; says whether the vocabulary was among them.
fn reshape(settings: &Settings, named: &mut Named) -> Result<bool> {
    let c = &mut named.config;
    let changes = [
        ("--vocab-size", settings.vocab_size, &mut c.vocab_size),
        ("--dim", settings.dim, &mut c.dim),
        ("--hidden-dim", settings.hidden_dim, &mut c.hidden_dim),
        ("--n-layers", settings.n_layers, &mut c.n_layers),
        ("--n-heads", settings.n_heads, &mut c.n_heads),
        ("--n-kv-heads", settings.n_kv_heads, &mut c.n_kv_heads),
        ("--head-dim", settings.head_dim, &mut c.head_dim),
    ];
    for (flag, value, field) in changes {
        let Some(value) = value else { continue };
        if named.weights.is_some() && value != *field {
            bail!("{flag} {value}: the weights of {} are for {field}; add --scratch to start from new ones", named.name);
        }
        *field = value;
    }
    if settings.head_dim.is_none() && (settings.dim.is_some() || settings.n_heads.is_some()) && c.n_heads > 0 {
        ensure!(
            c.dim.is_multiple_of(c.n_heads),
            "dim {} is not a multiple of n_heads {}: give --head-dim, or heads that divide it",
            c.dim,
            c.n_heads
        );
        c.head_dim = c.dim / c.n_heads;
    }
    if settings.n_heads.is_some() && settings.n_kv_heads.is_none() {
        c.n_kv_heads = c.n_heads;
    }
    Ok(settings.vocab_size.is_some())
}

/// The settings with every question answered, as a file keeps them: paths from the root, so that the file works from anywhere.
fn filled(given: &Settings, plan: &Plan) -> Result<Settings> {
    let path = |p: &Option<PathBuf>| p.as_deref().map(absolute).transpose();
    let model = given.model.as_deref().unwrap_or(Preset::DEFAULT);
    let model = if Preset::by_name(model).is_ok() { model.into() } else { absolute(Path::new(model))?.to_string_lossy().into_owned() };
    let machine = machine_args(given);
    Ok(Settings {
        model: Some(model),
        data: path(&given.data)?,
        val_data: path(&given.val_data)?,
        tokenizer: path(&given.tokenizer)?,
        iters: Some(plan.schedule.iters),
        batch_size: Some(plan.batch_size),
        grad_accumulation_steps: Some(plan.parts),
        max_seq_length: Some(plan.seq),
        learning_rate: Some(shortest(plan.schedule.peak)?),
        min_learning_rate: Some(shortest(plan.schedule.min)?),
        warmup: Some(plan.schedule.warmup),
        weight_decay: Some(plan.adamw.weight_decay),
        beta1: Some(plan.adamw.beta1),
        beta2: Some(plan.adamw.beta2),
        adam_eps: Some(plan.adamw.eps),
        max_grad_norm: Some(plan.adamw.max_grad_norm),
        seed: Some(plan.seed),
        steps_per_report: Some(plan.cadence.report),
        steps_per_eval: Some(plan.cadence.eval),
        val_batches: Some(plan.cadence.val_batches.map_or(-1, |n| n as i64)),
        save_every: Some(plan.cadence.save),
        keep_last: Some(plan.cadence.keep_last),
        sample_every: Some(plan.cadence.sample),
        sample_prompt: Some(plan.sample.prompt.clone()),
        sample_tokens: Some(plan.sample.tokens),
        device: Some(machine.device),
        chip: Some(machine.chip),
        attention: Some(given.attention.unwrap_or_default()),
        weights: Some(given.weights.unwrap_or_default()),
        matmul: Some(machine.matmul),
        compile_budget: Some(machine.compile_budget),
        threads: Some(machine.threads),
        ..given.clone()
    })
}

/// An f32 as the f64 that people would write for it: 0.003, not 0.003000000026077032.
fn shortest(value: f32) -> Result<f64> {
    Ok(value.to_string().parse()?)
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("cannot make a path of {}", path.display()))
}
