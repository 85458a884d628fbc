//! A file of one JSON object a line, one line a step: appended while training, cut back on resume.

use crate::error::{Context, StoreError};
use crate::files::write_atomic;
use crate::fs::{FileSystem, FileWrite, Kind};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// Longest line that is kept; a longer one is damage.
const LINE_LIMIT: usize = 1 << 20;

/// An open `metrics.jsonl`.
pub struct JsonLines {
    path: PathBuf,
    file: Box<dyn FileWrite>,
}

/// What [`JsonLines::truncate_to_step`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truncated {
    /// Lines kept.
    pub kept: u64,
    /// Lines dropped: later than the step, doubled, torn or damaged.
    pub dropped: u64,
    /// The step of the last line kept.
    pub last_step: Option<u64>,
    /// Steps between the first line kept and the resumed step that have no line, as after a power cut before [`JsonLines::sync`].
    pub missing: u64,
}

#[derive(Deserialize)]
struct Row {
    step: u64,
}

impl JsonLines {
    /// Opens the file to append.
    ///
    /// # Errors
    /// The system's.
    pub fn append_to(fs: &dyn FileSystem, path: &Path) -> std::result::Result<JsonLines, StoreError> {
        Ok(JsonLines { path: path.to_path_buf(), file: fs.append(path).doing("open", path)? })
    }

    /// Appends one object, which has a number `step`, in one write.
    ///
    /// # Errors
    /// The system's; a value that JSON cannot hold.
    pub fn push<T: Serialize>(&mut self, row: &T) -> std::result::Result<(), StoreError> {
        let mut line = serde_json::to_vec(row).map_err(|e| StoreError::Input(format!("{}: {e}", self.path.display())))?;
        line.push(b'\n');
        self.file.write_all(&line).doing("append to", &self.path)
    }

    /// Makes all rows durable. To be called before the checkpoint of the same step is saved, so that a checkpoint never
    /// outlives its rows.
    ///
    /// # Errors
    /// The system's.
    pub fn sync(&mut self) -> std::result::Result<(), StoreError> {
        self.file.sync().doing("sync", &self.path)
    }

    /// Cuts the file back to the rows up to `step`, each step once, so that a resumed run goes on as if it had never been
    /// further. A torn last line goes. Kept rows keep their bytes. The file is replaced atomically, and not touched if
    /// nothing has to go; no file is as good as an empty one.
    ///
    /// # Errors
    /// The system's.
    pub fn truncate_to_step(fs: &dyn FileSystem, path: &Path, step: u64) -> std::result::Result<Truncated, StoreError> {
        let mut done = Truncated::default();
        if fs.kind(path).doing("look at", path)? != Some(Kind::File) {
            return Ok(done);
        }
        let (mut kept, mut line, mut first) = (Vec::new(), Vec::new(), None);
        let mut file = BufReader::new(fs.open(path).doing("open", path)?);
        while file.read_until(b'\n', &mut line).doing("read", path)? > 0 {
            let row: Option<Row> = match line.strip_suffix(b"\n") {
                Some(text) if text.len() <= LINE_LIMIT => serde_json::from_slice(text).ok(),
                _ => None,
            };
            match row {
                Some(Row { step: at }) if at <= step && done.last_step.is_none_or(|last| at > last) => {
                    first.get_or_insert(at);
                    done.kept += 1;
                    done.last_step = Some(at);
                    kept.extend_from_slice(&line);
                }
                _ => done.dropped += 1,
            }
            line.clear();
        }
        if let Some(first) = first {
            done.missing = (step - first).saturating_add(1) - done.kept;
        }
        if done.dropped > 0 {
            write_atomic(fs, path, &kept)?;
        }
        Ok(done)
    }
}
