//! The commands beside `train`, and the files of a run.

use crate::lab::{Lab, fails, ok, stderr, stdout};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn a_run_directory_holds_what_it_says() {
    let lab = Lab::new();
    let output = ok(lab.train("run", &["--iters", "6", "--sample-every", "3", "--sample-tokens", "12", "--dump-mil", "mil"]));
    for name in [
        "config.toml",
        "run.json",
        "metrics.jsonl",
        "log.txt",
        "latest",
        "tokenizer.json",
        "samples/step-00000003.txt",
        "samples/final.txt",
    ] {
        assert!(lab.path("run").join(name).is_file(), "{name}");
    }
    let (said, told) = (stdout(&output), stderr(&output));
    for part in ["sample 1:", "steps      6", "compiles", "TFLOP/s", "generate --model run"] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
    for part in ["model      stories260k", "tokenizer  byte-level BPE", "room for 512", "memory     about", "ms/step (device"] {
        assert!(told.contains(part), "{part:?} is not in {told}");
    }
    assert!(!told.contains('\u{1b}') && !said.contains('\u{1b}'), "no escape codes off a terminal");
    let rows = lab.metrics("run");
    let text = std::fs::read_to_string(lab.path("run/metrics.jsonl")).unwrap();
    let first = json(text.lines().next().unwrap());
    for key in ["step", "loss", "lr", "grad_norm", "loss_scale", "tokens", "ms", "device_ms", "cpu_ms", "staging_ms", "waiting_ms"] {
        assert!(first[key].is_number(), "{key}: {first}");
    }
    assert_eq!(rows.len(), 6);
    let qkv = std::fs::read_to_string(lab.path("mil/qkv_fwd.mil")).unwrap();
    assert!(qkv.contains("program(1.3)") && qkv.contains("matmul"), "{qkv}");
}

#[test]
fn the_resolved_configuration_makes_the_same_run_again() {
    let lab = Lab::new();
    ok(lab.train("one", &["--iters", "4", "--seed", "5", "--warmup", "2", "--attention", "fused", "--weights", "packed"]));
    ok(lab.anneal(&["train", "-c", "one/config.toml", "--run", "two"]));
    lab.assert_same("one", "two", 4);
    assert_eq!(std::fs::read(lab.path("one/config.toml")).unwrap(), std::fs::read(lab.path("two/config.toml")).unwrap());
    // A flag goes before the file.
    ok(lab.anneal(&["train", "-c", "one/config.toml", "--run", "three", "--iters", "2"]));
    assert_eq!(lab.metrics("three").len(), 2);
}

#[test]
fn a_dry_run_says_what_it_would_cost_and_does_nothing() {
    let lab = Lab::new();
    let plan = json(&stdout(&ok(lab.train("run", &["--dry-run", "--json", "--grad-accumulation-steps", "3"]))));
    assert_eq!(plan["cost"]["tokens_per_step"], 3 * 2 * 64);
    assert_eq!(plan["cost"]["dispatches_per_step"], 3 * (2 * 10 + 2));
    assert!(plan["memory_total"].as_u64().unwrap() > 16 * plan["cost"]["parameters"].as_u64().unwrap());
    assert!(!lab.path("run").exists());
}

#[test]
fn padding_of_a_sequence_is_said() {
    let lab = Lab::new();
    let mut command =
        lab.anneal(&["train", "--data", "data.txt", "--run", "run", "--model", "stories260k", "--n-layers", "1", "--iters", "1"]);
    command.args(["--max-seq-length", "100"]);
    let output = ok(command);
    assert!(stderr(&output).contains("100 tokens are padded to 128"), "{}", stderr(&output));
}

#[test]
fn generation_is_reproducible_and_begins_with_the_prompt() {
    let lab = Lab::new();
    ok(lab.train("run", &["--iters", "3"]));
    let generate = |args: &[&str]| {
        let mut command = lab.anneal(&["generate", "--model", "run", "--prompt", "One day", "--max-tokens", "9"]);
        command.args(args);
        stdout(&ok(command))
    };
    let greedy = generate(&["--temperature", "0"]);
    assert!(greedy.starts_with("One day") && greedy.ends_with('\n'), "{greedy:?}");
    assert_eq!(greedy, generate(&["--temperature", "0", "--seed", "3", "--threads", "1"]));
    assert_eq!(generate(&["--seed", "3"]), generate(&["--seed", "3", "--threads", "1"]));
    assert_ne!(generate(&["--seed", "3"]), generate(&["--seed", "4"]));
    assert!(fails(lab.anneal(&["generate", "--model", "run", "--temperature", "-1"]), 2).contains("temperature"));
    assert!(fails(lab.anneal(&["generate", "--model", "nothing"]), 2).contains("nothing"));
    assert!(fails(lab.anneal(&["generate", "--model", "run", "--device", "null"]), 2).contains("only `bench`"));
}

#[test]
fn evaluation_measures_what_training_measured() {
    let lab = Lab::new();
    ok(lab.train("run", &["--iters", "6", "--val-data", "data.txt", "--val-batches", "-1", "--steps-per-eval", "6"]));
    let eval = json(&stdout(&ok(lab.anneal(&["eval", "--model", "run", "--data", "data.txt", "--max-seq-length", "64", "--json"]))));
    let last = json(lab.metrics("run").last().unwrap());
    let (one, other) = (eval["loss"].as_f64().unwrap(), last["val_loss"].as_f64().unwrap());
    assert!((one - other).abs() < 1e-3, "{one} {other}");
    assert!((eval["perplexity"].as_f64().unwrap() - one.exp()).abs() < 1e-6 * one.exp());
}

#[test]
fn an_export_is_a_model_like_any_other() {
    let lab = Lab::new();
    ok(lab.train("run", &["--iters", "3"]));
    ok(lab.anneal(&["export", "run", "--output", "hf"]));
    for name in ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"] {
        assert!(lab.path("hf").join(name).is_file(), "{name}");
    }
    ok(lab.anneal(&["import", "hf", "--output", "again"]));
    assert_eq!(std::fs::read(lab.path("hf/model.safetensors")).unwrap(), std::fs::read(lab.path("again/model.safetensors")).unwrap());
    let greedy = |model: &str| stdout(&ok(lab.anneal(&["generate", "--model", model, "--max-tokens", "9", "--temperature", "0"])));
    assert_eq!(greedy("run"), greedy("hf"));
    // And can be trained on.
    ok(lab.anneal(&["train", "--model", "hf", "--data", "data.txt", "--run", "tuned", "--iters", "2", "--max-seq-length", "64"]));
    let config = std::fs::read_to_string(lab.path("tuned/config.toml")).unwrap();
    assert!(config.contains("learning_rate = 0.0001"), "{config}");
}

#[test]
fn doctor_and_bench_answer_in_json() {
    let lab = Lab::new();
    let doctor = json(&stdout(&ok(lab.anneal(&["doctor", "--json"]))));
    assert_eq!(doctor["device"], "emulator of an m4");
    assert_eq!(doctor["compile_budget"], 119);
    for device in ["null", "emulator"] {
        let bench = ["bench", "step", "--model", "stories260k", "--max-seq-length", "64", "--steps", "5", "--json", "--device", device];
        let bench = json(&stdout(&ok(lab.anneal(&bench))));
        assert_eq!(bench["device"], device);
        assert_eq!(bench["steps"], 5);
        for key in ["median_ms", "device_ms", "cpu_ms", "staging_ms", "waiting_ms"] {
            assert!(bench[key].is_number(), "{key}: {bench}");
        }
    }
}
