//! The word rule of GPT-2's byte-level BPE, for speed: a text's tokens are its words' tokens one after another, and texts repeat
//! their words, so each word is encoded once. The general path of the `tokenizers` crate spends about a second a megabyte.
//!
//! The rule is the pattern `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`.

use super::TokenizerError;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use tokenizers::OffsetReferential;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::tokenizer::{OffsetType, PreTokenizedString, PreTokenizer};

/// Length in bytes at which a text is cut, at the next place where that changes nothing.
const CHUNK: usize = 1 << 12;
/// Words kept in a cache; what comes later is encoded each time, and so is a word too long to be one.
const MOST_WORDS: usize = 1 << 16;
const LONGEST_WORD: usize = 64;

/// Cuts a text before words at the start of a line, where no word of GPT-2's rule reaches across.
pub(super) fn chunks(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (chunk, after) = rest.split_at(cut(rest));
        rest = after;
        Some(chunk)
    })
}

/// The first place past [`CHUNK`] after a line break that stands alone between two characters that are no space: a run of spaces is
/// one word less its last, so it must not be cut.
fn cut(text: &str) -> usize {
    let mut from = CHUNK.min(text.len());
    while let Some(found) = text.as_bytes()[from..].iter().position(|b| *b == b'\n') {
        let (before, after) = (&text[..from + found], &text[from + found + 1..]);
        let solid = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace());
        if solid(before.chars().next_back()) && solid(after.chars().next()) {
            return before.len() + 1;
        }
        from += found + 1;
    }
    text.len()
}

/// The words of a text in the byte-level alphabet, as BPE training counts them.
pub(super) fn spelt_words(chunk: &str) -> Vec<String> {
    static LETTERS: LazyLock<Vec<char>> = LazyLock::new(|| (0..=255).map(letter).collect());
    if chunk.is_ascii() {
        return Words::new(chunk).map(|word| word.bytes().map(|b| LETTERS[usize::from(b)]).collect()).collect();
    }
    let mut words = PreTokenizedString::from(chunk);
    match ByteLevel::new(false, true, true).pre_tokenize(&mut words) {
        Ok(()) => words.get_splits(OffsetReferential::Original, OffsetType::None).into_iter().map(|(word, ..)| word.to_owned()).collect(),
        Err(_) => Vec::new(), // the rule has no failing case: the pattern is fixed and matches any text
    }
}

/// The character that stands for a byte: itself where it is printable, one from U+0100 on where not.
fn letter(byte: u8) -> char {
    let printable = |b: u8| matches!(b, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    if printable(byte) {
        return char::from(byte);
    }
    let rank = (0..byte).filter(|b| !printable(*b)).count() as u32;
    char::from_u32(0x100 + rank).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The bytes that a token of the byte-level alphabet stands for; a token with other characters is itself, as the crate has it.
pub(super) fn unspell(token: &str) -> Vec<u8> {
    static BYTES: LazyLock<HashMap<char, u8>> = LazyLock::new(|| (0..=255).map(|b| (letter(b), b)).collect());
    token.chars().map(|c| BYTES.get(&c).copied()).collect::<Option<Vec<u8>>>().unwrap_or_else(|| token.as_bytes().to_vec())
}

/// The words of an ASCII text by GPT-2's rule.
pub(super) struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    /// `text` must be ASCII: which other characters are letters is left to the crate's own path.
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let first = *self.rest.as_bytes().first()?;
        let (word, rest) = self.rest.split_at(word_length(self.rest.as_bytes(), first));
        self.rest = rest;
        Some(word)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Space,
    Letter,
    Digit,
    Other,
}

fn class(byte: u8) -> Class {
    match byte {
        b'\t'..=b'\r' | b' ' => Class::Space,
        b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
        b'0'..=b'9' => Class::Digit,
        _ => Class::Other,
    }
}

fn word_length(text: &[u8], first: u8) -> usize {
    const SHORT_FORMS: [&[u8]; 7] = [b"'s", b"'t", b"'re", b"'ve", b"'m", b"'ll", b"'d"];
    if let Some(form) = SHORT_FORMS.iter().find(|form| text.starts_with(form)) {
        return form.len();
    }
    let run = |from: usize, kind| text[from..].iter().take_while(|b| class(**b) == kind).count();
    // One space belongs to the word after it.
    let start = usize::from(first == b' ');
    match text.get(start).map(|b| class(*b)) {
        Some(kind) if kind != Class::Space => start + run(start, kind),
        _ => {
            // A run of spaces leaves its last one to the word after it.
            let spaces = run(0, Class::Space);
            if spaces > 1 && spaces < text.len() { spaces - 1 } else { spaces }
        }
    }
}

/// Tokens of words met before.
pub(super) struct Cache {
    words: Mutex<HashMap<Box<str>, Box<[u32]>>>,
    /// Tokens that are looked for in the text before it is cut into words.
    added: Vec<String>,
}

impl Cache {
    pub(super) fn new(added: Vec<String>) -> Self {
        Self { words: Mutex::new(HashMap::new()), added }
    }

    /// Whether some added token occurs in the text, so that cutting it into words first would be wrong.
    pub(super) fn concerns(&self, text: &str) -> bool {
        self.added.iter().any(|token| text.contains(token.as_str()))
    }

    /// Appends the tokens of one word, from memory or by `encode`.
    pub(super) fn append(
        &self,
        word: &str,
        out: &mut Vec<u32>,
        encode: impl FnOnce(&str) -> Result<Vec<u32>, TokenizerError>,
    ) -> Result<(), TokenizerError> {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ids) = words.get(word) {
            out.extend_from_slice(ids);
            return Ok(());
        }
        let ids = encode(word)?;
        out.extend_from_slice(&ids);
        if words.len() < MOST_WORDS && word.len() <= LONGEST_WORD {
            words.insert(word.into(), ids.into());
        }
        Ok(())
    }
}
