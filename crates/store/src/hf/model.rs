//! A model directory: read into memory's order, written so that `transformers` loads it.

use super::config::{SpecialTokens, config_json, generation_config_json, read_config};
use crate::checkpoint::read_all;
use crate::error::{Result, StoreError};
use crate::files::{create_dirs, is_plain_name, write_atomic};
use crate::fs::FileSystem;
use crate::rope::Rows;
use crate::safetensors::{Dtype, Tensor, Weights, write};
use model::Config;
use std::collections::BTreeSet;
use std::path::Path;

/// Reads a Hugging Face Llama directory; parameters in the order of [`Config::parameters`].
///
/// # Errors
/// As [`super::read_config`]; a tensor that is missing, of another shape or type, or that a Llama model does not have.
pub fn read_dir(fs: &dyn FileSystem, dir: &Path) -> std::result::Result<(Config, Vec<Vec<f32>>, SpecialTokens), StoreError> {
    let (config, special) = read_config(fs, &dir.join("config.json"))?;
    let mut weights = Weights::open(fs, dir)?;
    let names: BTreeSet<String> = weights.names().map(str::to_owned).collect();
    let params = read_all(&config, dir, names.len(), "", |name, shape| weights.read(name, shape))?;
    let known: BTreeSet<String> = config.parameters().into_iter().map(|p| p.name).collect();
    for name in names.difference(&known) {
        refuse_extra(&config, dir, name, &params, &mut weights)?;
    }
    Ok((config, params, special))
}

/// A tensor beyond the configuration's: harmless, or a sign that the model computes something else.
fn refuse_extra(config: &Config, dir: &Path, name: &str, params: &[Vec<f32>], weights: &mut Weights) -> Result<()> {
    // Old checkpoints store the rotary frequencies, which follow from rope_theta.
    if name.ends_with(".rotary_emb.inv_freq") {
        return Ok(());
    }
    if config.tied && name == "lm_head.weight" {
        let head = weights.read(name, &[config.vocab_size, config.dim])?;
        if params.first().is_some_and(|e| e.iter().map(|v| v.to_bits()).eq(head.iter().map(|v| v.to_bits()))) {
            return Ok(());
        }
        return Err(StoreError::tensor(
            dir,
            name,
            "differs from model.embed_tokens.weight, though `tie_word_embeddings` is true: set it to false",
        ));
    }
    Err(StoreError::tensor(dir, name, "is not one of a Llama model with this configuration: the result would be wrong, so it is refused"))
}

/// Writes a directory that `transformers` loads: `config.json`, `generation_config.json`, `model.safetensors`, and the
/// `files` of the caller (`tokenizer.json`, `tokenizer_config.json`). Parameters are in the order of
/// [`Config::parameters`] and in the model's rotary order. A tied model has no `lm_head.weight`.
///
/// # Errors
/// Parameters that do not fit the configuration; a file name that is not plain; the system's.
pub fn write_dir(
    fs: &dyn FileSystem,
    dir: &Path,
    config: &Config,
    params: &[&[f32]],
    dtype: Dtype,
    special: SpecialTokens,
    files: &[(&str, &[u8])],
) -> std::result::Result<(), StoreError> {
    let torch = match dtype {
        Dtype::F32 => "float32",
        Dtype::F16 => "float16",
        Dtype::BF16 => "bfloat16",
    };
    let ours = [("config.json", config_json(config, special, torch)?), ("generation_config.json", generation_config_json(special)?)];
    let specs = config.parameters();
    if specs.len() != params.len() {
        return Err(StoreError::Input(format!("export: {} tensors given, the model has {}", params.len(), specs.len())));
    }
    if let Some((name, _)) = files.iter().find(|(n, _)| !is_plain_name(n) || *n == "model.safetensors" || ours.iter().any(|(o, _)| o == n))
    {
        return Err(StoreError::Input(format!("export: {name:?} cannot be the name of a further file")));
    }
    let tensors: Vec<Tensor<'_>> = specs
        .into_iter()
        .zip(params)
        .map(|(spec, data)| Tensor { rows: Rows::of(config, &spec), name: spec.name, shape: spec.shape, data })
        .collect();
    create_dirs(fs, dir)?;
    let (tmp, place) = (dir.join(".tmp-model.safetensors"), dir.join("model.safetensors"));
    write(fs, &tmp, &tensors, dtype)?;
    crate::error::Context::doing(fs.rename(&tmp, &place), "replace", &place)?;
    for (name, bytes) in ours.iter().map(|(n, b)| (*n, b.as_slice())).chain(files.iter().copied()) {
        write_atomic(fs, &dir.join(name), bytes)?;
    }
    Ok(())
}
