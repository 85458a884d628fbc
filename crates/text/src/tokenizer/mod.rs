//! Text to token numbers and back.
//!
//! A [`Tokenizer`] is a Hugging Face `tokenizer.json` (loaded, or trained here by [`Tokenizer::train_bpe`]) or the `tokenizer.bin` of
//! llama2.c. Neither adds a start or end token by itself: [`Tokenizer::bos`] and [`Tokenizer::eos`] name them, and who joins
//! documents places them.

mod bytelevel;
mod error;
mod hf;
mod llama2c;
mod stream;

pub use error::TokenizerError;
pub use stream::Decoder;

use hf::Hf;
use llama2c::Llama2c;
use std::path::Path;

/// The special token of a trained tokenizer: number 0, which stands between documents.
pub const END_OF_TEXT: &str = "<|endoftext|>";

/// The fewest tokens a byte-level vocabulary can have: the 256 bytes and [`END_OF_TEXT`].
pub const LEAST_VOCAB: usize = 257;

/// A tokenizer of either kind. Encoding and decoding are pure functions; the value can be shared between threads.
pub struct Tokenizer(Kind);

enum Kind {
    Hf(Box<Hf>),
    Llama2c(Box<Llama2c>),
}

impl Tokenizer {
    /// Reads a `tokenizer.json` or a llama2.c `tokenizer.bin`; which of the two is seen from the content.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, TokenizerError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|source| TokenizerError::Read { file: file.clone(), source })?;
        Self::from_bytes(&file, bytes)
    }

    /// The same from the content of a file; `file` is the name that errors show.
    pub fn from_bytes(file: &str, bytes: Vec<u8>) -> Result<Self, TokenizerError> {
        let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
        // `tokenizer.bin` starts with a small little-endian i32, so with a zero among its first four bytes; JSON has no zero byte.
        let is_json = text.trim_ascii_start().first() == Some(&b'{') && !text.iter().take(4).any(|b| *b == 0);
        Ok(Self(if is_json {
            let text = text.to_vec();
            Kind::Hf(Box::new(Hf::from_json(file, text)?))
        } else {
            Kind::Llama2c(Box::new(Llama2c::parse(file, &bytes)?))
        }))
    }

    /// Trains a byte-level BPE of at most `vocab_size` tokens on `texts`. Data with few distinct words yields fewer:
    /// [`Self::vocab_size`] says how many. The same texts give the same tokenizer, byte for byte.
    pub fn train_bpe<S: AsRef<str> + Sync>(texts: &[S], vocab_size: usize) -> Result<Self, TokenizerError> {
        Ok(Self(Kind::Hf(Box::new(Hf::train(texts, vocab_size)?))))
    }

    /// The tokens of a text, without start or end token. llama2.c's kind puts a space before the text, as llama2.c does.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        match &self.0 {
            Kind::Hf(hf) => hf.encode(text),
            Kind::Llama2c(llama) => Ok(llama.encode(text)),
        }
    }

    /// The text of some tokens. Special tokens are left out, bytes that are no UTF-8 become U+FFFD, numbers outside the vocabulary
    /// are ignored, and the space that llama2.c's kind puts before a text is taken off again.
    pub fn decode(&self, ids: &[u32]) -> Result<String, TokenizerError> {
        match &self.0 {
            Kind::Hf(hf) => hf.decode(ids),
            Kind::Llama2c(llama) => Ok(llama.decode(ids)),
        }
    }

    /// A decoder that takes tokens one at a time.
    pub fn decoder(&self) -> Decoder<'_> {
        Decoder::new(self)
    }

    /// One more than the largest token number: what a model's `vocab_size` must at least be.
    pub fn vocab_size(&self) -> usize {
        match &self.0 {
            Kind::Hf(hf) => hf.vocab_size(),
            Kind::Llama2c(llama) => llama.vocab_size(),
        }
    }

    /// The token that starts a document, if there is one.
    pub fn bos(&self) -> Option<u32> {
        match &self.0 {
            Kind::Hf(hf) => hf.bos(),
            Kind::Llama2c(_) => Some(llama2c::BOS),
        }
    }

    /// The token that ends a document, if there is one. It may be the same as [`Self::bos`].
    pub fn eos(&self) -> Option<u32> {
        match &self.0 {
            Kind::Hf(hf) => hf.eos(),
            Kind::Llama2c(_) => Some(llama2c::EOS),
        }
    }

    /// The tokenizer as a Hugging Face `tokenizer.json`: a loaded one as it was read, llama2.c's kind converted.
    pub fn to_json(&self) -> Vec<u8> {
        match &self.0 {
            Kind::Hf(hf) => hf.json().to_vec(),
            Kind::Llama2c(llama) => llama.to_json(),
        }
    }

    /// What it is, in a few words for a report.
    pub fn describe(&self) -> String {
        match &self.0 {
            Kind::Hf(hf) => format!("{} of {} tokens", hf.kind(), hf.vocab_size()),
            Kind::Llama2c(llama) => format!("llama2.c tokenizer of {} tokens", llama.vocab_size()),
        }
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokenizer({})", self.describe())
    }
}
