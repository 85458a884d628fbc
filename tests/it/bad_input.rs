//! What cannot work is refused before it begins, in one line that says what to do, and nothing is written.

use crate::lab::{Lab, TINY, fails, ok, stderr};
use std::process::Command;

/// Asserts a refusal: exit code 2, one line on stderr after any opening lines, with all of `says`, and no run directory.
fn refused(lab: &Lab, command: Command, says: &[&str]) {
    let said = fails(command, 2);
    let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "{said}");
    assert_eq!(said.lines().last(), Some(errors[0]), "the error is the last line: {said}");
    for part in says {
        assert!(errors[0].contains(part), "{part:?} is not in: {}", errors[0]);
    }
    assert!(!lab.path("run").exists(), "a refused run leaves nothing behind");
}

fn train(lab: &Lab, args: &[&str]) -> Command {
    let mut command = lab.anneal(&["train", "--run", "run"]);
    command.args(TINY).args(args);
    command
}

#[test]
fn data_that_cannot_be_learnt_from() {
    let lab = Lab::new();
    lab.write("empty.txt", b"");
    lab.write("short.txt", b"Once upon a time.");
    lab.write("binary.txt", &[0xff, 0xfe, 0x00]);
    lab.write("lines.jsonl", b"{\"text\": \"one\"}\n{\"txt\": \"two\"}\n");
    lab.write("empty.bin", b"");
    lab.write("odd.bin", &[1, 0, 2]);
    lab.write("high.bin", &[7u8, 0, 0, 2].repeat(200)); // token 512 of a vocabulary of 512
    lab.write("good.bin", &[7u8, 0].repeat(400));
    let cases: [(&[&str], &[&str]); 9] = [
        (&["--data", "none.txt"], &["none.txt", "No such file"]),
        (&["--data", "empty.txt"], &["empty.txt", "holds no text"]),
        (&["--data", "short.txt"], &["short.txt", "65"]),
        (&["--data", "binary.txt"], &["binary.txt", "UTF-8", "byte 0"]),
        (&["--data", "lines.jsonl"], &["lines.jsonl:2:", "text"]),
        (&["--data", "empty.bin", "--vocab-size", "512"], &["empty.bin"]),
        (&["--data", "odd.bin", "--vocab-size", "512"], &["odd.bin", "odd number of bytes"]),
        (&["--data", "high.bin", "--vocab-size", "512"], &["high.bin", "token 1 is 512", "512"]),
        (&["--data", "good.bin"], &["good.bin", "--vocab-size", "--tokenizer"]),
    ];
    for (args, says) in cases {
        refused(&lab, train(&lab, args), says);
    }
    ok(train(&lab, &["--data", "good.bin", "--vocab-size", "512", "--iters", "1"]));
}

#[test]
fn numbers_that_make_no_model_or_no_run() {
    let lab = Lab::new();
    let cases: [(&[&str], &[&str]); 14] = [
        (&["--iters", "0"], &["--iters 0"]),
        (&["--batch-size", "0"], &["--batch-size 0"]),
        (&["--grad-accumulation-steps", "0"], &["--grad-accumulation-steps 0"]),
        (&["--max-seq-length", "0"], &["--max-seq-length 0"]),
        (&["--max-seq-length", "513"], &["513", "512"]),
        (&["--n-kv-heads", "3"], &["n_kv_heads", "3", "8"]),
        (&["--n-heads", "7"], &["64", "7"]),
        (&["--learning-rate", "-1"], &["--learning-rate -1"]),
        (&["--beta2", "1"], &["--beta2 1"]),
        (&["--max-grad-norm", "0"], &["--max-grad-norm 0"]),
        (&["--keep-last", "0"], &["--keep-last 0"]),
        (&["--model", "stories1b"], &["stories1b", "storybook"]),
        (&["--device", "ane"], &["Apple back end is not built", "--device emulator"]),
        (&["--fault", "evaluate@0=fail"], &["evaluate@0=fail", "evaluate@N"]),
    ];
    for (args, says) in cases {
        let mut command = train(&lab, &["--data", "data.txt"]);
        command.args(args);
        refused(&lab, command, says);
    }
}

#[test]
fn a_budget_that_cannot_hold_one_update() {
    let lab = Lab::new();
    let command = train(&lab, &["--data", "data.txt", "--weights", "baked", "--compile-budget", "20"]);
    refused(&lab, command, &["compiles", "20", "--weights ports"]);
}

#[test]
fn configuration_files_are_checked_key_by_key() {
    let lab = Lab::new();
    lab.write("bad.toml", b"iters = 3\nlearning_rte = 0.1\n");
    refused(&lab, train(&lab, &["--data", "data.txt", "-c", "bad.toml"]), &["bad.toml:2:1", "learning_rte"]);
    refused(&lab, train(&lab, &["--data", "data.txt", "-c", "none.toml"]), &["none.toml", "No such file"]);
}

#[test]
fn a_tokenizer_that_does_not_fit_the_model() {
    let lab = Lab::new();
    ok(lab.train("first", &["--iters", "1"]));
    let tokenizer = lab.path("first/tokenizer.json").display().to_string();
    let command = train(&lab, &["--data", "data.txt", "--tokenizer", &tokenizer, "--vocab-size", "300"]);
    refused(&lab, command, &["512 tokens", "300", "--vocab-size 512"]);
    lab.write("not.json", b"{\"model\": 1}");
    refused(&lab, train(&lab, &["--data", "data.txt", "--tokenizer", "not.json"]), &["not.json"]);
}

#[test]
fn a_directory_that_cannot_be_written_or_is_taken() {
    let lab = Lab::new();
    lab.write("file", b"");
    let said = fails(lab.train("file/run", &["--iters", "1"]), 1);
    assert!(said.contains("error: cannot") && said.contains("file/run"), "{said}");
    ok(lab.train("taken", &["--iters", "1"]));
    let said = fails(lab.train("taken", &["--iters", "2"]), 2);
    assert!(said.contains("holds a run already") && said.contains("--resume"), "{said}");
    assert_eq!(lab.metrics("taken").len(), 1, "the run that was there is untouched");
}

#[test]
fn a_run_is_not_resumed_on_another_model_tokenizer_or_data() {
    let lab = Lab::new();
    ok(lab.train("run", &["--iters", "2"]));
    let other: String = std::fs::read_to_string(lab.path("data.txt")).unwrap().chars().rev().collect();
    lab.write("other.txt", other.as_bytes());
    ok(lab.anneal(&["train", "--run", "other", "--data", "other.txt", "--model", "stories260k", "--iters", "1", "--max-seq-length", "64"]));
    let cases: [(&[&str], &[&str]); 4] = [
        (&["--dim", "128"], &["dim = 64", "dim = 128"]),
        (&["--n-layers", "3"], &["n_layers = 2", "n_layers = 3"]),
        (&["--data", "other.txt"], &["`data` has changed", "--allow-data-change"]),
        (&["--tokenizer", "other/tokenizer.json"], &["`tokenizer` has changed", "--allow-tokenizer-change"]),
    ];
    for (args, says) in cases {
        let mut command = lab.resume("run", &["--iters", "3"]);
        command.args(args);
        let said = fails(command, 2);
        assert!(says.iter().all(|part| said.contains(part)), "{args:?}: {said}");
        assert_eq!(lab.checkpoints("run"), ["step-00000002"], "nothing is lost");
        assert_eq!(lab.metrics("run").len(), 2, "nothing is lost");
    }
    ok(lab.resume("run", &["--iters", "3", "--data", "other.txt", "--allow-data-change"]));
    assert_eq!(lab.metrics("run").len(), 3);
}

#[test]
fn a_damaged_checkpoint_is_passed_over_and_kept() {
    let lab = Lab::new();
    ok(lab.train("run", &["--iters", "4", "--save-every", "2"]));
    for (name, keep) in [("model.safetensors", 0.5), ("optimizer.safetensors", 0.99), ("state.json", 0.3), ("manifest.json", 0.0)] {
        let path = lab.checkpoint("run", 4).join(name);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..(whole.len() as f64 * keep) as usize]).unwrap();
        let said = fails(lab.anneal(&["generate", "--model", &lab.checkpoint("run", 4).display().to_string()]), 2);
        let named = if name == "manifest.json" { "manifest.json" } else { name };
        assert!(said.starts_with("error: ") && said.contains(named) && said.lines().count() == 1, "{name}: {said}");
        std::fs::write(&path, whole).unwrap();
    }
    let path = lab.checkpoint("run", 4).join("model.safetensors");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    // Another program goes on with the one before it; a trainer also moves it out of the way, and does the steps again.
    let output = ok(lab.anneal(&["generate", "--model", "run", "--max-tokens", "2"]));
    assert!(stderr(&output).contains("passed over"), "{}", stderr(&output));
    let output = ok(lab.resume("run", &[]));
    assert!(stderr(&output).contains("passed over a checkpoint"), "{}", stderr(&output));
    assert_eq!(lab.checkpoints("run"), ["step-00000002", "step-00000004"]);
    assert_eq!(std::fs::read(&path).unwrap(), whole, "the steps done again give the same bytes");
    assert!(lab.path("run/corrupt/step-00000004").is_dir());
}

#[test]
fn a_run_of_which_no_checkpoint_is_whole_is_left_as_it_is() {
    let lab = Lab::new();
    ok(lab.train("run", &["--iters", "2"]));
    let path = lab.checkpoint("run", 2).join("state.json");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..9]).unwrap();
    let said = fails(lab.resume("run", &["--iters", "3"]), 2);
    assert!(said.contains("state.json") && said.contains("nothing was changed"), "{said}");
    assert_eq!(lab.metrics("run").len(), 2);
    std::fs::write(&path, &whole).unwrap();
    ok(lab.resume("run", &["--iters", "3"]));
    assert_eq!(lab.metrics("run").len(), 3);
}
