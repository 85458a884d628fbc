//! Model shapes that have a name.

use crate::{Config, Rope};

/// A named model with the micro-batch it is trained with by default.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// What the user writes.
    pub name: &'static str,
    /// One line for lists and help.
    pub about: &'static str,
    /// The model.
    pub config: Config,
    /// Sequences of a micro-batch.
    pub batch: usize,
    /// Tokens of a sequence.
    pub seq: usize,
}

impl Preset {
    /// The preset trained when none is named.
    pub const DEFAULT: &'static str = "storybook";

    /// Every preset, smallest idea first: the default, then llama2.c's four.
    pub fn all() -> Vec<Preset> {
        let llama2c = |dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, max_seq_len| Config {
            dim,
            hidden_dim,
            n_layers,
            n_heads,
            n_kv_heads,
            head_dim: dim / n_heads,
            vocab_size,
            max_seq_len,
            rope_theta: 10_000.0,
            rope: Rope::Interleaved,
            norm_eps: 1e-5,
            tied: true,
        };
        vec![
            Preset {
                name: Preset::DEFAULT,
                about: "tells short stories after a few minutes on the built-in corpus",
                // Nearly every word of the corpus is one token, and the rest is small: in the same minutes a wider model with a smaller
                // vocabulary sees a third of the stories, and still misspells words.
                config: Config { rope: Rope::Half, ..llama2c(192, 512, 3, 6, 6, 4096, 256) },
                batch: 8,
                seq: 256,
            },
            Preset {
                name: "stories260k",
                about: "llama2.c's smallest, 260 thousand parameters, grouped-query attention",
                config: llama2c(64, 172, 5, 8, 4, 512, 512),
                batch: 4,
                seq: 256,
            },
            Preset {
                name: "stories15m",
                about: "llama2.c's TinyStories model of 15 million parameters",
                config: llama2c(288, 768, 6, 6, 6, 32_000, 256),
                batch: 1,
                seq: 256,
            },
            Preset {
                name: "stories42m",
                about: "llama2.c's TinyStories model of 42 million parameters",
                config: llama2c(512, 1376, 8, 8, 8, 32_000, 1024),
                batch: 1,
                seq: 256,
            },
            Preset {
                name: "stories110m",
                about: "llama2.c's TinyStories model of 110 million parameters",
                config: llama2c(768, 2048, 12, 12, 12, 32_000, 1024),
                batch: 1,
                seq: 256,
            },
        ]
    }

    /// The preset called `name`.
    ///
    /// # Errors
    /// The names that exist, when it does not.
    pub fn by_name(name: &str) -> Result<Preset, UnknownPreset> {
        Preset::all().into_iter().find(|p| p.name == name).ok_or_else(|| UnknownPreset { name: name.into() })
    }
}

/// A preset that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no preset is called `{name}`: choose one of {}", Preset::all().iter().map(|p| p.name).collect::<Vec<_>>().join(", "))]
pub struct UnknownPreset {
    /// What was asked for.
    pub name: String,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_preset_is_a_model_and_its_batch_fits() {
        for preset in Preset::all() {
            preset.config.check().unwrap();
            assert!(preset.seq <= preset.config.max_seq_len, "{}", preset.name);
            assert_eq!(Preset::by_name(preset.name).unwrap(), preset);
        }
        assert_eq!(Preset::all()[0].name, Preset::DEFAULT);
    }

    #[test]
    fn parameter_counts_are_the_published_ones() {
        let count = |name| Preset::by_name(name).unwrap().config.parameter_count();
        assert_eq!(count("stories110m"), 109_529_856);
        assert_eq!(count("stories42m"), 41_689_600);
        assert_eq!(count("stories15m"), 15_191_712);
        assert_eq!(count("stories260k"), 260_032);
        let storybook = count("storybook");
        assert!((2_000_000..8_000_000).contains(&storybook), "{storybook}: a few million");
    }

    #[test]
    fn an_unknown_preset_names_the_known_ones() {
        let message = Preset::by_name("stories1b").unwrap_err().to_string();
        assert!(message.contains("stories1b") && message.contains("storybook") && message.contains("stories110m"), "{message}");
    }
}
