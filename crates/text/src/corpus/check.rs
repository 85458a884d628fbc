//! Judging a sample: are its words the grammar's, does it finish sentences, is it a training story?

use super::Corpus;
use std::ops::Range;

/// The words of a text, in lower case: letters and apostrophes between anything else.
pub fn words_of(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphabetic() && c != '\'').map(|word| word.trim_matches('\'').to_lowercase()).filter(|word| !word.is_empty())
}

/// The share of a text's words that the grammar has, 0 to 1; 0 for a text without words.
pub fn known_share(text: &str) -> f64 {
    let (mut known, mut all) = (0, 0);
    for word in words_of(text) {
        all += 1;
        known += usize::from(super::words().contains(&word));
    }
    if all == 0 { 0.0 } else { f64::from(known as u32) / f64::from(all) }
}

/// Finished sentences: words up to a `.`, `!` or `?`, which a quotation mark may follow. A question or a shout inside a sentence, as in
/// `"Where is it?" asked Tom.`, ends none: a small letter follows.
pub fn finished_sentences(text: &str) -> usize {
    let words: Vec<&str> = text.split_whitespace().collect();
    let goes_on = |at: usize| words.get(at).is_some_and(|word| word.starts_with(char::is_lowercase));
    let mut length = 0;
    let mut sentences = 0;
    for (at, word) in words.iter().enumerate() {
        length += usize::from(word.contains(char::is_alphabetic));
        if word.trim_end_matches('"').ends_with(['.', '!', '?']) && length > 0 && !goes_on(at + 1) {
            sentences += 1;
            length = 0;
        }
    }
    sentences
}

impl Corpus {
    /// For each sample the number of a story of `stories` that it repeats word for word: one it contains whole, or one it is a piece
    /// of. Case, spaces and punctuation do not count.
    pub fn find_copies(&self, stories: Range<u64>, samples: &[&str]) -> Vec<Option<u64>> {
        let normal = |text: &str| words_of(text).fold(String::from(" "), |all, word| all + &word + " ");
        let samples: Vec<String> = samples.iter().map(|sample| normal(sample)).collect();
        let mut found = vec![None; samples.len()];
        for index in stories {
            let story = normal(&self.story(index));
            for (sample, found) in samples.iter().zip(&mut found) {
                if found.is_none() && (sample.contains(&story) || story.contains(sample.as_str())) {
                    *found = Some(index);
                }
            }
        }
        found
    }
}
