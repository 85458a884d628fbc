//! The golden files in the chip's own arithmetic, as far as it was measured: what `docs/fidelity.md` states.

use crate::support::{Golden, cosine, machine_of, norm};
use ane::emulator::{Arithmetic, Mac};
use cpu::matmul::Path;
use mil::Chip;
use model::programs::{Attention, Options, Weights};
use train::{LossScaler, step};

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
        assert!(figures.cosine.0 > 0.99, "{mac:?}: gradient of {} points elsewhere: {}", figures.cosine.1, figures.cosine.0);
        assert!((figures.length - 1.0).abs() < 0.05, "{mac:?}: a gradient is {} times as long", figures.length);
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
