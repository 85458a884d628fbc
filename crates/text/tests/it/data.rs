//! Readers, the validation split and batches.

use crate::llama2c::{file, vocabulary};
use text::corpus::Corpus;
use text::data::IGNORE;
use text::{Batches, DataError, Documents, Tokenizer, Tokens};

/// A tokenizer with start 1 and end 2 whose other tokens are a space (259), "a" (260) and "b" (261).
fn llama() -> Tokenizer {
    Tokenizer::from_bytes("f", file(6, &vocabulary(" ab", &[]))).unwrap()
}

fn ids(tokens: &Tokens) -> Vec<u32> {
    tokens.window(0, tokens.len())
}

fn counting(n: u16) -> Tokens {
    let bytes: Vec<u8> = (0..n).flat_map(u16::to_le_bytes).collect();
    Tokens::from_bin("counting.bin", &bytes, usize::from(n)).unwrap()
}

#[test]
fn a_text_file_is_one_document_with_a_start() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.txt");
    std::fs::write(&path, "\u{FEFF}ab\r\n").unwrap();
    let documents = Documents::read(&path).unwrap();
    assert_eq!(documents.texts(), ["ab\r\n"]);
    assert_eq!(ids(&Tokens::encode(&documents, &llama()).unwrap()), [1, 259, 260, 261, 13 + 3, 10 + 3]);

    std::fs::write(&path, "").unwrap();
    assert!(matches!(Documents::read(&path), Err(DataError::Empty { .. })));
    std::fs::write(&path, b"\xEF\xBB\xBFab\xFFcd").unwrap();
    assert!(matches!(Documents::read(&path), Err(DataError::NotUtf8 { offset: 5, .. })));
    let missing = Documents::read(dir.path().join("none.txt")).unwrap_err();
    assert!(matches!(missing, DataError::Read { .. }) && missing.to_string().contains("none.txt"));
    assert!(matches!(Documents::read(dir.path()), Err(DataError::Read { .. })));
}

#[test]
fn jsonl_gives_documents_with_start_and_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.JSONL");
    std::fs::write(&path, "\u{FEFF}{\"id\": 3, \"text\": \"a\"}\r\n\r\n{\"text\": \"b\", \"meta\": {\"text\": 1}}\n{\"text\":\"\"}")
        .unwrap();
    let documents = Documents::read(&path).unwrap();
    assert_eq!(documents.texts(), ["a", "b", ""]);
    assert_eq!(ids(&Tokens::encode(&documents, &llama()).unwrap()), [1, 259, 260, 2, 1, 259, 261, 2]);
    // Where start and end are one token, one stands between two documents.
    let trained = Tokenizer::train_bpe(documents.texts(), 257).unwrap();
    let (a, b) = (trained.encode("a").unwrap()[0], trained.encode("b").unwrap()[0]);
    assert_eq!(ids(&Tokens::encode(&documents, &trained).unwrap()), [0, a, 0, b, 0]);
}

#[test]
fn jsonl_errors_name_line_and_column() {
    let error = |text: &[u8]| Documents::from_jsonl("x.jsonl", text).unwrap_err().to_string();
    let second = error(b"{\"text\": \"a\"}\n{\"text\": 5}\n");
    assert!(second.starts_with("x.jsonl:2:10: invalid type: integer"), "{second}");
    assert!(error(b"{\"txt\": \"a\"}").starts_with("x.jsonl:1:12: missing field `text`"), "{}", error(b"{\"txt\": \"a\"}"));
    assert!(error(b"\n\nnot json").starts_with("x.jsonl:3:"));
    assert!(error(b"{\"text\": \"\\ud800\"}").starts_with("x.jsonl:1:"));
    assert!(error(b"{\"text\": \"a\"} {\"text\": \"b\"}").contains("trailing"));
    assert!(matches!(Documents::from_jsonl("x", b"{\"text\": \"a\"}\n\xFF"), Err(DataError::NotUtf8 { offset: 14, .. })));
    assert!(matches!(Documents::from_jsonl("x", b" \n\n"), Err(DataError::Empty { .. })));
    assert!(matches!(Documents::from_jsonl("x", b"{\"text\":\"\"}"), Err(DataError::Empty { .. })));
}

#[test]
fn token_files_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.bin");
    std::fs::write(&path, [1, 0, 0, 2]).unwrap();
    assert_eq!(ids(&Tokens::read_bin(&path, 513).unwrap()), [1, 512]);
    let error = Tokens::read_bin(&path, 512).unwrap_err();
    assert!(matches!(error, DataError::TokenOutOfRange { index: 1, token: 512, vocab_size: 512, .. }));
    assert!(error.to_string().contains("token 1 is 512"), "{error}");
    assert!(matches!(Tokens::from_bin("x", &[1, 0, 0], 9), Err(DataError::OddLength { bytes: 3, .. })));
    assert!(matches!(Tokens::from_bin("x", &[], 9), Err(DataError::Empty { .. })));
    assert!(matches!(Tokens::read_bin(dir.path().join("none"), 9), Err(DataError::Read { .. })));
    assert!(matches!(counting(10).check_vocab(9), Err(DataError::TokenOutOfRange { index: 9, token: 9, .. })));
    assert!(counting(10).check_vocab(10).is_ok());
}

#[test]
fn too_little_data_is_refused_with_both_numbers() {
    let error = Batches::new(counting(64), 64).unwrap_err();
    assert!(matches!(error, DataError::TooShort { have: 64, need: 65, .. }));
    assert!(error.to_string().contains("64 tokens") && error.to_string().contains("65"), "{error}");
    assert!(Batches::new(counting(65), 64).is_ok());
    assert!(matches!(Batches::new(counting(65), 0), Err(DataError::NoSequence)));
    assert!(matches!(Batches::new(counting(65), usize::MAX), Err(DataError::TooShort { .. })));
}

#[test]
fn the_last_part_is_held_out_when_there_is_enough() {
    let (train, held) = counting(10_000).hold_out(65);
    let held = held.unwrap();
    assert_eq!((train.len(), held.len()), (9_500, 500));
    assert_eq!(held.window(0, 2), [9_500, 9_501]);
    let (train, held) = counting(1_000).hold_out(90);
    assert_eq!((train.len(), held.unwrap().len()), (910, 90));
    let (train, held) = counting(1_000).hold_out(101);
    assert_eq!((train.len(), held.is_none()), (1_000, true));
    assert!(counting(5).hold_out(0).1.is_none());
}

#[test]
fn fingerprints_tell_data_apart() {
    let one = counting(100).fingerprint();
    assert_eq!(one, counting(100).fingerprint());
    assert_ne!(one, counting(101).fingerprint());
    assert_eq!(one.len(), 64);
}

#[test]
fn batches_are_a_function_of_seed_step_and_micro_step() {
    let batches = Batches::new(counting(1_000), 16).unwrap();
    let batch = batches.batch(1, 2, 3, 4);
    assert_eq!((batch.tokens.len(), batch.targets.len(), batch.count), (64, 64, 64));
    for (input, target) in batch.tokens.iter().zip(&batch.targets) {
        assert_eq!(input + 1, *target); // the data counts up, so the next token is one more
    }
    assert_eq!(batch, batches.batch(1, 2, 3, 4));
    for other in [batches.batch(0, 2, 3, 4), batches.batch(1, 0, 3, 4), batches.batch(1, 2, 0, 4)] {
        assert_ne!(batch, other);
    }
    // Every place turns up as a start, the first and the last possible one too.
    let mut starts: Vec<_> =
        (0..4_000).flat_map(|step| batches.batch(9, step, 0, 8).tokens.chunks(16).map(|s| s[0]).collect::<Vec<_>>()).collect();
    starts.sort_unstable();
    starts.dedup();
    assert_eq!(starts, (0..1_000 - 16).collect::<Vec<_>>());
}

/// The order of data must not change between versions: a run resumed with a newer one would silently see other data.
#[test]
fn the_order_of_data_is_fixed_for_ever() {
    let starts = Batches::new(counting(1_000), 16).unwrap().batch(42, 7, 1, 6);
    assert_eq!(starts.tokens.chunks(16).map(|s| s[0]).collect::<Vec<_>>(), [455, 226, 941, 336, 530, 204]);
}

#[test]
fn a_pass_has_every_token_but_the_first_as_target_once() {
    for n in [17, 32, 33, 34, 100, 129] {
        let batches = Batches::new(counting(n), 16).unwrap();
        let passes: Vec<_> = batches.pass(2).collect();
        let targets: Vec<u32> = passes.iter().flat_map(|b| b.targets.clone()).filter(|t| *t != IGNORE).collect();
        assert_eq!(targets, (1..u32::from(n)).collect::<Vec<_>>());
        assert_eq!(passes.iter().map(|b| b.count).sum::<usize>(), usize::from(n) - 1);
        assert!(passes.iter().all(|b| b.tokens.len() == 32 && b.targets.len() == 32 && b.count > 0));
        for batch in &passes {
            assert!(batch.tokens.iter().zip(&batch.targets).all(|(i, t)| i + 1 == *t || (*t == IGNORE && *i == 0)));
        }
    }
}

#[test]
fn training_and_validation_stories_differ() {
    let corpus = Corpus::new(1);
    let documents = |range| Documents::from_corpus(&corpus, range);
    let held = Corpus::VALIDATION;
    assert!(held.start >= Corpus::TRAINING.end);
    let (train, held) = (documents(0..300), documents(held.start..held.start + 300));
    assert!(train.texts().iter().all(|story| !held.texts().contains(story)));
    assert!(train.source().contains("built-in corpus (seed 1"));
}
