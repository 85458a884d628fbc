//! Llama models as Hugging Face keeps them: a directory with `config.json` and safetensors.

mod config;
mod model;

pub use config::{SpecialTokens, config_json, generation_config_json, read_config};
pub use model::{read_dir, write_dir};
