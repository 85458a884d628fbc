//! Hugging Face tokenizers: loaded from a `tokenizer.json`, or a byte-level BPE trained here.

use super::bytelevel::{self, Cache};
use super::{END_OF_TEXT, LEAST_VOCAB, TokenizerError};
use std::collections::HashSet;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::tokenizer::{AddedToken, Trainer};
use tokenizers::{DecoderWrapper, ModelWrapper, Tokenizer};

/// Names of start tokens, most telling first.
const STARTS: [&str; 5] = ["<s>", "<|begin_of_text|>", "<bos>", "[BOS]", END_OF_TEXT];
/// Names of end tokens.
const ENDS: [&str; 5] = ["</s>", "<|end_of_text|>", "<eos>", "[EOS]", END_OF_TEXT];

/// A Hugging Face tokenizer and the file it is kept as.
pub(super) struct Hf {
    tokenizer: Tokenizer,
    json: Vec<u8>,
    vocab_size: usize,
    bos: Option<u32>,
    eos: Option<u32>,
    /// Present where the text may be cut into words that encode alone as they do in the text.
    cache: Option<Cache>,
}

impl Hf {
    pub(super) fn from_json(file: &str, json: Vec<u8>) -> Result<Self, TokenizerError> {
        let wrong = |reason: String| TokenizerError::Json { file: file.to_owned(), reason };
        // The crate panics on a syntax error inside the model or the decoder, so the syntax is checked before it sees the file.
        serde_json::from_slice::<serde_json::Value>(&json).map_err(|e| wrong(e.to_string()))?;
        let mut tokenizer = Tokenizer::from_bytes(&json).map_err(|e| wrong(e.to_string()))?;
        // A file may ask to cut or pad every text to some length, which is meant for batches of sentences, not for training data.
        tokenizer.with_truncation(None).map_err(|e| wrong(e.to_string()))?;
        tokenizer.with_padding(None);
        let largest = tokenizer.get_vocab(true).into_values().max().ok_or_else(|| wrong("it has no tokens".to_owned()))?;
        let token = |names: &[&str]| names.iter().find_map(|name| tokenizer.token_to_id(name));
        let (bos, eos) = (token(&STARTS), token(&ENDS));
        let cache = cuts_into_words(&tokenizer).then(|| Cache::new(added_tokens(&tokenizer)));
        Ok(Self { tokenizer, json, vocab_size: largest as usize + 1, bos, eos, cache })
    }

    pub(super) fn train<S: AsRef<str> + Sync>(texts: &[S], vocab_size: usize) -> Result<Self, TokenizerError> {
        if vocab_size < LEAST_VOCAB {
            return Err(TokenizerError::VocabTooSmall { asked: vocab_size, least: LEAST_VOCAB });
        }
        let failed = |e: tokenizers::Error| TokenizerError::Train(e.to_string());
        let end = AddedToken::from(END_OF_TEXT, true);
        let mut trainer = BpeTrainer::builder()
            .vocab_size(vocab_size)
            .show_progress(false)
            .special_tokens(vec![end.clone()])
            .initial_alphabet(ByteLevel::alphabet().into_iter().collect::<HashSet<char>>())
            .build();
        let pieces = texts.iter().flat_map(|text| bytelevel::chunks(text.as_ref()));
        trainer.feed(pieces, |chunk| Ok(bytelevel::spelt_words(chunk))).map_err(failed)?;
        let mut model = BPE::default();
        trainer.train(&mut model).map_err(failed)?;

        let mut tokenizer = Tokenizer::new(ModelWrapper::BPE(model));
        let level = ByteLevel::new(false, true, true);
        tokenizer.with_pre_tokenizer(Some(PreTokenizerWrapper::ByteLevel(level)));
        tokenizer.with_decoder(Some(DecoderWrapper::ByteLevel(level)));
        tokenizer.add_special_tokens([end]).map_err(failed)?;
        let json = tokenizer.to_string(true).map_err(failed)?;
        Self::from_json("the trained tokenizer", json.into_bytes())
    }

    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let Some(cache) = self.cache.as_ref().filter(|cache| !cache.concerns(text)) else { return self.encode_whole(text) };
        let mut out = Vec::with_capacity(text.len() / 3);
        for chunk in bytelevel::chunks(text) {
            if chunk.is_ascii() {
                for word in bytelevel::Words::new(chunk) {
                    cache.append(word, &mut out, |word| self.encode_whole(word))?;
                }
            } else {
                out.extend(self.encode_whole(chunk)?);
            }
        }
        Ok(out)
    }

    fn encode_whole(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        Ok(self.tokenizer.encode_fast(text, false).map_err(|e| TokenizerError::Encode(e.to_string()))?.get_ids().to_vec())
    }

    pub(super) fn decode(&self, ids: &[u32]) -> Result<String, TokenizerError> {
        self.tokenizer.decode(ids, true).map_err(|e| TokenizerError::Decode(e.to_string()))
    }

    /// Whether each token stands for some bytes, whatever its neighbours.
    pub(super) fn is_bytewise(&self) -> bool {
        matches!(self.tokenizer.get_decoder(), Some(DecoderWrapper::ByteLevel(_)))
    }

    /// The bytes of one token of such a tokenizer; none for special tokens.
    pub(super) fn bytes(&self, id: u32) -> Vec<u8> {
        match self.tokenizer.id_to_token(id) {
            Some(token) if !self.tokenizer.get_added_vocabulary().is_special_token(&token) => bytelevel::unspell(&token),
            _ => Vec::new(),
        }
    }

    pub(super) fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    pub(super) fn bos(&self) -> Option<u32> {
        self.bos
    }

    pub(super) fn eos(&self) -> Option<u32> {
        self.eos
    }

    pub(super) fn json(&self) -> &[u8] {
        &self.json
    }

    pub(super) fn kind(&self) -> &'static str {
        match (self.tokenizer.get_model(), self.tokenizer.get_pre_tokenizer()) {
            (ModelWrapper::BPE(_), Some(PreTokenizerWrapper::ByteLevel(_))) => "byte-level BPE",
            (ModelWrapper::BPE(_), _) => "BPE",
            (ModelWrapper::WordPiece(_), _) => "WordPiece",
            (ModelWrapper::WordLevel(_), _) => "word-level tokenizer",
            (ModelWrapper::Unigram(_), _) => "Unigram",
        }
    }
}

fn added_tokens(tokenizer: &Tokenizer) -> Vec<String> {
    let mut contents: Vec<_> = tokenizer.get_added_tokens_decoder().into_values().map(|token| token.content).collect();
    contents.sort_unstable();
    contents
}

/// Whether the tokenizer cuts text by GPT-2's rule and does nothing else that looks beyond a word, as those trained here.
fn cuts_into_words(tokenizer: &Tokenizer) -> bool {
    let level = match tokenizer.get_pre_tokenizer() {
        Some(PreTokenizerWrapper::ByteLevel(level)) => level,
        _ => return false,
    };
    let model = match tokenizer.get_model() {
        ModelWrapper::BPE(model) => model,
        _ => return false,
    };
    tokenizer.get_normalizer().is_none() && level.use_regex && !level.add_prefix_space && model.dropout.is_none()
}
