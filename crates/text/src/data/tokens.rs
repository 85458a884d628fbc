//! Token numbers in memory, with their source and a fingerprint.

use super::{DataError, Documents};
use crate::Tokenizer;
use std::path::Path;

/// A stream of tokens: what a run trains on or is judged by.
#[derive(Clone, Debug)]
pub struct Tokens {
    ids: Ids,
    source: String,
}

/// Two bytes a token where the vocabulary allows it: half the memory for almost every model.
#[derive(Clone, Debug)]
enum Ids {
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

impl Tokens {
    /// Encodes documents. Each starts with the tokenizer's start token; those of a JSONL file or of the corpus end with its end token,
    /// and where both are one token it stands once between two documents and once at the end.
    pub fn encode(documents: &Documents, tokenizer: &Tokenizer) -> Result<Self, DataError> {
        let (bos, eos) = (tokenizer.bos(), tokenizer.eos().filter(|_| documents.closed()));
        let mut ids = Ids::new(tokenizer.vocab_size());
        for text in documents.texts().iter().filter(|text| !text.is_empty()) {
            let tokens = tokenizer.encode(text).map_err(|source| DataError::Tokenizer { file: documents.source().to_owned(), source })?;
            ids.extend(bos.into_iter().chain(tokens).chain(eos.filter(|_| eos != bos)));
        }
        ids.extend(eos.filter(|_| eos == bos));
        Ok(Self { ids, source: documents.source().to_owned() })
    }

    /// Reads a token file as llama2.c and TinyStories write it: little-endian u16 numbers and nothing else.
    pub fn read_bin(path: impl AsRef<Path>, vocab_size: usize) -> Result<Self, DataError> {
        let path = path.as_ref();
        Self::from_bin(&path.display().to_string(), &super::read_file(path)?, vocab_size)
    }

    /// The same from the content of a file; `file` is the name that errors show.
    pub fn from_bin(file: &str, bytes: &[u8], vocab_size: usize) -> Result<Self, DataError> {
        let file = file.to_owned();
        if bytes.is_empty() {
            return Err(DataError::Empty { file });
        }
        let (pairs, odd) = bytes.as_chunks::<2>();
        if !odd.is_empty() {
            return Err(DataError::OddLength { file, bytes: bytes.len() });
        }
        let ids: Vec<u16> = pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
        if let Some(index) = ids.iter().position(|id| usize::from(*id) >= vocab_size) {
            return Err(DataError::TokenOutOfRange { file, index, token: ids[index].into(), vocab_size });
        }
        Ok(Self { ids: Ids::Narrow(ids), source: file })
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        match &self.ids {
            Ids::Narrow(ids) => ids.len(),
            Ids::Wide(ids) => ids.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where they are from, in words.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// BLAKE3 of the token numbers as little-endian u32, in hexadecimal: equal for equal data, however it was read.
    pub fn fingerprint(&self) -> String {
        let mut hash = blake3::Hasher::new();
        self.for_each(0..self.len(), |id| {
            hash.update(&id.to_le_bytes());
        });
        hash.finalize().to_hex().to_string()
    }

    /// Tokens `start..start + len`, fewer at the end of the data.
    pub fn window(&self, start: usize, len: usize) -> Vec<u32> {
        let end = start.saturating_add(len).min(self.len());
        let mut out = Vec::with_capacity(end.saturating_sub(start));
        self.for_each(start.min(end)..end, |id| out.push(id));
        out
    }

    fn for_each(&self, range: std::ops::Range<usize>, mut f: impl FnMut(u32)) {
        match &self.ids {
            Ids::Narrow(ids) => ids[range].iter().for_each(|id| f((*id).into())),
            Ids::Wide(ids) => ids[range].iter().for_each(|id| f(*id)),
        }
    }

    /// Checks the numbers against a model's vocabulary, which may be smaller than the tokenizer's.
    pub fn check_vocab(&self, vocab_size: usize) -> Result<(), DataError> {
        let position = match &self.ids {
            Ids::Narrow(ids) => ids.iter().position(|id| usize::from(*id) >= vocab_size),
            Ids::Wide(ids) => ids.iter().position(|id| *id as usize >= vocab_size),
        };
        match position {
            None => Ok(()),
            Some(index) => {
                let token = self.window(index, 1)[0];
                Err(DataError::TokenOutOfRange { file: self.source.clone(), index, token, vocab_size })
            }
        }
    }

    /// Sets the last part aside for validation: a twentieth, or `at_least` tokens if that is more. Data too small to keep nine times as
    /// much for training is left whole, and there is no validation.
    pub fn hold_out(mut self, at_least: usize) -> (Self, Option<Self>) {
        let held = (self.len() / 20).max(at_least);
        if held == 0 || held > self.len() / 10 {
            return (self, None);
        }
        let at = self.len() - held;
        let ids = match &mut self.ids {
            Ids::Narrow(ids) => Ids::Narrow(ids.split_off(at)),
            Ids::Wide(ids) => Ids::Wide(ids.split_off(at)),
        };
        let source = format!("the last {held} tokens of {}", self.source);
        (self, Some(Self { ids, source }))
    }
}

impl Ids {
    fn new(vocab_size: usize) -> Self {
        if vocab_size <= 1 << 16 { Self::Narrow(Vec::new()) } else { Self::Wide(Vec::new()) }
    }

    /// Appends numbers below the vocabulary size given to [`Self::new`].
    fn extend(&mut self, new: impl IntoIterator<Item = u32>) {
        match self {
            Self::Narrow(ids) => ids.extend(new.into_iter().map(|id| id as u16)),
            Self::Wide(ids) => ids.extend(new),
        }
    }
}
