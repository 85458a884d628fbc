//! llama2.c's tokenizers, against llama2.c's own way of encoding.

use crate::real;
use proptest::prelude::*;
use std::collections::HashMap;
use text::{Tokenizer, TokenizerError};

/// The bytes of a `tokenizer.bin`.
pub(crate) fn file(longest: i32, pieces: &[(String, f32)]) -> Vec<u8> {
    let mut bytes = longest.to_le_bytes().to_vec();
    for (piece, score) in pieces {
        bytes.extend(score.to_le_bytes());
        bytes.extend((piece.len() as i32).to_le_bytes());
        bytes.extend(piece.as_bytes());
    }
    bytes
}

/// A small vocabulary: special tokens, bytes, the characters of `letters`, then `words`.
pub(crate) fn vocabulary(letters: &str, words: &[(&str, f32)]) -> Vec<(String, f32)> {
    let mut pieces: Vec<_> = ["<unk>", "\n<s>\n", "\n</s>\n"].map(|s| (s.to_owned(), 0.0)).into();
    pieces.extend((0..=255).map(|b: u8| (format!("<0x{b:02X}>"), 0.0)));
    pieces.extend(letters.chars().map(|c| (c.to_string(), -1e6)));
    pieces.extend(words.iter().map(|(w, s)| ((*w).to_owned(), *s)));
    pieces
}

/// The loop of llama2.c's `encode`: after every merge look at all neighbours again.
struct Naive {
    pieces: Vec<(String, f32)>,
    ids: HashMap<String, u32>,
}

impl Naive {
    fn new(pieces: Vec<(String, f32)>) -> Self {
        let ids = pieces.iter().enumerate().rev().map(|(id, (piece, _))| (piece.clone(), id as u32)).collect();
        Self { pieces, ids }
    }

    fn parse(bytes: &[u8]) -> Self {
        let word = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (mut at, mut pieces) = (4, Vec::new());
        while at < bytes.len() {
            let (score, len) = (f32::from_bits(word(at) as u32), word(at + 4) as usize);
            pieces.push((String::from_utf8(bytes[at + 8..at + 8 + len].to_vec()).unwrap(), score));
            at += 8 + len;
        }
        Self::new(pieces)
    }

    fn encode(&self, text: &str) -> Vec<u32> {
        if text.is_empty() {
            return Vec::new();
        }
        let mut ids = vec![self.ids[" "]];
        for c in text.chars() {
            match self.ids.get(&c.to_string()) {
                Some(id) => ids.push(*id),
                None => ids.extend(c.to_string().bytes().map(|b| u32::from(b) + 3)),
            }
        }
        loop {
            let (mut best, mut found) = (-1e10, None);
            for at in 0..ids.len() - 1 {
                let joined = format!("{}{}", self.pieces[ids[at] as usize].0, self.pieces[ids[at + 1] as usize].0);
                if let Some(&id) = self.ids.get(&joined)
                    && self.pieces[id as usize].1 > best
                {
                    (best, found) = (self.pieces[id as usize].1, Some((at, id)));
                }
            }
            let Some((at, id)) = found else { return ids };
            ids.splice(at..at + 2, [id]);
        }
    }
}

#[test]
fn real_texts_encode_as_llama2c_encodes_them() {
    let Some(sample) = real("tinystories-sample.txt") else { return };
    let sample = std::fs::read_to_string(sample).unwrap();
    for name in ["stories260K-tok512.bin", "llama2c-tokenizer.bin"] {
        let Some(path) = real(name) else { return };
        let bytes = std::fs::read(&path).unwrap();
        let (naive, tokenizer) = (Naive::parse(&bytes), Tokenizer::from_file(&path).unwrap());
        assert_eq!(tokenizer.vocab_size(), naive.pieces.len());
        for line in sample.lines() {
            let line: String = line.chars().take(700).collect();
            let ids = tokenizer.encode(&line).unwrap();
            assert_eq!(ids, naive.encode(&line));
            assert_eq!(tokenizer.decode(&ids).unwrap(), line);
        }
        for text in ["", " ", "      six", "a\n\n\tb", "naïve 日本語 🦙", "<0x0A>", "aaaaaaaaaaaaaa  aaaa    aaa"] {
            let ids = tokenizer.encode(text).unwrap();
            assert_eq!(ids, naive.encode(text), "{text:?}");
            if text != "<0x0A>" {
                assert_eq!(tokenizer.decode(&ids).unwrap(), text);
            }
        }
        let whole = tokenizer.encode(&sample).unwrap();
        assert_eq!(tokenizer.decode(&whole).unwrap(), sample);
    }
}

#[test]
fn the_32000_vocabulary_is_llama_2s_and_fast() {
    let (Some(path), Some(plays)) = (real("llama2c-tokenizer.bin"), real("tinyshakespeare.txt")) else { return };
    let tokenizer = Tokenizer::from_file(path).unwrap();
    assert_eq!(tokenizer.encode("Once upon a time").unwrap(), [9038, 2501, 263, 931]);
    assert_eq!((tokenizer.bos(), tokenizer.eos(), tokenizer.vocab_size()), (Some(1), Some(2), 32_000));
    let plays = std::fs::read_to_string(plays).unwrap();
    let start = std::time::Instant::now();
    let ids = tokenizer.encode(&plays).unwrap();
    eprintln!("{} bytes, {} tokens in {:?}", plays.len(), ids.len(), start.elapsed());
    assert_eq!(ids.len(), 368_633); // the count of sentencepiece and of the reference tokenizer.json
    assert_eq!(tokenizer.decode(&ids).unwrap(), plays);
}

#[test]
fn the_converted_tokenizer_json_gives_the_same_ids() {
    for name in ["stories260K-tok512.bin", "llama2c-tokenizer.bin"] {
        let (Some(path), Some(plays), Some(stories)) = (real(name), real("tinyshakespeare.txt"), real("tinystories-sample.txt")) else {
            return;
        };
        let own = Tokenizer::from_file(path).unwrap();
        let converted = Tokenizer::from_bytes("converted", own.to_json()).unwrap();
        assert_eq!((converted.vocab_size(), converted.bos(), converted.eos()), (own.vocab_size(), own.bos(), own.eos()));
        for path in [plays, stories] {
            let text = std::fs::read_to_string(path).unwrap();
            let ids = own.encode(&text).unwrap();
            assert!(ids == converted.encode(&text).unwrap(), "{name}");
            assert_eq!(converted.decode(&ids).unwrap(), text);
        }
        for text in ["", "a", " leading", "x  y   z    w", "naïve 日本語 🦙\n", "tab\there"] {
            let ids = own.encode(text).unwrap();
            assert_eq!(ids, converted.encode(text).unwrap(), "{text:?}");
            assert_eq!(own.decode(&ids).unwrap(), converted.decode(&ids).unwrap());
            let mut decoder = converted.decoder();
            let mut joined: String = ids.iter().map(|id| decoder.push(*id).unwrap()).collect();
            joined += &decoder.finish().unwrap();
            assert_eq!(joined, text);
        }
    }
}

#[test]
fn a_small_vocabulary_works_as_specified() {
    let words = [(" t", -1.0), ("he", -2.0), (" the", -3.0), (" th", -4.0), ("aa", -5.0), ("aaa", -5.0)];
    let bytes = file(6, &vocabulary(" thea", &words));
    let tokenizer = Tokenizer::from_bytes("small", bytes).unwrap();
    let id = |piece: &str| {
        259 + " thea".chars().map(String::from).chain(words.iter().map(|(w, _)| (*w).to_owned())).position(|p| p == piece).unwrap() as u32
    };
    assert_eq!(tokenizer.encode("the").unwrap(), [id(" the")]); // " t" first, then "he", then both
    assert_eq!(tokenizer.encode("é").unwrap(), [id(" "), 0xC3 + 3, 0xA9 + 3]);
    assert_eq!(tokenizer.encode("aaaa").unwrap(), [id(" "), id("aaa"), id("a")]); // equal scores: leftmost first
    assert_eq!(tokenizer.decode(&[1, id(" the"), id(" the"), 2, 1, id(" the"), 0xFF + 3, 99_999]).unwrap(), "the thethe\u{FFFD}");
    let mut decoder = tokenizer.decoder();
    let pieces: Vec<_> = [id(" "), 0xC3 + 3, 0xA9 + 3, 0xC3 + 3, id("a"), 0xF0 + 3].into_iter().map(|i| decoder.push(i).unwrap()).collect();
    assert_eq!(pieces, ["", "", "é", "", "\u{FFFD}a", ""]);
    assert_eq!(decoder.finish().unwrap(), "\u{FFFD}");
}

#[test]
fn damaged_files_are_refused_with_the_place() {
    let good = file(6, &vocabulary("ab", &[("ab", 0.0)]));
    assert!(Tokenizer::from_bytes("f", good.clone()).is_ok());
    for end in 0..good.len() {
        // The last three tokens are optional; a file cut right between two tokens is a smaller vocabulary.
        match Tokenizer::from_bytes("f", good[..end].to_vec()) {
            Ok(tokenizer) => assert!((259..262).contains(&tokenizer.vocab_size())),
            Err(e) => assert!(e.to_string().contains("f is neither") && matches!(e, TokenizerError::Llama2c { .. }), "{e}"),
        }
    }
    let too_long = Tokenizer::from_bytes("f", file(3, &vocabulary("ab", &[]))).unwrap_err().to_string();
    assert!(too_long.contains("byte 8") && too_long.contains("length 5"), "{too_long}");
    let mut not_utf8 = good.clone();
    *not_utf8.last_mut().unwrap() = 0xFF;
    let message = Tokenizer::from_bytes("f", not_utf8).unwrap_err().to_string();
    assert!(message.contains("token 261 is not UTF-8"), "{message}");
    assert!(Tokenizer::from_file("/no/such/file").unwrap_err().to_string().contains("/no/such/file"));
    if let Some(model) = real("llama2-tokenizer.model") {
        assert!(matches!(Tokenizer::from_file(model), Err(TokenizerError::Llama2c { .. })));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Scores from a small set, so that ties are the rule; words over three letters, so that they overlap in every way.
    #[test]
    fn the_heap_finds_the_merges_of_the_naive_loop(
        words in prop::collection::btree_map("[ab ]{2,5}", 0..6i8, 0..40),
        text in "[abc \n]{0,60}",
    ) {
        let words: Vec<_> = words.iter().map(|(w, s)| (w.as_str(), f32::from(*s) - 3.0)).collect();
        let pieces = vocabulary("ab ", &words);
        let tokenizer = Tokenizer::from_bytes("f", file(6, &pieces)).unwrap();
        let ids = tokenizer.encode(&text).unwrap();
        prop_assert_eq!(&ids, &Naive::new(pieces).encode(&text));
        prop_assert_eq!(tokenizer.decode(&ids).unwrap(), text.clone());

        let mut decoder = tokenizer.decoder();
        let mut joined: String = ids.iter().map(|id| decoder.push(*id).unwrap()).collect();
        joined += &decoder.finish().unwrap();
        prop_assert_eq!(joined, text);
    }
}
