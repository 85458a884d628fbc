//! Llama-family models: configuration, parameters and their names, initial values, and the MIL programs of a layer.
//!
//! Plain data throughout: nothing here runs anything. [`Config`] says what a model is, [`Config::parameters`] lists its
//! parameters in their canonical order under Hugging Face's names, and [`programs`] turns a configuration and a batch
//! shape into MIL programs with documented ports.
#![forbid(unsafe_code)]

mod config;
mod flops;
mod init;
mod layout;
mod params;
mod presets;
pub mod programs;

pub use config::{Config, ConfigError, Rope};
pub use flops::{forward_flops, train_flops};
pub use layout::{Axis, CHANNEL_MULTIPLE, Layout, MAX_SEQ, SEQ_MULTIPLE, Segment, Shape, vocab_slices};
pub use params::{ParamSpec, Role};
pub use presets::{Preset, UnknownPreset};
pub use programs::ProgramError;
