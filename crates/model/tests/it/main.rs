//! What the crate promises from outside.
#![allow(clippy::unwrap_used)]

mod interpreter;
mod meaning;
mod names;
mod tables;
mod text;
