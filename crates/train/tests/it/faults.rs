//! A device that misbehaves reaches neither the weights nor the optimizer.

use crate::support::{Golden, machine};
use ane::fault::{Fault, Faulty};
use cpu::matmul::Path;
use infer::Machine;
use model::programs::{Attention, Options, Weights};
use std::sync::Arc;
use train::{LossScaler, Net, Outcome, StepError, step};

const PORTS: Options = Options { weights: Weights::Ports, attention: Attention::Split };

/// What a step gave, and the parameters after it.
type Step = (Result<Outcome, StepError>, Vec<Vec<f32>>);

/// Steps on a device with faults.
fn run(faults: &[&str], steps: usize) -> Vec<Step> {
    let golden = Golden::load("mha64");
    let machine = machine(Path::Portable, 2);
    let faults: Vec<Fault> = faults.iter().map(|f| f.parse().unwrap()).collect();
    let machine = Machine { device: Arc::new(Faulty::new(machine.device.clone(), faults)), ..machine };
    let mut net = Net::new(&machine, &golden.config, golden.shape(), PORTS, golden.params()).unwrap();
    let (mut opt, mut scaler) = (golden.optimizer(), LossScaler::new(golden.config.n_layers));
    let batches = golden.steps();
    let one = |parts: &Vec<_>| (step(&mut net, &mut opt, &mut scaler, parts, golden.lr()), net.params().to_vec());
    batches.iter().take(steps).map(one).collect()
}

/// Dispatches of one step of the model above, and how many of them are forward.
const DISPATCHES: u64 = 2 * 10 + 2;
const FORWARD: u64 = 2 * 5 + 1;

#[test]
fn a_call_that_fails_once_is_tried_again_and_changes_nothing() {
    let clean = run(&[], 2);
    for n in 1..=DISPATCHES {
        let faulty = run(&[&format!("evaluate@{n}=fail")], 2);
        for (a, b) in clean.iter().zip(&faulty) {
            assert_eq!(a.0.as_ref().unwrap(), b.0.as_ref().unwrap(), "call {n}");
            assert!(a.1 == b.1, "call {n}: other weights");
        }
    }
}

#[test]
fn a_call_that_goes_on_failing_stops_the_step_before_the_weights_change() {
    let before = Golden::load("mha64").params();
    for n in 1..=DISPATCHES {
        let (outcome, params) = &run(&[&format!("evaluate@{n}+=fail")], 1)[0];
        let error = outcome.as_ref().unwrap_err().to_string();
        assert!(error.contains("evaluation failed") && error.contains("layer"), "call {n}: {error}");
        assert!(*params == before, "call {n}: the weights changed");
    }
}

#[test]
fn infinite_gradients_skip_the_update_and_halve_the_scale() {
    let before = Golden::load("mha64").params();
    for n in FORWARD + 1..=DISPATCHES {
        let steps = run(&[&format!("evaluate@{n}=inf")], 2);
        let (first, second) = (steps[0].0.as_ref().unwrap(), steps[1].0.as_ref().unwrap());
        assert!(first.skipped && steps[0].1 == before, "call {n}: inf was learned from");
        assert!(!second.skipped && second.scale == first.scale / 2.0, "call {n}");
    }
}
