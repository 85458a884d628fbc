//! `config.json`, in the form of transformers 4 (`rope_theta`) and of 5 (`rope_parameters`).

use crate::error::{Result, StoreError};
use crate::files::read_text;
use crate::fs::FileSystem;
use crate::manifest::json_bytes;
use model::{Config, Rope};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Ids of the tokens that begin and end a text, as far as the tokenizer has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    /// Beginning of text.
    pub bos: Option<u32>,
    /// End of text.
    pub eos: Option<u32>,
    /// Padding.
    pub pad: Option<u32>,
}

/// The fields of a `config.json`, with its path for messages.
struct Fields<'a> {
    path: &'a Path,
    map: Map<String, Value>,
}

impl Fields<'_> {
    /// A field's value; `null` counts as absent.
    fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        match self.map.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(v) => serde_json::from_value(v.clone())
                .map(Some)
                .map_err(|e| StoreError::bad(self.path, format!("`{name}` is {}: {e}", short(v)))),
        }
    }

    fn need<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        self.get(name)?.ok_or_else(|| StoreError::bad(self.path, format!("has no `{name}`")))
    }

    fn refuse<T>(&self, name: &str, problem: &str) -> Result<T> {
        let value = self.map.get(name).map(short).unwrap_or_default();
        Err(StoreError::unsupported(self.path, name, format!("is {value}: {problem}")))
    }
}

/// A value as text of bounded length.
fn short(v: &Value) -> String {
    let text = v.to_string();
    match text.char_indices().nth(80) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

/// Reads a `config.json` of the Llama architecture, with the ids of its special tokens.
///
/// # Errors
/// The field that is missing or malformed, or that asks for what this program does not compute: another architecture,
/// rope scaling, biases, another activation, quantized weights.
pub fn read_config(fs: &dyn FileSystem, path: &Path) -> std::result::Result<(Config, SpecialTokens), StoreError> {
    let text = read_text(fs, path)?;
    let map = serde_json::from_str(&text).map_err(|e| StoreError::bad(path, format!("does not parse: {e}")))?;
    let f = Fields { path, map };
    refuse_unsupported(&f)?;

    let (dim, n_heads): (usize, usize) = (f.need("hidden_size")?, f.need("num_attention_heads")?);
    let head_dim = match f.get("head_dim")? {
        Some(n) => n,
        None if n_heads > 0 && dim.is_multiple_of(n_heads) => dim / n_heads,
        None => return f.refuse("num_attention_heads", &format!("hidden_size = {dim} does not divide by it, and there is no `head_dim`")),
    };
    let config = Config {
        dim,
        hidden_dim: f.need("intermediate_size")?,
        n_layers: f.need("num_hidden_layers")?,
        n_heads,
        n_kv_heads: f.get("num_key_value_heads")?.unwrap_or(n_heads),
        head_dim,
        vocab_size: f.need("vocab_size")?,
        max_seq_len: f.get("max_position_embeddings")?.unwrap_or(2048),
        rope_theta: rope_theta(&f)?,
        rope: Rope::Half,
        norm_eps: f.get("rms_norm_eps")?.unwrap_or(1e-6),
        tied: f.get("tie_word_embeddings")?.unwrap_or(false),
    };
    config.check().map_err(|source| StoreError::Config { path: path.to_path_buf(), source })?;
    Ok((config, SpecialTokens { bos: token(&f, "bos_token_id")?, eos: token(&f, "eos_token_id")?, pad: token(&f, "pad_token_id")? }))
}

/// A token id, or the first of a list of them.
fn token(f: &Fields<'_>, name: &str) -> Result<Option<u32>> {
    match f.map.get(name) {
        Some(Value::Array(ids)) => match ids.first().map(|v| serde_json::from_value(v.clone())) {
            Some(Ok(id)) => Ok(Some(id)),
            Some(Err(e)) => Err(StoreError::bad(f.path, format!("`{name}`: {e}"))),
            None => Ok(None),
        },
        // Some configurations say -1 for "none".
        Some(Value::Number(n)) if n.as_i64().is_some_and(|n| n < 0) => Ok(None),
        _ => f.get(name),
    }
}

fn refuse_unsupported(f: &Fields<'_>) -> Result<()> {
    let model_type: Option<String> = f.get("model_type")?;
    if model_type.as_deref().is_some_and(|t| t != "llama") {
        return f.refuse("model_type", "only Llama models (\"llama\") are read");
    }
    let architectures: Option<Vec<String>> = f.get("architectures")?;
    if architectures.iter().flatten().any(|a| a != "LlamaForCausalLM") {
        return f.refuse("architectures", "only \"LlamaForCausalLM\" is read");
    }
    if model_type.is_none() && architectures.is_none_or(|a| a.is_empty()) {
        return Err(StoreError::bad(f.path, "has neither `model_type` nor `architectures`: it does not say that it is a Llama model"));
    }
    let activation: Option<String> = f.get("hidden_act")?;
    if activation.is_some_and(|a| a != "silu") {
        return f.refuse("hidden_act", "only \"silu\" is computed");
    }
    for bias in ["attention_bias", "mlp_bias"] {
        if f.get::<bool>(bias)?.unwrap_or(false) {
            return f.refuse(bias, "projections with a bias are not computed");
        }
    }
    if f.get::<Value>("quantization_config")?.is_some() {
        return f.refuse("quantization_config", "quantized weights are not read: use the F32, F16 or BF16 checkpoint");
    }
    if f.get::<f64>("partial_rotary_factor")?.is_some_and(|p| p != 1.0) {
        return f.refuse("partial_rotary_factor", "only full rotary embedding (1) is computed");
    }
    Ok(())
}

/// The rotary base, from wherever it is; anything but plain rotary embedding is refused.
fn rope_theta(f: &Fields<'_>) -> Result<f32> {
    let mut theta: Option<f32> = f.get("rope_theta")?;
    for name in ["rope_scaling", "rope_parameters"] {
        let Some(rope) = f.get::<Map<String, Value>>(name)? else { continue };
        for (key, value) in &rope {
            match (key.as_str(), value) {
                ("rope_type" | "type", Value::String(t)) if t == "default" => {}
                ("rope_theta", Value::Number(n)) => {
                    let here = n.as_f64().unwrap_or(f64::NAN) as f32;
                    if theta.is_some_and(|there| there != here) {
                        return f.refuse(name, "its rope_theta differs from the other one in this file");
                    }
                    theta = Some(here);
                }
                ("partial_rotary_factor", Value::Number(n)) if n.as_f64() == Some(1.0) => {}
                _ => return f.refuse(name, "rope scaling is not computed; only plain rotary embedding (rope_type \"default\") is"),
            }
        }
    }
    Ok(theta.unwrap_or(10_000.0))
}

/// An fp32 as the shortest decimal that gives it back, so that 1e-5 is written as 1e-5.
fn decimal(v: f32) -> Value {
    v.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// A `config.json` that transformers 4 and 5 both load, whatever the rotary order of `config`: files hold halves.
///
/// # Errors
/// A configuration that is not a model.
pub fn config_json(config: &Config, special: SpecialTokens, dtype: &str) -> std::result::Result<Vec<u8>, StoreError> {
    config.check().map_err(|e| StoreError::Input(e.to_string()))?;
    let theta = decimal(config.rope_theta);
    let value = json!({
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": false,
        "attention_dropout": 0.0,
        "bos_token_id": special.bos,
        "dtype": dtype,
        "eos_token_id": special.eos,
        "head_dim": config.head_dim,
        "hidden_act": "silu",
        "hidden_size": config.dim,
        "initializer_range": 0.02,
        "intermediate_size": config.hidden_dim,
        "max_position_embeddings": config.max_seq_len,
        "mlp_bias": false,
        "model_type": "llama",
        "num_attention_heads": config.n_heads,
        "num_hidden_layers": config.n_layers,
        "num_key_value_heads": config.n_kv_heads,
        "pad_token_id": special.pad,
        "rms_norm_eps": decimal(config.norm_eps),
        "rope_parameters": { "rope_theta": theta, "rope_type": "default" },
        "rope_theta": theta,
        "tie_word_embeddings": config.tied,
        "torch_dtype": dtype,
        "use_cache": true,
        "vocab_size": config.vocab_size,
    });
    json_bytes(&value, "config.json")
}

/// A `generation_config.json` with the special tokens.
///
/// # Errors
/// None that can happen to three numbers.
pub fn generation_config_json(special: SpecialTokens) -> std::result::Result<Vec<u8>, StoreError> {
    let mut map = Map::new();
    for (name, id) in [("bos_token_id", special.bos), ("eos_token_id", special.eos), ("pad_token_id", special.pad)] {
        if let Some(id) = id {
            map.insert(name.into(), id.into());
        }
    }
    json_bytes(&map, "generation_config.json")
}
