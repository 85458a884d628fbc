//! The parameters of a model: names, shapes and roles, in their canonical order.

use crate::Config;

/// What a parameter is to the model. A layer's parameters carry the layer in [`ParamSpec::layer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Token embedding, `[vocab_size, dim]`; also the classifier when tied.
    Embedding,
    /// Gain of the RMSNorm before attention, `[dim]`.
    AttnNorm,
    /// Query projection, `[q_dim, dim]`.
    Wq,
    /// Key projection, `[kv_dim, dim]`.
    Wk,
    /// Value projection, `[kv_dim, dim]`.
    Wv,
    /// Output projection of attention, `[dim, q_dim]`.
    Wo,
    /// Gain of the RMSNorm before the feed-forward network, `[dim]`.
    FfnNorm,
    /// Gate projection (llama2.c's `w1`), `[hidden_dim, dim]`.
    W1,
    /// Down projection (llama2.c's `w2`), `[dim, hidden_dim]`.
    W2,
    /// Up projection (llama2.c's `w3`), `[hidden_dim, dim]`.
    W3,
    /// Gain of the last RMSNorm, `[dim]`.
    FinalNorm,
    /// Classifier, `[vocab_size, dim]`; absent when tied.
    Classifier,
}

/// One parameter: row-major fp32, as Hugging Face stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamSpec {
    /// Hugging Face's name, such as `model.layers.0.self_attn.q_proj.weight`.
    pub name: String,
    /// Shape, outermost axis first; one axis for gains, two for matrices.
    pub shape: Vec<usize>,
    /// What it is.
    pub role: Role,
    /// Its layer, for those that have one.
    pub layer: Option<usize>,
}

impl ParamSpec {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no elements (never, in a checked configuration).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether weight decay applies: matrices decay, gains do not.
    pub fn decays(&self) -> bool {
        self.shape.len() > 1
    }
}

impl Config {
    /// All parameters, in canonical order: embedding, layers from first to last, final norm, classifier unless tied.
    pub fn parameters(&self) -> Vec<ParamSpec> {
        let (d, h, q, kv, v) = (self.dim, self.hidden_dim, self.q_dim(), self.kv_dim(), self.vocab_size);
        let top = |name: &str, shape: Vec<usize>, role| ParamSpec { name: name.into(), shape, role, layer: None };
        let mut all = vec![top("model.embed_tokens.weight", vec![v, d], Role::Embedding)];
        for layer in 0..self.n_layers {
            let of = |name: &str, shape: Vec<usize>, role| ParamSpec {
                name: format!("model.layers.{layer}.{name}.weight"),
                shape,
                role,
                layer: Some(layer),
            };
            all.extend([
                of("input_layernorm", vec![d], Role::AttnNorm),
                of("self_attn.q_proj", vec![q, d], Role::Wq),
                of("self_attn.k_proj", vec![kv, d], Role::Wk),
                of("self_attn.v_proj", vec![kv, d], Role::Wv),
                of("self_attn.o_proj", vec![d, q], Role::Wo),
                of("post_attention_layernorm", vec![d], Role::FfnNorm),
                of("mlp.gate_proj", vec![h, d], Role::W1),
                of("mlp.down_proj", vec![d, h], Role::W2),
                of("mlp.up_proj", vec![h, d], Role::W3),
            ]);
        }
        all.push(top("model.norm.weight", vec![d], Role::FinalNorm));
        if !self.tied {
            all.push(top("lm_head.weight", vec![v, d], Role::Classifier));
        }
        all
    }

    /// Number of parameters.
    pub fn parameter_count(&self) -> usize {
        self.parameters().iter().map(ParamSpec::len).sum()
    }
}
