//! No bytes make a reader panic.

use crate::llama2c::{file, vocabulary};
use proptest::prelude::*;
use std::sync::LazyLock;
use text::{Batches, Documents, Tokenizer, Tokens};

static LLAMA: LazyLock<Vec<u8>> = LazyLock::new(|| file(6, &vocabulary("ab ", &[("ab", 1.0), ("aba", 2.0), (" ab", 1.5)])));
static JSON: LazyLock<Vec<u8>> = LazyLock::new(|| Tokenizer::train_bpe(&["ab ab ab cd cd e"], 300).unwrap().to_json());
static CONVERTED: LazyLock<Vec<u8>> = LazyLock::new(|| Tokenizer::from_bytes("f", LLAMA.clone()).unwrap().to_json());

/// Uses a tokenizer in every way, if the bytes are one.
fn try_tokenizer(bytes: Vec<u8>) {
    let Ok(tokenizer) = Tokenizer::from_bytes("f", bytes) else { return };
    for text in ["", "abab cd é", " \n a"] {
        if let Ok(ids) = tokenizer.encode(text) {
            let _ = tokenizer.decode(&ids);
        }
    }
    let mut decoder = tokenizer.decoder();
    for id in [0, 3, 200, 261, u32::MAX] {
        let _ = decoder.push(id);
    }
    let _ = decoder.finish();
    let _ = (tokenizer.vocab_size(), tokenizer.bos(), tokenizer.describe(), tokenizer.to_json());
}

fn try_data(bytes: &[u8]) {
    let _ = Documents::from_text("f", bytes.to_vec());
    let _ = Documents::from_jsonl("f", bytes);
    if let Ok(batches) = Tokens::from_bin("f", bytes, 1 << 15).and_then(|tokens| Batches::new(tokens, 3)) {
        let _ = (batches.batch(0, 0, 0, 2), batches.pass(2).count(), batches.tokens().fingerprint());
    }
}

/// Bytes of `good` with some replaced, and cut at some length.
fn damage(good: &[u8], changes: &[(prop::sample::Index, u8)], keep: prop::sample::Index) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for (at, byte) in changes {
        bytes[at.index(good.len())] = *byte;
    }
    if changes.len().is_multiple_of(2) {
        bytes.truncate(keep.index(good.len() + 1));
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[{\"text:ab\\\\0-9}\n\r\\PC]{0,80}") {
        try_data(&bytes);
        try_data(text.as_bytes());
        try_tokenizer(bytes);
        try_tokenizer(text.into_bytes());
    }

    #[test]
    fn damaged_tokenizers(
        which in 0..3usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![any::<u8>(), Just(b'0'), Just(b'"'), Just(b',')]), 0..6),
        keep in any::<prop::sample::Index>(),
    ) {
        try_tokenizer(damage([&LLAMA, &JSON, &CONVERTED][which], &changes, keep));
    }
}
