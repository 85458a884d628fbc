//! The file system as the checkpoint protocol needs it, and the real one.
//!
//! Each method is one system call or two that belong together, so that a test which fails the Nth call walks through
//! every state that a crash can leave behind.

use std::any::Any;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

/// A file opened for reading.
pub trait Source: Read + Seek + Send {}
impl<T: Read + Seek + Send> Source for T {}

/// A file opened for writing.
pub trait FileWrite: Write + Send {
    /// Returns when content and length are on stable storage (`F_FULLFSYNC` on Apple systems, by way of std).
    ///
    /// # Errors
    /// The system's.
    fn sync(&mut self) -> io::Result<()>;
}

/// Holds a lock until dropped.
pub type LockGuard = Box<dyn Any + Send + Sync>;

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// Anything else; in a listing also a symbolic link, whatever it points to.
    Other,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name, without the directory. Names that are not UTF-8 are not ours and are not listed.
    pub name: String,
    /// What it is.
    pub kind: Kind,
}

/// What the store asks of a file system. Errors are the system's, with no path: the caller adds it.
#[allow(clippy::missing_errors_doc)] // said above, once for all
pub trait FileSystem: Send + Sync {
    /// Opens a file for reading.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>>;
    /// Creates a file, or empties the one that is there.
    fn create(&self, path: &Path) -> io::Result<Box<dyn FileWrite>>;
    /// Opens a file for writing at its end; creates it if need be.
    fn append(&self, path: &Path) -> io::Result<Box<dyn FileWrite>>;
    /// Renames a file or directory; a file that is at `to` is replaced atomically, a directory there is an error.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file or symbolic link.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Creates a directory; its parent must exist.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Returns when the directory's names (created, renamed, removed) are on stable storage.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// The entries of a directory, sorted by name.
    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>>;
    /// What is at a path, links followed; `None` if nothing.
    fn kind(&self, path: &Path) -> io::Result<Option<Kind>>;
    /// Bytes that this user may still write to the file system of `path`.
    fn free_space(&self, path: &Path) -> io::Result<u64>;
    /// Takes an exclusive lock on a file, creating it if need be, and writes `owner` into it; `None` if another holds it.
    fn lock(&self, path: &Path, owner: &str) -> io::Result<Option<LockGuard>>;
}

/// The operating system's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFs;

impl FileWrite for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

fn kind_of(kind: fs::FileType) -> Kind {
    if kind.is_dir() {
        Kind::Dir
    } else if kind.is_file() {
        Kind::File
    } else {
        Kind::Other
    }
}

impl FileSystem for RealFs {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>> {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        Ok(Box::new(file))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn FileWrite>> {
        Ok(Box::new(File::create(path)?))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn FileWrite>> {
        Ok(Box::new(OpenOptions::new().append(true).create(true).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        // POSIX lets a directory replace an empty one. Ours never may: what is there is never silently lost.
        if fs::symlink_metadata(to).is_ok_and(|m| m.is_dir()) {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        match File::open(path)?.sync_all() {
            // Some network and user-space file systems cannot sync a directory; they have nothing better to offer.
            Err(e) if matches!(e.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput) => Ok(()),
            other => other,
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().into_string() {
                entries.push(DirEntry { name, kind: kind_of(entry.file_type()?) });
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn kind(&self, path: &Path) -> io::Result<Option<Kind>> {
        match fs::metadata(path) {
            Ok(m) => Ok(Some(kind_of(m.file_type()))),
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn free_space(&self, path: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn lock(&self, path: &Path, owner: &str) -> io::Result<Option<LockGuard>> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0)?;
                file.write_all(owner.as_bytes())?;
                Ok(Some(Box::new(file)))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }
}
