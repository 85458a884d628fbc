//! A model that others trained: llama2.c's stories260K, from the shared corpus.

use crate::lab::{Lab, corpus, ok, stdout};
use serde_json::Value;

/// What llama2.c prints for it at temperature 0, from the start token.
const GREEDY: &str = "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw a big, red ball. \
                      She wanted to play with it, but it was too high.\nLily's mom said, \"Lily, let's go to the park.\" Lily was sad and didn't know w";

#[test]
fn stories260k_talks_measures_and_learns_as_it_does_upstream() {
    let Some(corpus) = corpus() else { return };
    let lab = Lab::new();
    let file = |name: &str| corpus.join(name).display().to_string();
    let (weights, tokenizer, text) = (file("stories260K.bin"), file("stories260K-tok512.bin"), file("tinystories-sample.txt"));
    ok(lab.anneal(&["import", &weights, "--tokenizer", &tokenizer, "--output", "hf"]));

    for matmul in ["auto", "portable"] {
        let said = stdout(&ok(lab.anneal(&["generate", "--model", "hf", "--temperature", "0", "--max-tokens", "100", "--matmul", matmul])));
        assert!(said.trim_start().starts_with(&GREEDY[..GREEDY.len() - 2]), "{said}");
    }

    // The published protocol: the first 20 lines of more than 120 characters, each by itself, 700 characters and 400 tokens at most.
    let lines = std::fs::read_to_string(&text).unwrap();
    let lines = lines.lines().filter(|line| line.chars().count() > 120).take(20).map(|line| line.chars().take(700).collect::<String>());
    lab.write("lines.txt", lines.collect::<Vec<_>>().join("\n").as_bytes());
    let eval = |model: &str| {
        let out = ok(lab.anneal(&["eval", "--model", model, "--data", "lines.txt", "--separate", "--max-seq-length", "399", "--json"]));
        serde_json::from_str::<Value>(&stdout(&out)).unwrap()["loss"].as_f64().unwrap()
    };
    let loss = eval("hf");
    assert!((loss - 1.630).abs() < 0.003, "{loss}");

    ok(lab.anneal(&["train", "--model", "hf", "--data", &text, "--iters", "10", "--run", "tuned", "--max-seq-length", "256"]));
    let tuned = eval("tuned");
    assert!(tuned < loss, "ten steps on the text took the loss from {loss} to {tuned}");
}
