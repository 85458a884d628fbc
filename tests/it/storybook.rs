//! The promise of the first command: after a few minutes the default model tells stories.

use crate::lab::{Lab, ok, stdout};
use std::path::PathBuf;
use text::corpus::{Corpus, finished_sentences, known_share};
use train::run::BUILT_IN_SEED;

/// Words of a sample.
const WORDS: usize = 100;

/// Ten samples of 100 words by the model of the first command. `ANNEAL_STORYBOOK_RUN` names a run that is there already.
#[test]
#[ignore = "trains for a few minutes"]
fn the_first_command_learns_to_tell_stories() {
    let lab = Lab::new();
    let run = std::env::var_os("ANNEAL_STORYBOOK_RUN").map(PathBuf::from).unwrap_or_else(|| {
        ok(lab.anneal(&["train", "--run", "storybook"]));
        lab.path("storybook")
    });
    let metrics = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let losses: Vec<f64> =
        metrics.lines().map(|row| serde_json::from_str::<serde_json::Value>(row).unwrap()["loss"].as_f64().unwrap()).collect();
    let last = losses.iter().rev().take(20).sum::<f64>() / 20.0;
    assert!(last < losses[0] / 2.0, "the loss fell from {} to {last}", losses[0]);

    let samples: Vec<String> = (1..=10)
        .map(|seed| {
            let seed = seed.to_string();
            let model = run.display().to_string();
            // A short story is followed by another, so that there are words enough.
            let text = stdout(&ok(lab.anneal(&["generate", "--model", &model, "--seed", &seed, "--max-tokens", "180", "--ignore-end"])));
            text.split_whitespace().take(WORDS).collect::<Vec<_>>().join(" ")
        })
        .collect();
    let known: Vec<f64> = samples.iter().map(|sample| known_share(sample)).collect();
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    for (sample, known) in samples.iter().zip(&known) {
        eprintln!("{:.1} %, {} sentences: {sample}\n", 100.0 * known, finished_sentences(sample));
        assert_eq!(sample.split_whitespace().count(), WORDS);
        assert!(finished_sentences(sample) >= 3, "{sample}");
    }
    eprintln!("{:.2} % of the words are the grammar's", 100.0 * mean);
    assert!(mean >= 0.98, "only {:.2} % of the words are the grammar's", 100.0 * mean);
    let texts: Vec<&str> = samples.iter().map(String::as_str).collect();
    let copies = Corpus::new(BUILT_IN_SEED).find_copies(Corpus::TRAINING, &texts);
    assert!(copies.iter().all(Option::is_none), "told word for word: {copies:?}");
}
