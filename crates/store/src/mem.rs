//! A file system in memory that knows what a power cut would leave of it. For tests, of this crate and of those above.
//!
//! The model is the strict reading of POSIX: a file's content is durable after its own sync, a name after the sync of its
//! directory, a rename is one change that happens or does not. What is not durable survives a cut or not, as [`Cut`] says.

use crate::fs::{DirEntry, FileSystem, FileWrite, Kind, LockGuard, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Cursor, ErrorKind, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Id = usize;
type Names = BTreeMap<String, Id>;

/// What a power cut leaves of changes that were not synced.
#[derive(Clone, Copy, Debug)]
pub enum Cut {
    /// Nothing.
    Nothing,
    /// All names, but only the synced content: the classic file of length zero after a rename.
    NamesOnly,
    /// Each change of a name, and a part of each file's new content, by the throw of a die with this seed.
    Random(u64),
}

enum Node {
    File { live: Vec<u8>, durable: Vec<u8> },
    Dir { live: Names, durable: Names },
}

/// A change of names that is not durable yet.
enum Change {
    Link { dir: Id, name: String, id: Id },
    Unlink { dir: Id, name: String },
    Rename { from: (Id, String), to: (Id, String), id: Id },
}

struct State {
    nodes: Vec<Node>,
    pending: Vec<Change>,
    locks: BTreeSet<PathBuf>,
    free: u64,
    max_write: usize,
}

/// See the module. Clones share the same files.
#[derive(Clone)]
pub struct MemFs(Arc<Mutex<State>>);

const ROOT: Id = 0;

impl Default for MemFs {
    fn default() -> Self {
        MemFs::new(usize::MAX)
    }
}

impl MemFs {
    /// An empty file system with only `/`, which takes at most `max_write` bytes in one write: small values cut a save
    /// into many calls, and prove that writers go on after a short write.
    pub fn new(max_write: usize) -> MemFs {
        let root = Node::Dir { live: Names::new(), durable: Names::new() };
        let state = State { nodes: vec![root], pending: Vec::new(), locks: BTreeSet::new(), free: u64::MAX, max_write: max_write.max(1) };
        MemFs(Arc::new(Mutex::new(state)))
    }

    /// Sets what [`FileSystem::free_space`] answers.
    pub fn set_free_space(&self, bytes: u64) {
        self.state().free = bytes;
    }

    /// Forgets what was not synced, and all locks, as a power cut does.
    pub fn cut_power(&self, cut: Cut) {
        self.state().cut_power(cut);
    }

    /// A copy of all files as they are now, sharing nothing.
    pub fn snapshot(&self) -> MemFs {
        let state = self.state();
        let nodes = state.nodes.iter().map(|node| match node {
            Node::File { live, .. } => Node::File { live: live.clone(), durable: live.clone() },
            Node::Dir { live, .. } => Node::Dir { live: live.clone(), durable: live.clone() },
        });
        let state =
            State { nodes: nodes.collect(), pending: Vec::new(), locks: BTreeSet::new(), free: state.free, max_write: state.max_write };
        MemFs(Arc::new(Mutex::new(state)))
    }

    /// The whole content of a file, for tests to look at or damage.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let state = self.state();
        match &state.nodes[state.find(path)?] {
            Node::File { live, .. } => Ok(live.clone()),
            Node::Dir { .. } => Err(ErrorKind::IsADirectory.into()),
        }
    }

    /// Puts a file in place, durable at once, creating the directories above it.
    ///
    /// # Errors
    /// If a file stands where a directory is needed.
    pub fn put(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut above = PathBuf::new();
        for part in path.parent().into_iter().flat_map(Path::components) {
            above.push(part);
            if self.kind(&above)?.is_none() {
                self.create_dir(&above)?;
            }
        }
        let mut file = self.create(path)?;
        file.write_all(bytes)?;
        let mut state = self.state();
        let State { nodes, pending, .. } = &mut *state;
        pending.clear();
        for node in nodes {
            match node {
                Node::File { live, durable } => durable.clone_from(live),
                Node::Dir { live, durable } => durable.clone_from(live),
            }
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self, path: &Path, keep: bool) -> io::Result<Box<dyn FileWrite>> {
        let mut state = self.state();
        let (dir, name) = state.place(path)?;
        let id = match state.names(dir)?.get(&name) {
            Some(&id) => match &mut state.nodes[id] {
                Node::Dir { .. } => return Err(ErrorKind::IsADirectory.into()),
                Node::File { live, .. } => {
                    if !keep {
                        live.clear();
                    }
                    id
                }
            },
            None => {
                let id = state.add(Node::File { live: Vec::new(), durable: Vec::new() });
                state.link(dir, name, id)?;
                id
            }
        };
        Ok(Box::new(MemFile { fs: self.clone(), id }))
    }
}

impl State {
    fn add(&mut self, node: Node) -> Id {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn names(&mut self, dir: Id) -> io::Result<&mut Names> {
        match &mut self.nodes[dir] {
            Node::Dir { live, .. } => Ok(live),
            Node::File { .. } => Err(ErrorKind::NotADirectory.into()),
        }
    }

    fn durable(&mut self, dir: Id) -> &mut Names {
        match &mut self.nodes[dir] {
            Node::Dir { durable, .. } => durable,
            Node::File { .. } => unreachable!("changes of names are recorded for directories only"),
        }
    }

    fn find(&self, path: &Path) -> io::Result<Id> {
        let mut at = ROOT;
        for part in path.components() {
            match part {
                Component::RootDir | Component::CurDir => {}
                Component::Normal(name) => {
                    let Node::Dir { live, .. } = &self.nodes[at] else { return Err(ErrorKind::NotADirectory.into()) };
                    let name = name.to_str().ok_or(ErrorKind::InvalidInput)?;
                    at = *live.get(name).ok_or(ErrorKind::NotFound)?;
                }
                Component::ParentDir | Component::Prefix(_) => return Err(ErrorKind::InvalidInput.into()),
            }
        }
        Ok(at)
    }

    /// The directory of a path, and the name in it.
    fn place(&self, path: &Path) -> io::Result<(Id, String)> {
        let name = path.file_name().and_then(|n| n.to_str()).ok_or(ErrorKind::InvalidInput)?;
        let dir = self.find(path.parent().unwrap_or(Path::new("/")))?;
        match &self.nodes[dir] {
            Node::Dir { .. } => Ok((dir, name.to_owned())),
            Node::File { .. } => Err(ErrorKind::NotADirectory.into()),
        }
    }

    fn link(&mut self, dir: Id, name: String, id: Id) -> io::Result<()> {
        self.names(dir)?.insert(name.clone(), id);
        self.pending.push(Change::Link { dir, name, id });
        Ok(())
    }

    /// Makes one change durable; a change whose ground is gone does nothing.
    fn settle(&mut self, change: Change) {
        match change {
            Change::Link { dir, name, id } => {
                self.durable(dir).insert(name, id);
            }
            Change::Unlink { dir, name } => {
                self.durable(dir).remove(&name);
            }
            Change::Rename { from, to, id } => {
                if self.durable(from.0).get(&from.1) == Some(&id) {
                    self.durable(from.0).remove(&from.1);
                    self.durable(to.0).insert(to.1, id);
                }
            }
        }
    }

    fn cut_power(&mut self, cut: Cut) {
        let mut die = Die(match cut {
            Cut::Random(seed) => seed,
            Cut::Nothing | Cut::NamesOnly => 0,
        });
        for change in std::mem::take(&mut self.pending) {
            let survives = match cut {
                Cut::Nothing => false,
                Cut::NamesOnly => true,
                Cut::Random(_) => die.below(2) == 0,
            };
            if survives {
                self.settle(change);
            }
        }
        for node in &mut self.nodes {
            match node {
                Node::Dir { live, durable } => live.clone_from(durable),
                Node::File { live, durable } => {
                    if matches!(cut, Cut::Random(_)) && live != durable {
                        // Any length may have arrived, with or without the old bytes beneath.
                        let keep = die.below(live.len() + 1);
                        live.truncate(keep);
                        if die.below(2) == 0 && durable.len() > keep {
                            live.extend_from_slice(&durable[keep..]);
                        }
                        durable.clone_from(live);
                    } else {
                        live.clone_from(durable);
                    }
                }
            }
        }
        self.locks.clear();
    }
}

/// SplitMix64, enough to vary what survives.
struct Die(u64);

impl Die {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

struct MemFile {
    fs: MemFs,
    id: Id,
}

impl Write for MemFile {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let mut state = self.fs.state();
        let n = data.len().min(state.max_write);
        if let Node::File { live, .. } = &mut state.nodes[self.id] {
            live.extend_from_slice(&data[..n]);
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FileWrite for MemFile {
    fn sync(&mut self) -> io::Result<()> {
        if let Node::File { live, durable } = &mut self.fs.state().nodes[self.id] {
            durable.clone_from(live);
        }
        Ok(())
    }
}

struct MemLock(MemFs, PathBuf);

impl Drop for MemLock {
    fn drop(&mut self) {
        self.0.state().locks.remove(&self.1);
    }
}

impl FileSystem for MemFs {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>> {
        Ok(Box::new(Cursor::new(self.read(path)?)))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn FileWrite>> {
        self.writer(path, false)
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn FileWrite>> {
        self.writer(path, true)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let (from, to) = (state.place(from)?, state.place(to)?);
        let id = *state.names(from.0)?.get(&from.1).ok_or(ErrorKind::NotFound)?;
        if let Some(&there) = state.names(to.0)?.get(&to.1)
            && matches!(state.nodes[there], Node::Dir { .. })
        {
            return Err(ErrorKind::AlreadyExists.into());
        }
        state.names(from.0)?.remove(&from.1);
        state.names(to.0)?.insert(to.1.clone(), id);
        state.pending.push(Change::Rename { from, to, id });
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let (dir, name) = state.place(path)?;
        let id = *state.names(dir)?.get(&name).ok_or(ErrorKind::NotFound)?;
        if matches!(state.nodes[id], Node::Dir { .. }) {
            return Err(ErrorKind::IsADirectory.into());
        }
        state.names(dir)?.remove(&name);
        state.pending.push(Change::Unlink { dir, name });
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let (dir, name) = state.place(path)?;
        let id = *state.names(dir)?.get(&name).ok_or(ErrorKind::NotFound)?;
        if !state.names(id)?.is_empty() {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        state.names(dir)?.remove(&name);
        state.pending.push(Change::Unlink { dir, name });
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let (dir, name) = state.place(path)?;
        if state.names(dir)?.contains_key(&name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let id = state.add(Node::Dir { live: Names::new(), durable: Names::new() });
        state.link(dir, name, id)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let id = state.find(path)?;
        state.names(id)?;
        let mut later = Vec::new();
        for change in std::mem::take(&mut state.pending) {
            let touches = match &change {
                Change::Link { dir, .. } | Change::Unlink { dir, .. } => *dir == id,
                Change::Rename { from, to, .. } => from.0 == id || to.0 == id,
            };
            if touches {
                state.settle(change);
            } else {
                later.push(change);
            }
        }
        state.pending = later;
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut state = self.state();
        let id = state.find(path)?;
        let names = state.names(id)?.clone();
        let entry = |(name, id): (String, Id)| {
            let kind = if matches!(state.nodes[id], Node::Dir { .. }) { Kind::Dir } else { Kind::File };
            DirEntry { name, kind }
        };
        Ok(names.into_iter().map(entry).collect())
    }

    fn kind(&self, path: &Path) -> io::Result<Option<Kind>> {
        let state = self.state();
        match state.find(path) {
            Ok(id) => Ok(Some(if matches!(state.nodes[id], Node::Dir { .. }) { Kind::Dir } else { Kind::File })),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn free_space(&self, path: &Path) -> io::Result<u64> {
        let state = self.state();
        state.find(path)?;
        Ok(state.free)
    }

    fn lock(&self, path: &Path, owner: &str) -> io::Result<Option<LockGuard>> {
        if !self.state().locks.insert(path.to_path_buf()) {
            return Ok(None);
        }
        let guard = MemLock(self.clone(), path.to_path_buf());
        self.create(path)?.write_all(owner.as_bytes())?;
        Ok(Some(Box::new(guard)))
    }
}
