//! A model from wherever it is: the one door for `--model` and `import`.

use crate::checkpoint::{load_params, verify};
use crate::error::{Context, StoreError};
use crate::fs::{FileSystem, Kind};
use crate::hf::{self, SpecialTokens};
use crate::run::{Skipped, checkpoints, find_latest};
use crate::{Verified, llama2c, manifest};
use model::Config;
use std::path::{Path, PathBuf};

/// What kind of file or directory a model came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A llama2.c `.bin` file.
    Llama2c,
    /// A Hugging Face directory.
    HuggingFace,
    /// A checkpoint of ours, of this step.
    Checkpoint {
        /// Steps trained.
        step: u64,
    },
}

/// A model in memory.
#[derive(Debug)]
pub struct Model {
    /// Its configuration.
    pub config: Config,
    /// Its parameters, in the order of [`Config::parameters`].
    pub params: Vec<Vec<f32>>,
    /// Where it came from.
    pub origin: Origin,
    /// The directory that was read, or the file's: a tokenizer is looked for beside the weights.
    pub dir: PathBuf,
    /// The `tokenizer.json` beside the weights, if there is one.
    pub tokenizer: Option<PathBuf>,
    /// Special tokens, as far as a `config.json` says.
    pub special: SpecialTokens,
    /// For a run: newer checkpoints that did not verify.
    pub skipped: Vec<Skipped>,
}

/// Opens a model: a llama2.c `.bin` file, a Hugging Face directory, a checkpoint directory, or a run directory (its newest
/// checkpoint that verifies).
///
/// # Errors
/// A path that is none of these, with what was looked for; else as the reader of that kind.
pub fn open_model(fs: &dyn FileSystem, path: &Path) -> std::result::Result<Model, StoreError> {
    let has = |name: &str, kind: Kind| -> std::result::Result<bool, StoreError> {
        let at = path.join(name);
        Ok(fs.kind(&at).doing("look at", &at)? == Some(kind))
    };
    match fs.kind(path).doing("look at", path)? {
        None => {
            Err(StoreError::bad(path, "does not exist: a model is a llama2.c .bin file, a Hugging Face directory, a checkpoint or a run"))
        }
        Some(Kind::Dir) if has(manifest::NAME, Kind::File)? => from_checkpoint(fs, &verify(fs, path)?, Vec::new()),
        Some(Kind::Dir) if has("checkpoints", Kind::Dir)? => {
            let found = find_latest(fs, path)?;
            match (found.checkpoint, found.skipped.first()) {
                (Some(checkpoint), _) => from_checkpoint(fs, &checkpoint, found.skipped),
                (None, Some(first)) => Err(StoreError::bad(path, format!("has no checkpoint that verifies; the newest: {}", first.reason))),
                (None, None) => Err(StoreError::bad(&checkpoints(path), "holds no checkpoint yet")),
            }
        }
        Some(Kind::Dir) if has("config.json", Kind::File)? => {
            let (config, params, special) = hf::read_dir(fs, path)?;
            finish(fs, config, params, Origin::HuggingFace, path, special)
        }
        Some(Kind::Dir) => Err(StoreError::bad(
            path,
            "holds no model: neither config.json (Hugging Face), manifest.json (checkpoint) nor checkpoints/ (run)",
        )),
        Some(_) => {
            let (config, params) = llama2c::read(fs, path)?;
            finish(fs, config, params, Origin::Llama2c, &crate::files::parent(path), SpecialTokens::default())
        }
    }
}

fn from_checkpoint(fs: &dyn FileSystem, checkpoint: &Verified, skipped: Vec<Skipped>) -> std::result::Result<Model, StoreError> {
    let params = load_params(fs, checkpoint)?;
    let dir = checkpoint.dir();
    let at = dir.join("config.json");
    let special = match fs.kind(&at).doing("look at", &at)? {
        Some(Kind::File) => hf::read_config(fs, &at)?.1,
        _ => SpecialTokens::default(),
    };
    let model = finish(fs, checkpoint.config().clone(), params, Origin::Checkpoint { step: checkpoint.step() }, dir, special)?;
    Ok(Model { skipped, ..model })
}

fn finish(
    fs: &dyn FileSystem,
    config: Config,
    params: Vec<Vec<f32>>,
    origin: Origin,
    dir: &Path,
    special: SpecialTokens,
) -> std::result::Result<Model, StoreError> {
    let tokenizer = dir.join("tokenizer.json");
    let there = origin != Origin::Llama2c && fs.kind(&tokenizer).doing("look at", &tokenizer)? == Some(Kind::File);
    Ok(Model { config, params, origin, dir: dir.to_path_buf(), tokenizer: there.then_some(tokenizer), special, skipped: Vec::new() })
}
