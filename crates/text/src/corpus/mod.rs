//! The built-in corpus: short stories for children told by a grammar, so that the first training run needs no file.
//!
//! A story has a few characters with names and pronouns, a place, a thing, a trouble, some help and an ending, and keeps to them: the
//! thing named first is the one found last. [`Corpus::story`] is a pure function of the seed and the story's number.

mod check;
mod grammar;
mod tell;

pub use check::{finished_sentences, known_share, words_of};

use crate::rng::Dice;
use grammar::Grammar;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

static GRAMMAR: LazyLock<Grammar> = LazyLock::new(|| {
    Grammar::parse(include_str!("lists.txt"), include_str!("plots.txt")).expect("the grammar is part of the program, and a test reads it")
});

static WORDS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    // Pronouns and the kinds of children are the teller's own, and so is "an".
    let mut words: BTreeSet<String> = ["an", "girl", "boy", "he", "she", "him", "her", "his"].map(str::to_owned).into();
    GRAMMAR.for_each_text(|text| words.extend(words_of(text)));
    words
});

/// All words a story can contain, in lower case.
pub fn words() -> &'static BTreeSet<String> {
    &WORDS
}

/// An endless book of stories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corpus {
    seed: u64,
}

impl Corpus {
    /// Stories that training uses: some 7 million words, several times what a few minutes of training see, told and encoded in about a
    /// second.
    pub const TRAINING: Range<u64> = 0..60_000;
    /// Stories kept for validation.
    pub const VALIDATION: Range<u64> = 1 << 40..(1 << 40) + 400;
    /// Stories that a tokenizer is trained on, the first ones of [`Self::TRAINING`]: enough to hold almost every word of the grammar.
    pub const TOKENIZER: Range<u64> = 0..20_000;

    /// The book of this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Its seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Story number `index`, one line of text.
    pub fn story(&self, index: u64) -> String {
        tell::tell(&GRAMMAR, Dice::new(*b"story\0\0\0", [self.seed, index, 0]))
    }
}
