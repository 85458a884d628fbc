//! Runs and models on disk.
//!
//! Three promises, each with its module:
//!
//! * **Nothing half-written is ever seen.** Everything goes through [`FileSystem`], a trait small enough that a test can
//!   fail or cut the power at every single call ([`FaultFs`], [`MemFs`]). A checkpoint is written beside its place,
//!   synced, and renamed ([`checkpoint::save`]); a small file is replaced by [`write_atomic`].
//! * **Nothing damaged is ever loaded.** [`checkpoint::load`] takes a [`Verified`], which only a full comparison with the
//!   manifest's lengths and checksums can make. [`find_latest`] says what it skipped and why; damaged checkpoints are
//!   moved aside by [`set_aside`], never deleted.
//! * **Nothing in a file is believed before it is checked.** Lengths are compared before memory is taken, names from
//!   files never become paths, and what a model needs that this program does not compute is refused by the field's name.
//!
//! # A run directory
//! ```text
//! RUN/.lock                                one trainer at a time (RunLock)
//! RUN/latest                               the newest checkpoint, as text
//! RUN/metrics.jsonl                        one object a step (JsonLines)
//! RUN/checkpoints/step-00000100/
//!     model.safetensors                    fp32, Hugging Face's names and channel order
//!     optimizer.safetensors                <name>.exp_avg and <name>.exp_avg_sq
//!     state.json                           format, step, configuration, the trainer's own state
//!     config.json, tokenizer.json, …       what the caller adds, so that other programs load the directory
//!     manifest.json                        lengths and BLAKE3 checksums; written last
//! RUN/corrupt/                             checkpoints that did not verify
//! ```
//! Rotary channel order: files hold [`model::Rope::Half`] order always. For a model in [`model::Rope::Interleaved`]
//! order the rows of the query and key projections, and of their moments, are permuted on the way out and back.
#![forbid(unsafe_code)]

pub mod checkpoint;
mod error;
mod fault;
mod files;
mod fs;
pub mod hf;
mod jsonl;
pub mod llama2c;
mod manifest;
mod mem;
mod open;
mod rope;
mod run;
pub mod safetensors;

pub use checkpoint::{Checkpoint, Loaded, Verified};
pub use error::StoreError;
pub use fault::{Fault, FaultFs, FaultKind};
pub use files::{create_dirs, read_text, write_atomic};
pub use fs::{DirEntry, FileSystem, FileWrite, Kind, LockGuard, RealFs, Source};
pub use jsonl::{JsonLines, Truncated};
pub use mem::{Cut, MemFs};
pub use open::{Model, Origin, open_model};
pub use run::{Found, Retention, RunLock, Skipped, find_latest, list_steps, prune, set_aside, sweep};
