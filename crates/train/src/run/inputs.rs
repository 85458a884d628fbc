//! What a run learns from: tokenizer, training tokens, validation tokens. Read and checked before anything is built or written.

use crate::plan::{DataSource, Plan};
use std::path::{Path, PathBuf};
use text::corpus::Corpus;
use text::{Batches, DataError, Documents, Tokenizer, TokenizerError, Tokens};

/// The book of stories that the built-in corpus is; the run's own seed does not choose it, so that runs can be compared.
pub const BUILT_IN_SEED: u64 = 0;

/// Everything a run reads.
pub struct Inputs {
    /// The tokenizer; a token file needs none.
    pub tokenizer: Option<Tokenizer>,
    /// What training batches are cut from.
    pub train: Batches,
    /// What the model is measured on, if there is enough data for that.
    pub val: Option<Batches>,
    /// Fingerprint of the training tokens.
    pub data_fingerprint: String,
    tokenizer_json: Option<Vec<u8>>,
}

/// Why there is nothing to learn from.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// A token file, and nothing that says what its numbers mean.
    #[error("{} holds token numbers: say how many tokens there are with --vocab-size N, or give the --tokenizer it was made with", file.display())]
    NoVocabulary {
        /// The file.
        file: PathBuf,
    },
    /// The tokenizer knows tokens that the model does not.
    #[error(
        "the tokenizer has {tokenizer} tokens and the model only {model}: give a --tokenizer of at most {model} tokens, or a model with --vocab-size {tokenizer}"
    )]
    Vocabulary {
        /// The tokenizer's.
        tokenizer: usize,
        /// The model's.
        model: usize,
    },
    /// A model with weights needs the tokenizer they were trained with.
    #[error("{model} has no tokenizer.json beside its weights: give the one it was trained with as --tokenizer")]
    NoTokenizer {
        /// The model.
        model: String,
    },
}

/// A file of token numbers, by its name.
pub fn is_token_file(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("bin"))
}

impl Inputs {
    /// Reads what `plan` names. `kept` is the tokenizer that the run has already; it is used unless the plan names another.
    ///
    /// # Errors
    /// The first thing that is missing, damaged, too short or does not fit the model.
    pub fn read(plan: &Plan, kept: Option<&Path>) -> Result<Inputs, InputError> {
        let documents = match &plan.data {
            DataSource::BuiltIn => Some(Documents::from_corpus(&Corpus::new(BUILT_IN_SEED), Corpus::TRAINING)),
            DataSource::File(path) if is_token_file(path) => None,
            DataSource::File(path) => Some(Documents::read(path)?),
        };
        let tokenizer = tokenizer(plan, kept, documents.as_ref())?;
        if let Some(t) = &tokenizer
            && t.vocab_size() > plan.model.vocab_size
        {
            return Err(InputError::Vocabulary { tokenizer: t.vocab_size(), model: plan.model.vocab_size });
        }
        let read = |path: &Path, documents: Option<Documents>| -> Result<Tokens, InputError> {
            let tokens = match (documents, &tokenizer) {
                (Some(documents), Some(tokenizer)) => Tokens::encode(&documents, tokenizer)?,
                _ if tokenizer.is_none() && !plan.vocab_named => return Err(InputError::NoVocabulary { file: path.into() }),
                _ => Tokens::read_bin(path, plan.model.vocab_size)?,
            };
            tokens.check_vocab(plan.model.vocab_size)?;
            Ok(tokens)
        };
        let path = match &plan.data {
            DataSource::File(path) => path.as_path(),
            DataSource::BuiltIn => Path::new(""),
        };
        let tokens = read(path, documents)?;
        let (tokens, val) = match (&plan.val_data, &plan.data) {
            (Some(path), _) => {
                let documents = if is_token_file(path) { None } else { Some(Documents::read(path)?) };
                (tokens, Some(read(path, documents)?))
            }
            (None, DataSource::BuiltIn) => {
                (tokens, Some(read(path, Some(Documents::from_corpus(&Corpus::new(BUILT_IN_SEED), Corpus::VALIDATION)))?))
            }
            (None, DataSource::File(_)) => tokens.hold_out(plan.seq + 1),
        };
        Ok(Inputs {
            data_fingerprint: tokens.fingerprint(),
            train: Batches::new(tokens, plan.seq)?,
            val: val.map(|tokens| Batches::new(tokens, plan.seq)).transpose()?,
            tokenizer_json: tokenizer.as_ref().map(Tokenizer::to_json),
            tokenizer,
        })
    }

    /// The tokenizer as a file.
    pub fn tokenizer_json(&self) -> Option<&[u8]> {
        self.tokenizer_json.as_deref()
    }

    /// Fingerprint of that file.
    pub fn tokenizer_fingerprint(&self) -> Option<String> {
        self.tokenizer_json.as_ref().map(|json| blake3::hash(json).to_hex().to_string())
    }
}

/// The plan's tokenizer, else the one the run has, else the one beside the weights, else a new one trained on the documents.
fn tokenizer(plan: &Plan, kept: Option<&Path>, documents: Option<&Documents>) -> Result<Option<Tokenizer>, InputError> {
    if let Some(path) = plan.tokenizer.as_deref().or(kept) {
        return Ok(Some(Tokenizer::from_file(path)?));
    }
    let Some(documents) = documents else { return Ok(None) };
    if plan.weights.is_some() {
        return Err(InputError::NoTokenizer { model: plan.model_name.clone() });
    }
    let vocab = plan.model.vocab_size;
    Ok(Some(match &plan.data {
        DataSource::BuiltIn => {
            let corpus = Corpus::new(BUILT_IN_SEED);
            let stories: Vec<String> = Corpus::TOKENIZER.map(|index| corpus.story(index)).collect();
            Tokenizer::train_bpe(&stories, vocab)?
        }
        DataSource::File(_) => Tokenizer::train_bpe(documents.texts(), vocab)?,
    }))
}
