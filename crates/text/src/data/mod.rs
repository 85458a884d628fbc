//! Training data: files and the built-in corpus become [`Documents`], those become [`Tokens`], and [`Batches`] says which of them a
//! step sees.

mod batches;
mod documents;
mod error;
mod tokens;

pub use batches::{Batch, Batches, IGNORE};
pub use documents::Documents;
pub use error::DataError;
pub use tokens::Tokens;

use std::path::Path;

fn read_file(path: &Path) -> Result<Vec<u8>, DataError> {
    std::fs::read(path).map_err(|source| DataError::Read { file: path.display().to_string(), source })
}
