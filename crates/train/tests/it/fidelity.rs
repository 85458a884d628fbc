//! The golden files in the chip's own arithmetic, as far as it was measured: what `docs/fidelity.md` states.

use crate::support::{Golden, cosine, machine_of, norm};
use ane::emulator::{Arithmetic, Mac};
use cpu::matmul::Path;
use mil::Chip;
use model::programs::{Attention, Options, Weights};
use model::{Preset, Shape};
use train::{AdamW, AdamWConfig, Batch, LossScaler, Net, step};

/// How far a training is from PyTorch's.
struct Figures {
    /// Largest relative difference of a step's loss.
    loss: f64,
    /// Worst gradient of the first step: cosine, and length relative to PyTorch's.
    cosine: (f64, String),
    length: f64,
    skipped: usize,
    scale: f32,
}

fn train(name: &str, arithmetic: Arithmetic, chip: Chip, options: Options, count: usize) -> Figures {
    let golden = Golden::load(name);
    let mut net = golden.net_on(&machine_of(arithmetic, chip, Path::detect(), 2), options);
    let (mut opt, mut scaler) = (golden.optimizer(), LossScaler::new(golden.config.n_layers));
    let mut figures = Figures { loss: 0.0, cosine: (1.0, String::new()), length: 1.0, skipped: 0, scale: 0.0 };
    for (i, (parts, wanted)) in golden.steps().iter().zip(golden.step_losses()).take(count).enumerate() {
        let outcome = step(&mut net, &mut opt, &mut scaler, parts, golden.lr()).unwrap();
        figures.skipped += usize::from(outcome.skipped);
        figures.loss = figures.loss.max((outcome.loss / wanted - 1.0).abs());
        figures.scale = outcome.scale;
        if i > 0 {
            continue;
        }
        for (i, p) in golden.config.parameters().iter().enumerate() {
            let Some(wanted) = golden.tensors.get(&format!("grad.{}", p.name)) else { continue };
            let ours = net.grads.get(i);
            let direction = cosine(ours, &wanted.values);
            if direction < figures.cosine.0 {
                figures.cosine = (direction, p.name.clone());
            }
            let length = norm(ours) / f64::from(outcome.scale) / norm(&wanted.values);
            if (length - 1.0).abs() > (figures.length - 1.0).abs() {
                figures.length = length;
            }
        }
    }
    figures
}

const PORTS: Options = Options { weights: Weights::Ports, attention: Attention::Fused };
const PACKED: Options = Options { weights: Weights::Packed, attention: Attention::Split };

#[test]
fn a_golden_trains_in_the_chips_arithmetic() {
    for (mac, options) in [(Mac::Wide, PORTS), (Mac::Grid, PACKED)] {
        let figures = train("mha64", Arithmetic::Fidelity(mac), Chip::H16, options, 3);
        assert!(figures.skipped == 0 && figures.loss < 0.005, "{mac:?}: loss off by {}", figures.loss);
        assert!(figures.cosine.0 > 0.999, "{mac:?}: gradient of {} points elsewhere: {}", figures.cosine.1, figures.cosine.0);
        assert!((figures.length - 1.0).abs() < 0.01, "{mac:?}: a gradient is {} times as long", figures.length);
    }
}

/// `cargo test --release -p anneal-train -- --ignored --nocapture fidelity_figures`: the table of `docs/fidelity.md`.
#[test]
#[ignore = "a measurement"]
fn fidelity_figures() {
    println!("| golden | chip | arithmetic | largest error of a loss | worst cosine | length | skipped | scale |");
    for name in ["mha64", "gqa256", "batch2", "interleaved", "accum", "deep12"] {
        for (chip, arithmetic) in [
            (Chip::H16, Arithmetic::Fast),
            (Chip::H13, Arithmetic::Fidelity(Mac::Wide)),
            (Chip::H13, Arithmetic::Fidelity(Mac::Grid)),
            (Chip::H16, Arithmetic::Fidelity(Mac::Wide)),
            (Chip::H16, Arithmetic::Fidelity(Mac::Grid)),
            (Chip::H17, Arithmetic::Fidelity(Mac::Wide)),
            (Chip::H17, Arithmetic::Fidelity(Mac::Grid)),
        ] {
            let begin = std::time::Instant::now();
            let f = train(name, arithmetic, chip, PORTS, 10);
            println!(
                "| {name} | {chip:?} | {arithmetic} | {:.2e} | {:.6} ({}) | {:.4} | {} | {} | {:.1} s",
                f.loss,
                f.cosine.0,
                f.cosine.1,
                f.length,
                f.skipped,
                f.scale,
                begin.elapsed().as_secs_f64()
            );
        }
    }
}

/// The default preset on bytes of the built-in corpus, 128 tokens a step: losses, and the gradients of the first step.
fn storybook(arithmetic: Arithmetic, scale: Option<f32>, count: usize) -> (Vec<f64>, Vec<Vec<f32>>) {
    const SEQ: usize = 128;
    let config = Preset::by_name(Preset::DEFAULT).unwrap().config;
    let specs = config.parameters();
    let params = specs.iter().map(|p| config.initial_values(p, 1)).collect();
    let mut net =
        Net::new(&machine_of(arithmetic, Chip::H16, Path::detect(), 2), &config, Shape { batch: 1, seq: SEQ }, PORTS, params).unwrap();
    let adamw = AdamWConfig { beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.1, max_grad_norm: 1.0 };
    let (mut opt, mut scaler) = (AdamW::new(adamw, &specs), scale.map_or_else(|| LossScaler::new(config.n_layers), LossScaler::with_scale));
    let corpus = text::corpus::Corpus::new(1);
    let bytes: Vec<u32> = (0..40).flat_map(|i| corpus.story(i).into_bytes()).map(u32::from).collect();
    let (mut losses, mut grads) = (Vec::new(), Vec::new());
    for i in 0..count {
        let window = &bytes[i * SEQ..][..SEQ + 1];
        let batch = Batch { tokens: window[..SEQ].to_vec(), targets: window[1..].to_vec() };
        let outcome = step(&mut net, &mut opt, &mut scaler, &[batch], 1e-3).unwrap();
        assert!(!outcome.skipped);
        losses.push(outcome.loss);
        if i == 0 {
            grads = (0..specs.len()).map(|p| net.grads.get(p).iter().map(|g| g / outcome.scale).collect()).collect();
        }
    }
    (losses, grads)
}

/// `cargo test --release -p anneal-train -- --ignored --nocapture preset_figures`: the second and third table.
#[test]
#[ignore = "a measurement"]
fn preset_figures() {
    let arithmetics = [Arithmetic::Fast, Arithmetic::Fidelity(Mac::Wide), Arithmetic::Fidelity(Mac::Grid)];
    let (_, wanted) = storybook(Arithmetic::Fast, None, 1);
    for arithmetic in &arithmetics[1..] {
        for scale in [1.0, 16.0, 256.0, 1024.0, 8192.0] {
            let (_, grads) = storybook(*arithmetic, Some(scale), 1);
            let pairs = || grads.iter().zip(&wanted);
            let worst = pairs().map(|(g, w)| cosine(g, w)).fold(1.0, f64::min);
            let (least, most) = pairs().map(|(g, w)| norm(g) / norm(w)).fold((f64::MAX, 0f64), |(a, b), r| (a.min(r), b.max(r)));
            println!("| {arithmetic} | scale {scale} | worst cosine {worst:.6} | lengths {least:.4} to {most:.4} |");
        }
    }
    for arithmetic in arithmetics {
        let (losses, _) = storybook(arithmetic, None, 30);
        println!("| {arithmetic} | {:?} |", [0, 4, 9, 14, 19, 24, 29].map(|i| (losses[i] * 1e4).round() / 1e4));
    }
}
