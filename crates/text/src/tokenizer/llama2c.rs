//! llama2.c's `tokenizer.bin`: an i32 (the longest token), then for each token its f32 score, its i32 length and its bytes.
//!
//! Tokens 0 to 2 are unknown, start and end; 3 to 258 are the bytes, spelt `<0x00>` to `<0xFF>`; a space is a space.
//! Encoding merges the neighbours whose joined token scores best, leftmost first, as llama2.c's `encode` does by scanning the whole
//! text after every merge; here a heap finds the same merges.

use super::TokenizerError;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};

/// Start of a document.
pub(super) const BOS: u32 = 1;
/// End of a document.
pub(super) const EOS: u32 = 2;
/// Number of the token of byte 0.
const FIRST_BYTE: u32 = 3;
/// Unknown, start and end, and the 256 bytes: no vocabulary has fewer.
const FIRST_PIECE: usize = 259;
/// llama2.c considers only merges that score above this.
const WORST_SCORE: f32 = -1e10;

/// A vocabulary in llama2.c's form.
pub(super) struct Llama2c {
    pieces: Vec<Piece>,
    ids: HashMap<String, u32>,
    merges: HashMap<(u32, u32), u32>,
    /// Tokens that take part in no merge, such as a line break: text can be cut there without changing a result.
    inert: Vec<bool>,
}

struct Piece {
    text: String,
    /// What the token decodes to.
    bytes: Vec<u8>,
    score: f32,
}

impl Llama2c {
    pub(super) fn parse(file: &str, bytes: &[u8]) -> Result<Self, TokenizerError> {
        let wrong = |offset, reason: String| TokenizerError::Llama2c { file: file.to_owned(), offset, reason };
        let mut at = 0;
        let mut take = |n: usize, what: &str| {
            let part = bytes.get(at..).and_then(|rest| rest.get(..n)).ok_or_else(|| wrong(at, format!("the file ends inside {what}")))?;
            at += n;
            Ok::<_, TokenizerError>((at - n, part))
        };
        let word = |part: &[u8]| part.try_into().map(i32::from_le_bytes).unwrap_or_default();

        let (_, head) = take(4, "the length of the longest token")?;
        let longest = word(head);
        if longest <= 0 {
            return Err(wrong(0, format!("the longest token has length {longest}")));
        }
        let mut pieces: Vec<Piece> = Vec::new();
        loop {
            let id = pieces.len();
            let Ok((_, score)) = take(4, "a score") else { break };
            let score = f32::from_bits(word(score) as u32);
            let (place, len) = take(4, &format!("the length of token {id}"))?;
            let len = word(len);
            if len < 0 || len > longest {
                return Err(wrong(place, format!("token {id} has length {len}, the longest is said to have {longest}")));
            }
            let (place, text) = take(len as usize, &format!("token {id}"))?;
            let text = std::str::from_utf8(text).map_err(|_| wrong(place, format!("token {id} is not UTF-8")))?;
            pieces.push(Piece { text: text.to_owned(), bytes: meaning(text), score });
        }
        if at != bytes.len() {
            return Err(wrong(at, format!("the file ends inside the score of token {}", pieces.len())));
        }
        if pieces.len() < FIRST_PIECE {
            return Err(wrong(
                at,
                format!("{} tokens; at least {FIRST_PIECE} are needed: three special ones and the 256 bytes", pieces.len()),
            ));
        }
        Ok(Self::new(pieces))
    }

    fn new(pieces: Vec<Piece>) -> Self {
        let mut ids = HashMap::with_capacity(pieces.len());
        for (id, piece) in pieces.iter().enumerate() {
            ids.entry(piece.text.clone()).or_insert(id as u32); // of two equal tokens the first is the one text becomes
        }
        let mut merges = HashMap::new();
        let mut inert = vec![true; pieces.len()];
        for (text, &id) in &ids {
            if pieces[id as usize].score > WORST_SCORE {
                for (left, right) in splits(text, &ids) {
                    merges.insert((left, right), id);
                    inert[left as usize] = false;
                    inert[right as usize] = false;
                }
            }
        }
        Self { pieces, ids, merges, inert }
    }

    pub(super) fn vocab_size(&self) -> usize {
        self.pieces.len()
    }

    /// Bytes of a token that follows `previous`. llama2.c drops the space in front of a document's first word.
    pub(super) fn piece(&self, previous: u32, id: u32) -> &[u8] {
        match self.pieces.get(id as usize) {
            Some(piece) if id >= FIRST_BYTE => match piece.bytes.strip_prefix(b" ") {
                Some(rest) if previous == BOS => rest,
                _ => &piece.bytes,
            },
            _ => &[],
        }
    }

    pub(super) fn decode(&self, ids: &[u32]) -> String {
        let mut previous = BOS;
        let mut bytes = Vec::new();
        for &id in ids {
            bytes.extend_from_slice(self.piece(previous, id));
            previous = id;
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        let mut out = Vec::with_capacity(text.len() / 3);
        if text.is_empty() {
            return out;
        }
        let mut merger = Merger { tokens: self, symbols: Vec::new(), heap: BinaryHeap::new() };
        if let Some(&space) = self.ids.get(" ") {
            merger.take(space, &mut out);
        }
        let mut buffer = [0; 4];
        for character in text.chars() {
            let character = character.encode_utf8(&mut buffer);
            match self.ids.get(&*character) {
                Some(&id) => merger.take(id, &mut out),
                None => character.bytes().for_each(|b| merger.take(u32::from(b) + FIRST_BYTE, &mut out)),
            }
        }
        merger.finish(&mut out);
        out
    }

    /// An equivalent Hugging Face `tokenizer.json`. Merges are ranked by score, so ids agree except where llama2.c's "leftmost of equal
    /// scores" meets two spellings of one token that overlap.
    pub(super) fn to_json(&self) -> Vec<u8> {
        let name = |id: u32| -> String {
            match id {
                0 => "<unk>".to_owned(),
                BOS => "<s>".to_owned(),
                EOS => "</s>".to_owned(),
                _ if self.ids.get(&self.pieces[id as usize].text) != Some(&id) => format!("<unused{id}>"), // JSON keys must differ
                _ => self.pieces[id as usize].text.replace(' ', "▁"),
            }
        };
        let mut merges: Vec<_> = self.merges.iter().filter(|(_, id)| **id >= FIRST_PIECE as u32).collect();
        merges.sort_by(|(a, x), (b, y)| order(self.pieces[**y as usize].score, self.pieces[**x as usize].score).then(a.cmp(b)));
        let vocab: serde_json::Map<_, _> = (0..self.pieces.len() as u32).map(|id| (name(id), id.into())).collect();
        let merges: Vec<_> = merges.iter().map(|((left, right), _)| [name(*left), name(*right)]).collect();
        let special = |id: u32| serde_json::json!({"id": id, "content": name(id), "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
        let json = serde_json::json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": [special(0), special(BOS), special(EOS)],
            "normalizer": {"type": "Sequence", "normalizers": [
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            ]},
            "pre_tokenizer": null,
            "post_processor": null,
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ]},
            "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null, "end_of_word_suffix": null,
                "fuse_unk": true, "byte_fallback": true, "vocab": vocab, "merges": merges},
        });
        json.to_string().into_bytes()
    }
}

/// What a token stands for: `<0x0A>` is one byte, everything else is itself.
fn meaning(text: &str) -> Vec<u8> {
    let hex = text.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>')).filter(|hex| hex.len() == 2);
    match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
        Some(byte) => vec![byte],
        None => text.as_bytes().to_vec(),
    }
}

/// Every way to write a token as two tokens.
fn splits<'a>(text: &'a str, ids: &'a HashMap<String, u32>) -> impl Iterator<Item = (u32, u32)> + 'a {
    let cuts = text.char_indices().map(|(at, _)| at).skip(1);
    cuts.filter_map(|at| Some((*ids.get(&text[..at])?, *ids.get(&text[at..])?)))
}

/// Order of two scores. -0 and 0 are equal, as they are in C.
fn order(a: f32, b: f32) -> Ordering {
    (a + 0.0).total_cmp(&(b + 0.0))
}

/// Merges one stretch of text at a time.
struct Merger<'a> {
    tokens: &'a Llama2c,
    symbols: Vec<Symbol>,
    heap: BinaryHeap<Candidate>,
}

/// A token of the stretch and its living neighbours; `GONE` marks one that was merged into its left neighbour.
struct Symbol {
    id: u32,
    left: usize,
    right: usize,
}

const GONE: u32 = u32::MAX;

struct Candidate {
    score: f32,
    at: Reverse<usize>,
    pair: (u32, u32),
    id: u32,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        order(self.score, other.score).then(self.at.cmp(&other.at))
    }
}
impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Candidate {}

impl Merger<'_> {
    /// Takes the next token of the text. One that never merges ends the stretch.
    fn take(&mut self, id: u32, out: &mut Vec<u32>) {
        if self.tokens.inert[id as usize] {
            self.finish(out);
            out.push(id);
        } else {
            let at = self.symbols.len();
            self.symbols.push(Symbol { id, left: at.wrapping_sub(1), right: at + 1 });
        }
    }

    /// Notes that the token at `at` could merge with the one to its right.
    fn offer(&mut self, at: usize) {
        let Some(left) = self.symbols.get(at) else { return };
        let Some(right) = self.symbols.get(left.right) else { return };
        let pair = (left.id, right.id);
        if let Some(&id) = self.tokens.merges.get(&pair) {
            self.heap.push(Candidate { score: self.tokens.pieces[id as usize].score, at: Reverse(at), pair, id });
        }
    }

    /// Merges what has been collected, appends it to `out` and starts afresh.
    fn finish(&mut self, out: &mut Vec<u32>) {
        for at in 0..self.symbols.len() {
            self.offer(at);
        }
        while let Some(Candidate { at: Reverse(at), pair, id, .. }) = self.heap.pop() {
            let Symbol { id: left_id, left, right } = self.symbols[at];
            let Some(&Symbol { id: right_id, right: after, .. }) = self.symbols.get(right) else { continue };
            if (left_id, right_id) != pair {
                continue; // one of the two has been merged with another neighbour since
            }
            self.symbols[at] = Symbol { id, left, right: after };
            self.symbols[right].id = GONE;
            if let Some(next) = self.symbols.get_mut(after) {
                next.left = at;
            }
            self.offer(at);
            self.offer(left);
        }
        out.extend(self.symbols.drain(..).map(|s| s.id).filter(|id| *id != GONE));
    }
}
