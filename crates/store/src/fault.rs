//! A file system that fails at the Nth call. For tests, of this crate and of those above.

use crate::fs::{DirEntry, FileSystem, FileWrite, Kind, LockGuard, Source};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The call does nothing and reports an input/output error; later calls work.
    Error,
    /// A write (or read) moves half of its bytes and says so, which is allowed and must be handled; other calls work.
    ShortWrite,
    /// From this call on nothing that takes room works: a write takes half of its bytes, then the disk is full.
    NoSpace,
    /// This call and all later ones do nothing (a write: half) and report an error, as seen by a process that dies here.
    /// Over a [`crate::MemFs`], call [`crate::MemFs::cut_power`] next and go on with the inner file system.
    PowerOff,
}

/// One planned failure.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Which call fails, counted from 1. Calls are every method of [`FileSystem`] and every read, write and sync of
    /// a file.
    pub at: u64,
    /// How.
    pub kind: FaultKind,
}

struct Plan {
    fault: Option<Fault>,
    calls: AtomicU64,
}

/// Wraps a file system, counts its calls and fails as planned.
pub struct FaultFs {
    inner: Arc<dyn FileSystem>,
    plan: Arc<Plan>,
}

/// What becomes of a call.
enum Fate {
    Done,
    Half,
    HalfThen(io::Error),
    Fails(io::Error),
}

impl Plan {
    /// Counts a call that takes `room` on the disk or not.
    fn call(&self, room: bool) -> Fate {
        let now = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let Some(Fault { at, kind }) = self.fault else { return Fate::Done };
        match kind {
            FaultKind::Error if now == at => Fate::Fails(io::Error::other("injected input/output error")),
            FaultKind::ShortWrite if now == at => Fate::Half,
            FaultKind::NoSpace if room && now == at => Fate::HalfThen(io::ErrorKind::StorageFull.into()),
            FaultKind::NoSpace if room && now > at => Fate::Fails(io::ErrorKind::StorageFull.into()),
            FaultKind::PowerOff if now == at => Fate::HalfThen(io::Error::other("the power is off")),
            FaultKind::PowerOff if now > at => Fate::Fails(io::Error::other("the power is off")),
            _ => Fate::Done,
        }
    }

    /// The same for a call that cannot be done by halves.
    fn whole(&self, room: bool) -> io::Result<()> {
        match self.call(room) {
            Fate::Done | Fate::Half => Ok(()),
            Fate::Fails(e) | Fate::HalfThen(e) => Err(e),
        }
    }
}

impl FaultFs {
    /// Wraps `inner`; with no fault it only counts.
    pub fn new(inner: Arc<dyn FileSystem>, fault: Option<Fault>) -> FaultFs {
        FaultFs { inner, plan: Arc::new(Plan { fault, calls: AtomicU64::new(0) }) }
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.plan.calls.load(Ordering::SeqCst)
    }

    fn wrap(&self, file: Box<dyn FileWrite>) -> Box<dyn FileWrite> {
        Box::new(FaultFile { inner: file, plan: self.plan.clone() })
    }
}

struct FaultFile {
    inner: Box<dyn FileWrite>,
    plan: Arc<Plan>,
}

impl Write for FaultFile {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let half = &data[..data.len().div_ceil(2)];
        match self.plan.call(true) {
            Fate::Done => self.inner.write(data),
            Fate::Half => self.inner.write(half),
            Fate::HalfThen(e) => {
                self.inner.write_all(half)?;
                Err(e)
            }
            Fate::Fails(e) => Err(e),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl FileWrite for FaultFile {
    fn sync(&mut self) -> io::Result<()> {
        self.plan.whole(true)?; // delayed allocation: a full disk may show only here
        self.inner.sync()
    }
}

struct FaultSource {
    inner: Box<dyn Source>,
    plan: Arc<Plan>,
}

impl Read for FaultSource {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.plan.call(false) {
            Fate::Done => self.inner.read(buffer),
            Fate::Half => {
                let half = buffer.len().div_ceil(2);
                self.inner.read(&mut buffer[..half])
            }
            Fate::HalfThen(e) | Fate::Fails(e) => Err(e),
        }
    }
}

impl Seek for FaultSource {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

impl FileSystem for FaultFs {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>> {
        self.plan.whole(false)?;
        Ok(Box::new(FaultSource { inner: self.inner.open(path)?, plan: self.plan.clone() }))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn FileWrite>> {
        self.plan.whole(true)?;
        Ok(self.wrap(self.inner.create(path)?))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn FileWrite>> {
        self.plan.whole(true)?;
        Ok(self.wrap(self.inner.append(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.plan.whole(true)?;
        self.inner.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.plan.whole(false)?;
        self.inner.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.plan.whole(false)?;
        self.inner.remove_dir(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.plan.whole(true)?;
        self.inner.create_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.plan.whole(true)?;
        self.inner.sync_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.plan.whole(false)?;
        self.inner.list(path)
    }

    fn kind(&self, path: &Path) -> io::Result<Option<Kind>> {
        self.plan.whole(false)?;
        self.inner.kind(path)
    }

    fn free_space(&self, path: &Path) -> io::Result<u64> {
        self.plan.whole(false)?;
        self.inner.free_space(path)
    }

    fn lock(&self, path: &Path, owner: &str) -> io::Result<Option<LockGuard>> {
        self.plan.whole(true)?;
        self.inner.lock(path, owner)
    }
}
