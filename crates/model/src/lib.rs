//! Llama-family models: configuration, parameters and their names, initial values, and the MIL programs of a layer.
//!
//! Plain data throughout: nothing here runs anything. [`Config`] says what a model is, [`Config::parameters`] lists its
//! parameters in their canonical order under Hugging Face's names, and [`programs`] turns a configuration and a batch
//! shape into MIL programs with documented ports.
#![forbid(unsafe_code)]

mod config;
mod params;

pub use config::{Config, ConfigError, Rope};
pub use params::{ParamSpec, Role};
