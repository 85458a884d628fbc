//! Integration tests of the whole path from text to batches.
#![allow(clippy::unwrap_used)]

use text::corpus::Corpus;
use text::{Batches, Documents, Tokenizer, Tokens};

#[test]
fn stories_become_batches_with_a_tokenizer_trained_on_them() {
    let documents = Documents::from_corpus(&Corpus::new(1), 0..200);
    let tokenizer = Tokenizer::train_bpe(documents.texts(), 1000).unwrap();
    let batches = Batches::new(Tokens::encode(&documents, &tokenizer).unwrap(), 64).unwrap();
    let batch = batches.batch(7, 3, 0, 4);
    assert_eq!(batch, batches.batch(7, 3, 0, 4));
    assert_eq!((batch.tokens.len(), batch.count), (256, 256));
    assert_eq!(batch.tokens[1..64], batch.targets[..63]);
}
