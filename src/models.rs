//! Models that are there already, with the tokenizers they were trained with.

use crate::console::Console;
use anyhow::{Context, Result};
use std::path::Path;
use store::{Model, RealFs};
use text::Tokenizer;

/// Opens a model; says which damaged checkpoints were passed over.
pub(crate) fn open(path: &Path) -> Result<Model> {
    let model = store::open_model(&RealFs, path)?;
    for skipped in &model.skipped {
        Console::default().say(&format!("warning: passed over {}: {}", skipped.dir.display(), skipped.reason));
    }
    Ok(model)
}

/// The tokenizer that is given, else the one beside the weights, if there is one; it must fit the model.
pub(crate) fn tokenizer(model: &Model, given: Option<&Path>) -> Result<Option<Tokenizer>> {
    let Some(path) = given.or(model.tokenizer.as_deref()) else { return Ok(None) };
    let tokenizer = Tokenizer::from_file(path)?;
    let (tokens, room) = (tokenizer.vocab_size(), model.config.vocab_size);
    anyhow::ensure!(
        tokens <= room,
        "{} has {tokens} tokens and the model only {room}: it is not the tokenizer that the model was trained with",
        path.display()
    );
    Ok(Some(tokenizer))
}

/// As [`tokenizer`], for commands that cannot do without.
pub(crate) fn need_tokenizer(model: &Model, given: Option<&Path>) -> Result<Tokenizer> {
    tokenizer(model, given)?.with_context(|| {
        format!("{} has no tokenizer.json beside its weights: give the one it was trained with as --tokenizer", model.dir.display())
    })
}

/// Writes a model as a Hugging Face directory.
pub(crate) fn write_hf(dir: &Path, model: &Model, tokenizer: Option<&Tokenizer>, dtype: store::safetensors::Dtype) -> Result<()> {
    let files = tokenizer.map(train::checkpoint::tokenizer_files).unwrap_or_default();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    let params: Vec<&[f32]> = model.params.iter().map(Vec::as_slice).collect();
    let special = match tokenizer {
        Some(tokenizer) => train::checkpoint::special_tokens(Some(tokenizer)),
        None => model.special,
    };
    store::hf::write_dir(&RealFs, dir, &model.config, &params, dtype, special, &files)?;
    Ok(())
}
