//! What comes later changes nothing before.

use crate::support::{Golden, paths, variants};
use train::Batch;

#[test]
fn a_future_token_changes_no_bit_of_an_earlier_logit() {
    let golden = Golden::load("mha64");
    for path in paths() {
        for options in variants() {
            let net = golden.net(options, path, 2);
            let batch = &golden.steps()[0][0];
            let logits = |batch: &Batch| {
                net.evaluate(batch).unwrap();
                let read = net.forward.head.read().unwrap();
                (0..golden.seq).map(|c| read.column(c)).collect::<Vec<_>>()
            };
            let before = logits(batch);
            for changed in [1, 17, golden.seq - 1] {
                let mut other = batch.clone();
                other.tokens[changed] = (other.tokens[changed] + 1) % golden.config.vocab_size as u32;
                let after = logits(&other);
                assert_eq!(before[..changed], after[..changed], "{options:?} {path:?}: token {changed} was seen before its time");
                assert_ne!(before[changed], after[changed], "{options:?} {path:?}: token {changed} is not seen at all");
            }
        }
    }
}
