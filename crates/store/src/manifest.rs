//! The manifest: what a checkpoint directory must hold, to the byte. Written last, so that its presence means the rest is there.

use crate::error::{Context, Result, StoreError};
use crate::files::{Digest, digest, is_plain_name, read_text};
use crate::fs::FileSystem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

pub(crate) const NAME: &str = "manifest.json";
/// Version of the directory's layout; a reader refuses others.
pub(crate) const FORMAT: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) format: u32,
    pub(crate) step: u64,
    pub(crate) files: BTreeMap<String, FileEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileEntry {
    pub(crate) bytes: u64,
    pub(crate) blake3: String,
}

impl From<Digest> for FileEntry {
    fn from(d: Digest) -> FileEntry {
        FileEntry { bytes: d.bytes, blake3: d.blake3 }
    }
}

impl Manifest {
    /// The one way to write it; [`Manifest::read`] accepts no other, so no byte of the file can change unnoticed.
    fn to_bytes(&self) -> Result<Vec<u8>> {
        json_bytes(self, NAME)
    }

    /// Writes and syncs the manifest of `dir`.
    pub(crate) fn write(&self, fs: &dyn FileSystem, dir: &Path) -> Result<()> {
        let path = dir.join(NAME);
        let mut file = fs.create(&path).doing("create", &path)?;
        file.write_all(&self.to_bytes()?).doing("write", &path)?;
        file.sync().doing("sync", &path)
    }

    /// Reads the manifest of `dir` and checks its form, but none of the files.
    pub(crate) fn read(fs: &dyn FileSystem, dir: &Path) -> Result<Manifest> {
        let path = dir.join(NAME);
        let text = read_text(fs, &path)?;
        let manifest: Manifest = serde_json::from_str(&text).map_err(|e| StoreError::bad(&path, format!("does not parse: {e}")))?;
        if manifest.format != FORMAT {
            return Err(StoreError::bad(&path, format!("is of format {}, this program reads format {FORMAT}", manifest.format)));
        }
        if let Some(name) = manifest.files.keys().find(|n| !is_plain_name(n) || *n == NAME) {
            return Err(StoreError::bad(&path, format!("lists {name:?}, which is no plain file name")));
        }
        if manifest.to_bytes()? != text.as_bytes() {
            return Err(StoreError::bad(&path, "is not as it was written: damaged or edited"));
        }
        Ok(manifest)
    }

    /// Compares every file of `dir` with its length and checksum.
    pub(crate) fn check(&self, fs: &dyn FileSystem, dir: &Path) -> Result<()> {
        for (name, entry) in &self.files {
            let path = dir.join(name);
            let found = digest(fs, &path, entry.bytes)?;
            if found.bytes < entry.bytes {
                return Err(StoreError::bad(&path, format!("is {} bytes long, the manifest says {}: truncated", found.bytes, entry.bytes)));
            }
            if found.bytes > entry.bytes {
                return Err(StoreError::bad(&path, format!("is longer than the {} bytes of the manifest", entry.bytes)));
            }
            if found.blake3 != entry.blake3 {
                return Err(StoreError::bad(&path, "does not match its checksum in the manifest: damaged"));
            }
        }
        Ok(())
    }
}

/// Indented JSON with a final newline, as every JSON file of a checkpoint.
pub(crate) fn json_bytes<T: Serialize>(value: &T, what: &str) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|e| StoreError::Input(format!("{what} cannot be written as JSON: {e}")))?;
    bytes.push(b'\n');
    Ok(bytes)
}
