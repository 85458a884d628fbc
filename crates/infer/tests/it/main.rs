//! A real trained model on real text, through the device.
#![allow(clippy::unwrap_used, missing_docs)]

use ane::emulator::{Emulator, EmulatorOptions};
use cpu::Pool;
use cpu::matmul::Path as MatmulPath;
use infer::{Generator, InferError, Loss, Machine, Network, Sampling, Use, evaluate};
use model::programs::{Attention, Options, Weights};
use model::{Config, Shape};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn machine(path: MatmulPath) -> Machine {
    let pool = Arc::new(Pool::new(2).unwrap());
    let options = EmulatorOptions { matmul: path, ..EmulatorOptions::new(mil::Chip::H16, pool.clone()) };
    Machine { device: Arc::new(Emulator::new(options)), pool, path }
}

fn golden() -> serde_json::Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/stories260k.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn ids(value: &serde_json::Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as u32).collect()
}

/// stories260K, where the corpus is at hand.
fn stories260k() -> Option<(Config, Vec<Vec<f32>>)> {
    let corpus = std::env::var_os("ANNEAL_CORPUS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"), PathBuf::from);
    let file = corpus.join("stories260K.bin");
    if !file.exists() {
        eprintln!("skipped: no {}", file.display());
        return None;
    }
    Some(store::llama2c::read(&store::RealFs, &file).unwrap())
}

/// A model that need not make sense.
fn random_model() -> (Config, Vec<Vec<f32>>) {
    let config = model::Preset::by_name("stories260k").unwrap().config;
    let values = config.parameters().iter().map(|p| config.initial_values(p, 7)).collect();
    (config, values)
}

#[test]
fn stories260k_loses_what_pytorch_says() {
    let Some((config, values)) = stories260k() else { return };
    let golden = golden();
    for path in [MatmulPath::Portable, MatmulPath::detect()] {
        for attention in [Attention::Split, Attention::Fused] {
            let options = Options { weights: Weights::Ports, attention };
            let shape = Shape { batch: 1, seq: 448 };
            let network = Network::new(&machine(path), &config, shape, options, &values, Use::Inference).unwrap();
            let mut total = Loss::default();
            for line in golden["lines"].as_array().unwrap() {
                let ids = ids(&line["ids"]);
                let loss = evaluate(&network, &values, &ids[..ids.len() - 1], &ids[1..]).unwrap();
                total.nll += loss.nll;
                total.targets += loss.targets;
            }
            assert_eq!(total.targets as u64, golden["predictions"].as_u64().unwrap());
            assert!((total.mean() - 1.630).abs() < 0.003, "{path:?} {attention:?}: {}", total.mean());
        }
    }
}

#[test]
fn stories260k_tells_the_upstream_story() {
    let Some((config, values)) = stories260k() else { return };
    let wanted = ids(&golden()["greedy_ids"]);
    for path in [MatmulPath::Portable, MatmulPath::detect()] {
        let mut generator = Generator::new(&machine(path), &config, 512).unwrap();
        let sampling = Sampling { max_tokens: 60, temperature: 0.0, ..Sampling::default() };
        let told = generator.generate(&values, &wanted[..1], &sampling, &mut |_| true).unwrap();
        assert_eq!(told, wanted[1..61], "{path:?}");
    }
}

#[test]
fn the_length_of_the_network_changes_no_text() {
    let (config, values) = random_model();
    let machine = machine(MatmulPath::Portable);
    let prompt: Vec<u32> = (1..100).collect();
    let mut generator = Generator::new(&machine, &config, 512).unwrap();
    let short = generator.logits(&values, &prompt).unwrap();
    let options = Options { weights: Weights::Packed, attention: Attention::Split };
    let long = Network::new(&machine, &config, Shape { batch: 2, seq: 256 }, options, &values, Use::Inference).unwrap();
    let mut two = vec![3; 256];
    two.extend(&prompt);
    long.forward(&values, &long.columns_of(&two).unwrap()).unwrap();
    let long = long.head.read().unwrap().column(256 + prompt.len() - 1);
    let (far, size) = short.iter().zip(&long).fold((0f32, 0f32), |(far, size), (a, b)| (far.max((a - b).abs()), size.max(a.abs())));
    assert!(far <= 4e-3 * size, "logits differ by {far} of {size}");
}

#[test]
fn text_longer_than_the_network_goes_on() {
    let (config, values) = random_model();
    let mut generator = Generator::new(&machine(MatmulPath::Portable), &config, 64).unwrap();
    let sampling = Sampling { max_tokens: 80, temperature: 1.0, seed: 3, ..Sampling::default() };
    let told = generator.generate(&values, &[1], &sampling, &mut |_| true).unwrap();
    assert_eq!(told.len(), 80);
    assert_eq!(told, generator.generate(&values, &[1], &sampling, &mut |_| true).unwrap(), "a seed is a text");
    let other = Sampling { seed: 4, ..sampling.clone() };
    assert_ne!(told, generator.generate(&values, &[1], &other, &mut |_| true).unwrap());
    let stopped = Sampling { stop: Some(told[5]), ..sampling };
    assert!(generator.generate(&values, &[1], &stopped, &mut |_| true).unwrap().len() <= 5);
}

#[test]
fn what_does_not_fit_is_refused() {
    let (config, values) = random_model();
    let mut generator = Generator::new(&machine(MatmulPath::Portable), &config, 64).unwrap();
    let sampling = Sampling::default();
    assert!(matches!(generator.generate(&values, &[], &sampling, &mut |_| true), Err(InferError::Empty)));
    let unknown = generator.generate(&values, &[1, 512], &sampling, &mut |_| true);
    assert!(matches!(unknown, Err(InferError::Token { token: 512, position: 1, vocab_size: 512 })), "{unknown:?}");
    assert!(matches!(generator.logits(&values, &[1; 65]), Err(InferError::TooLong { tokens: 65, limit: 64 })));
    let short = generator.logits(&values[1..], &[1]);
    assert!(matches!(short, Err(InferError::Weights { .. })), "{short:?}");
}
