//! Logits, loss, every gradient and ten losses of ten updates.

use crate::support::{Golden, cosine, norm, paths, variants};
use train::{LossScaler, step};

/// One step's gradients and ten steps' losses, in every combination of variant and matmul path.
fn check(name: &str) {
    let golden = Golden::load(name);
    let (losses, steps) = (golden.step_losses(), golden.steps());
    for path in paths() {
        for options in variants() {
            let context = format!("{name} {options:?} {path:?}");
            let mut net = golden.net(options, path, 2);
            let (mut opt, mut scaler) = (golden.optimizer(), LossScaler::new(golden.config.n_layers));
            let logits = golden.tensors.get("logits");
            if let Some(logits) = logits {
                net.evaluate(&steps[0][0]).unwrap();
                let read = net.forward.head.read().unwrap();
                let columns = golden.batch * golden.seq;
                let ours: Vec<f32> = (0..columns).flat_map(|c| read.column(c)).collect();
                assert!(cosine(&ours, &logits.values) > 0.9999, "{context}: logits");
            }
            for (i, (parts, wanted)) in steps.iter().zip(&losses).enumerate() {
                let outcome = step(&mut net, &mut opt, &mut scaler, parts, golden.lr()).unwrap();
                assert!(!outcome.skipped, "{context}: step {i} was skipped");
                assert!((outcome.loss / wanted - 1.0).abs() < 0.005, "{context}: loss of step {i} is {} instead of {wanted}", outcome.loss);
                if i == 0 {
                    gradients(&golden, &net, outcome.scale, &context);
                }
            }
        }
    }
}

/// Every gradient of the first step: direction and length.
fn gradients(golden: &Golden, net: &train::Net, scale: f32, context: &str) {
    for (i, p) in golden.config.parameters().iter().enumerate() {
        let Some(wanted) = golden.tensors.get(&format!("grad.{}", p.name)) else { continue };
        let ours = net.grads.get(i);
        let (direction, length) = (cosine(ours, &wanted.values), norm(ours) / f64::from(scale) / norm(&wanted.values));
        assert!(direction > 0.999, "{context}: gradient of {} points elsewhere: cosine {direction}", p.name);
        assert!((length - 1.0).abs() < 0.01, "{context}: gradient of {} is {length} times as long", p.name);
    }
}

#[test]
fn multi_head_attention_with_padded_heads_and_hidden() {
    check("mha64");
}

#[test]
fn grouped_queries_over_256_tokens() {
    check("gqa256");
}

#[test]
fn two_sequences_and_an_odd_vocabulary() {
    check("batch2");
}

#[test]
fn interleaved_rope() {
    check("interleaved");
}

#[test]
fn accumulation_weighted_by_tokens() {
    check("accum");
}

#[test]
fn twelve_layers() {
    check("deep12");
}
