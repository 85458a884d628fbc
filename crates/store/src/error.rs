//! What can go wrong with a file, said so that a person knows which file, what in it, and what to do.

use model::ConfigError;
use std::io;
use std::path::{Path, PathBuf};

/// An error of this crate. Every message names the file; most name the field or tensor.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was being done, as in "cannot … PATH".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The disk has too little room for a checkpoint; nothing was written.
    #[error("{}: a checkpoint needs {need} bytes, only {free} are free: make room, or keep fewer checkpoints", path.display())]
    NoSpace {
        /// Where it was to be written.
        path: PathBuf,
        /// Bytes the checkpoint takes.
        need: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// Another process trains in this run directory.
    #[error("{} is locked by {holder}: wait for it to end, or choose another --run directory", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The process that holds it, as far as it said.
        holder: String,
    },
    /// A file is not what it should be: damaged, truncated, or of another format.
    #[error("{}: {problem}", path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A tensor is missing, or not what the configuration says.
    #[error("{}: tensor `{tensor}` {problem}", path.display())]
    Tensor {
        /// The file.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// What is wrong.
        problem: String,
    },
    /// A model file asks for something that this program does not compute.
    #[error("{}: `{field}` {problem}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The field that asks.
        field: String,
        /// What it asks, and what is supported.
        problem: String,
    },
    /// The checkpoint is of another model than the one asked for.
    #[error("{}: the checkpoint has {field} = {checkpoint}, this run has {field} = {run}: resume with the checkpoint's, or start a new run", path.display())]
    ConfigMismatch {
        /// The checkpoint.
        path: PathBuf,
        /// The field that differs.
        field: &'static str,
        /// The checkpoint's value.
        checkpoint: String,
        /// The value asked for.
        run: String,
    },
    /// The configuration in a file is not a model.
    #[error("{}: {source}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// The field and its problem.
        source: ConfigError,
    },
    /// The caller passed something that no file can hold.
    #[error("{0}")]
    Input(String),
}

impl StoreError {
    /// Whether the disk is full: training can go on and save again later.
    pub fn is_no_space(&self) -> bool {
        match self {
            StoreError::NoSpace { .. } => true,
            StoreError::Io { source, .. } => matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded),
            _ => false,
        }
    }

    pub(crate) fn bad(path: &Path, problem: impl Into<String>) -> StoreError {
        StoreError::Bad { path: path.to_path_buf(), problem: problem.into() }
    }

    pub(crate) fn tensor(path: &Path, tensor: &str, problem: impl Into<String>) -> StoreError {
        StoreError::Tensor { path: path.to_path_buf(), tensor: tensor.into(), problem: problem.into() }
    }

    pub(crate) fn unsupported(path: &Path, field: impl Into<String>, problem: impl Into<String>) -> StoreError {
        StoreError::Unsupported { path: path.to_path_buf(), field: field.into(), problem: problem.into() }
    }
}

/// This crate's result.
pub(crate) type Result<T> = std::result::Result<T, StoreError>;

/// Says what was being done to which path when the system refused.
pub(crate) trait Context<T> {
    fn doing(self, action: &'static str, path: &Path) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn doing(self, action: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| StoreError::Io { action, path: path.to_path_buf(), source })
    }
}
