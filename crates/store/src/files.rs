//! Small files and whole trees: atomic replacement, bounded reading, hashing while writing, removal.

use crate::StoreError;
use crate::error::{Context, Result};
use crate::fs::{FileSystem, FileWrite, Kind};
use std::io::{self, Read, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Prefix of what is being written; swept away at start.
pub(crate) const TMP: &str = ".tmp-";
/// Prefix of what is being removed; swept away at start.
pub(crate) const TRASH: &str = ".trash-";

/// Longest small text file that is read: configurations, states, manifests, indices.
const TEXT_LIMIT: u64 = 64 << 20;

/// Replaces a small file so that a reader, or a crash, sees the old content or the new, never a part: written beside as
/// `.tmp-NAME`, synced, renamed, directory synced.
///
/// # Errors
/// The system's, with what was being done; the old file is then whole.
pub fn write_atomic(fs: &dyn FileSystem, path: &Path, bytes: &[u8]) -> std::result::Result<(), StoreError> {
    let name = path.file_name().and_then(|n| n.to_str()).ok_or_else(|| StoreError::bad(path, "is not a file name"))?;
    let dir = parent(path);
    let tmp = dir.join(format!("{TMP}{name}"));
    let mut file = fs.create(&tmp).doing("create", &tmp)?;
    file.write_all(bytes).doing("write", &tmp)?;
    file.sync().doing("sync", &tmp)?;
    drop(file);
    fs.rename(&tmp, path).doing("replace", path)?;
    fs.sync_dir(&dir).doing("sync", &dir)
}

/// Reads a small text file, up to 64 MiB, as UTF-8.
///
/// # Errors
/// The system's; a longer file; bytes that are not UTF-8, with their position.
pub fn read_text(fs: &dyn FileSystem, path: &Path) -> std::result::Result<String, StoreError> {
    let mut bytes = Vec::new();
    fs.open(path).doing("open", path)?.take(TEXT_LIMIT + 1).read_to_end(&mut bytes).doing("read", path)?;
    if bytes.len() as u64 > TEXT_LIMIT {
        return Err(StoreError::bad(path, format!("is longer than {TEXT_LIMIT} bytes: it cannot be what its name says")));
    }
    String::from_utf8(bytes).map_err(|e| StoreError::bad(path, format!("is not UTF-8 text (byte {})", e.utf8_error().valid_up_to())))
}

/// The directory that holds `path`.
pub(crate) fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Creates `path` and the directories above it that are missing, and makes their names durable.
///
/// # Errors
/// The system's.
pub fn create_dirs(fs: &dyn FileSystem, path: &Path) -> std::result::Result<(), StoreError> {
    if fs.kind(path).doing("look at", path)? == Some(Kind::Dir) {
        return Ok(());
    }
    let above = parent(path);
    if above != path {
        create_dirs(fs, &above)?;
    }
    fs.create_dir(path).doing("create", path)?;
    fs.sync_dir(&above).doing("sync", &above)
}

/// Removes a file or a directory with all that is in it; links are removed, not followed.
pub(crate) fn remove_tree(fs: &dyn FileSystem, path: &Path, kind: Kind) -> Result<()> {
    if kind != Kind::Dir {
        return fs.remove_file(path).doing("remove", path);
    }
    for entry in fs.list(path).doing("list", path)? {
        remove_tree(fs, &path.join(&entry.name), entry.kind)?;
    }
    fs.remove_dir(path).doing("remove", path)
}

/// Whether a name from a file may name a file beside it: plain, visible, no way to another directory.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !name.is_empty() && name.len() <= 255 && !name.starts_with('.') && name.chars().all(plain)
}

/// Length of an open file.
pub(crate) fn length(file: &mut dyn crate::Source) -> io::Result<u64> {
    let end = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(0))?;
    Ok(end)
}

/// Length and BLAKE3 checksum of what was written or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) bytes: u64,
    pub(crate) blake3: String,
}

/// A buffered writer that hashes what passes through it.
pub(crate) struct HashWriter {
    out: io::BufWriter<Box<dyn FileWrite>>,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl HashWriter {
    pub(crate) fn create(fs: &dyn FileSystem, path: &Path) -> Result<HashWriter> {
        let file = fs.create(path).doing("create", path)?;
        Ok(HashWriter { out: io::BufWriter::with_capacity(1 << 20, file), hasher: blake3::Hasher::new(), bytes: 0 })
    }

    /// Flushes and syncs the file, and says what it holds.
    pub(crate) fn finish(mut self, path: &Path) -> Result<Digest> {
        self.out.flush().doing("write", path)?;
        self.out.get_mut().sync().doing("sync", path)?;
        Ok(Digest { bytes: self.bytes, blake3: self.hasher.finalize().to_hex().to_string() })
    }
}

impl Write for HashWriter {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let n = self.out.write(data)?;
        self.hasher.update(&data[..n]);
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reads a file through and says what it holds; stops one byte past `at_most`.
pub(crate) fn digest(fs: &dyn FileSystem, path: &Path, at_most: u64) -> Result<Digest> {
    let mut file = fs.open(path).doing("open", path)?.take(at_most.saturating_add(1));
    let (mut hasher, mut bytes, mut chunk) = (blake3::Hasher::new(), 0, vec![0; at_most.clamp(1 << 10, 1 << 20) as usize]);
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(Digest { bytes, blake3: hasher.finalize().to_hex().to_string() }),
            Ok(n) => {
                hasher.update(&chunk[..n]);
                bytes += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e).doing("read", path),
        }
    }
}
