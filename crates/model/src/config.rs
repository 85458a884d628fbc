//! What a model is: the numbers that fix its shapes and its arithmetic.

use serde::{Deserialize, Serialize};

/// How rotary position embedding pairs the channels of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rope {
    /// Channel `i` turns with channel `i + head_dim/2`, as in Hugging Face checkpoints.
    Half,
    /// Channel `2i` turns with channel `2i + 1`, as in llama2.c checkpoints.
    Interleaved,
}

/// The shape of a Llama-family model. Field names are the field's standard terms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Width of the residual stream.
    pub dim: usize,
    /// Width of the feed-forward hidden layer.
    pub hidden_dim: usize,
    /// Number of layers.
    pub n_layers: usize,
    /// Number of query heads.
    pub n_heads: usize,
    /// Number of key/value heads; divides `n_heads`. Query head `h` reads key/value head `h / (n_heads / n_kv_heads)`.
    pub n_kv_heads: usize,
    /// Channels of one head; `n_heads * head_dim` need not equal `dim`.
    pub head_dim: usize,
    /// Number of tokens the model knows.
    pub vocab_size: usize,
    /// Longest sequence the model was made for.
    pub max_seq_len: usize,
    /// Base of the rotary angles.
    pub rope_theta: f32,
    /// How rotary embedding pairs channels.
    pub rope: Rope,
    /// Added under the root of RMSNorm.
    pub norm_eps: f32,
    /// Whether the classifier is the embedding.
    pub tied: bool,
}

/// Why a configuration is not a model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("model configuration: `{field}` {problem}")]
pub struct ConfigError {
    /// The offending field.
    pub field: &'static str,
    /// What is wrong and what to do.
    pub problem: String,
}

impl Config {
    /// Channels of all query heads.
    pub fn q_dim(&self) -> usize {
        self.n_heads * self.head_dim
    }

    /// Channels of all key (or value) heads.
    pub fn kv_dim(&self) -> usize {
        self.n_kv_heads * self.head_dim
    }

    /// Query heads that share one key/value head.
    pub fn group(&self) -> usize {
        self.n_heads / self.n_kv_heads
    }

    /// Checks that the numbers describe a model.
    ///
    /// # Errors
    /// The first field that does not fit, with what would.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |field, problem: String| Err(ConfigError { field, problem });
        let positive = [
            ("dim", self.dim),
            ("hidden_dim", self.hidden_dim),
            ("n_layers", self.n_layers),
            ("n_heads", self.n_heads),
            ("n_kv_heads", self.n_kv_heads),
            ("head_dim", self.head_dim),
            ("vocab_size", self.vocab_size),
            ("max_seq_len", self.max_seq_len),
        ];
        for (field, value) in positive {
            if value == 0 {
                return refuse(field, "is 0: it must be at least 1".into());
            }
            if value > 1 << 24 {
                return refuse(field, format!("is {value}: more than 16777216 cannot be meant"));
            }
        }
        if !self.n_heads.is_multiple_of(self.n_kv_heads) {
            let (heads, kv) = (self.n_heads, self.n_kv_heads);
            return refuse(
                "n_kv_heads",
                format!("is {kv}, which does not divide n_heads = {heads}: every key/value head serves the same number of query heads"),
            );
        }
        if !self.head_dim.is_multiple_of(2) {
            return refuse("head_dim", format!("is {}: rotary embedding turns pairs, so it must be even", self.head_dim));
        }
        if !(self.norm_eps > 0.0 && self.norm_eps < 1.0) {
            return refuse("norm_eps", format!("is {}: it must lie between 0 and 1", self.norm_eps));
        }
        if !(self.rope_theta >= 1.0 && self.rope_theta.is_finite()) {
            return refuse("rope_theta", format!("is {}: it must be finite and at least 1", self.rope_theta));
        }
        Ok(())
    }
}
