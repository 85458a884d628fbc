//! `anneal bench`: how long a training step takes, and where its time goes.

use crate::args::{BenchStepArgs, build};
use crate::failure::{Failure, Outcome};
use crate::out;
use model::programs::Options;
use model::{Preset, Shape};
use serde::Serialize;
use train::metrics::Times;
use train::{AdamW, AdamWConfig, Batch, LossScaler, Net};

/// Steps before the clock counts: caches, page faults and the clock rate settle.
const WARM_UP: u64 = 2;

#[derive(Serialize)]
struct Report {
    model: String,
    parameters: usize,
    device: String,
    chip: String,
    matmul: String,
    threads: usize,
    batch_size: usize,
    seq: usize,
    weights: model::programs::Weights,
    attention: model::programs::Attention,
    steps: u64,
    median_ms: f64,
    min_ms: f64,
    max_ms: f64,
    #[serde(flatten)]
    mean: Times,
    device_matmul_ms: f64,
    tokens_per_second: f64,
    peak_rss_mib: Option<u64>,
}

pub(crate) fn step(args: BenchStepArgs) -> Outcome {
    let config = Preset::by_name(&args.model)?.config;
    let shape = Shape { batch: args.batch_size as usize, seq: args.max_seq_length as usize };
    let options = Options { weights: args.weights.into(), attention: args.attention.into() };
    model::programs::layer_programs(&config, shape, options)?;
    let (mut plan, _) = args.machine.plan()?;
    // A benchmark measures steps, not restarts.
    plan.compile_budget = None;
    let machine = build(&plan)?;
    let parameters = config.parameters();
    let params = parameters.iter().map(|p| config.initial_values(p, 0)).collect();
    let mut net = Net::new(&machine, &config, shape, options, params).map_err(Failure::running)?;
    let adamw = AdamWConfig { beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.1, max_grad_norm: 1.0 };
    let (mut opt, mut scaler) = (AdamW::new(adamw, &parameters), LossScaler::new(config.n_layers));
    let mut times = Vec::new();
    let mut matmul_ms = 0.0;
    for number in 0..WARM_UP + args.steps {
        let batch = random(number, shape, config.vocab_size);
        train::step(&mut net, &mut opt, &mut scaler, &[batch], 1e-4).map_err(Failure::running)?;
        let phases = net.take_times();
        if number >= WARM_UP {
            times.push(Times::of(&phases));
            matmul_ms += phases.device_matmul.as_secs_f64() * 1e3;
        }
    }
    let mut mean = Times::default();
    times.iter().for_each(|t| mean.add(t));
    let mut sorted: Vec<f64> = times.iter().map(|t| t.ms).collect();
    sorted.sort_by(f64::total_cmp);
    let median_ms = (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0;
    let report = Report {
        model: args.model,
        parameters: config.parameter_count(),
        device: machine.device.info().name.clone(),
        chip: plan.chip.to_string(),
        matmul: plan.matmul.to_string(),
        threads: machine.pool.threads(),
        batch_size: shape.batch,
        seq: shape.seq,
        weights: options.weights,
        attention: options.attention,
        steps: args.steps,
        median_ms,
        min_ms: sorted[0],
        max_ms: sorted[sorted.len() - 1],
        mean: mean.per(args.steps),
        device_matmul_ms: matmul_ms / args.steps as f64,
        tokens_per_second: (shape.batch * shape.seq) as f64 / (median_ms / 1e3),
        peak_rss_mib: train::peak_rss_mib(),
    };
    if args.json {
        out::line(format_args!("{}", serde_json::to_string(&report)?))?;
        return Ok(0);
    }
    out::line(format_args!(
        "{} on {}, {} x {} tokens, matmul {}, {} threads",
        report.model, report.device, shape.batch, shape.seq, report.matmul, report.threads
    ))?;
    out::line(format_args!(
        "median of {} steps: {median_ms:.1} ms (from {:.1} to {:.1}); {:.0} tokens/s",
        report.steps, report.min_ms, report.max_ms, report.tokens_per_second
    ))?;
    let t = report.mean;
    out::line(format_args!(
        "mean: device {:.1} ms (matmul {:.1}), cpu {:.1}, staging {:.1}, waiting {:.1}",
        t.device_ms, report.device_matmul_ms, t.cpu_ms, t.staging_ms, t.waiting_ms
    ))?;
    out::line(format_args!("peak memory: {}", report.peak_rss_mib.map_or("unknown".into(), |m| format!("{m} MiB"))))?;
    Ok(0)
}

/// Tokens that no two steps share, from a small congruential generator: their values do not matter, their spread does.
fn random(step: u64, shape: Shape, vocab: usize) -> Batch {
    let mut state = step.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % vocab as u64) as u32
    };
    let n = shape.batch * shape.seq;
    Batch { tokens: (0..n).map(|_| next()).collect(), targets: (0..n).map(|_| next()).collect() }
}
