//! The reader: one file, or a model in several files with an index.

use crate::error::{Context, Result, StoreError};
use crate::files::{is_plain_name, length, read_text};
use crate::fs::{FileSystem, Kind, Source};
use half::{bf16, f16};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Longest header that is read, as in the format's own library.
const HEADER_LIMIT: u64 = 100_000_000;
/// Bytes converted at a time; a multiple of every element's size.
const CHUNK: usize = 1 << 18;

/// An open safetensors file, its header checked: offsets contiguous, shapes and lengths in agreement, no name twice, and
/// the file exactly as long as the header says.
pub struct Reader {
    path: PathBuf,
    file: Box<dyn Source>,
    data: u64,
    tensors: BTreeMap<String, TensorInfo>,
}

impl Reader {
    /// Opens a file and checks its header.
    ///
    /// # Errors
    /// What is wrong with the header, or a file that is shorter or longer than it says, with both lengths.
    pub fn open(fs: &dyn FileSystem, path: &Path) -> std::result::Result<Reader, StoreError> {
        let bad = |problem: String| StoreError::bad(path, problem);
        let mut file = fs.open(path).doing("open", path)?;
        let len = length(&mut *file).doing("measure", path)?;
        let mut prefix = [0; 8];
        if len < 8 {
            return Err(bad(format!("is {len} bytes long, too short for a safetensors file: it is truncated or another format")));
        }
        file.read_exact(&mut prefix).doing("read", path)?;
        let header_len = u64::from_le_bytes(prefix);
        if header_len > HEADER_LIMIT || header_len > len - 8 {
            return Err(bad(format!(
                "says its header is {header_len} bytes, but the file is {len} (headers end at {HEADER_LIMIT}): it is truncated or not safetensors"
            )));
        }
        let mut header = vec![0; header_len as usize];
        file.read_exact(&mut header).doing("read", path)?;
        let metadata: Metadata = serde_json::from_slice(&header).map_err(|e| bad(format!("has a header that does not parse: {e}")))?;
        if let Some(name) = repeated_key(&header) {
            return Err(StoreError::tensor(path, &name, "is listed twice in the header"));
        }
        let (data, held) = (8 + header_len, len - 8 - header_len);
        if metadata.data_len() as u64 != held {
            return Err(bad(format!(
                "holds {held} bytes of data, but its header lists {}: it is truncated or damaged",
                metadata.data_len()
            )));
        }
        let tensors = metadata.tensors().into_iter().map(|(name, info)| (name, info.clone())).collect();
        Ok(Reader { path: path.to_path_buf(), file, data, tensors })
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names of the tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Shape of a tensor, if it is there.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|t| t.shape.as_slice())
    }

    /// Reads a tensor that must have this shape, as fp32; F16 and BF16 convert exactly.
    ///
    /// # Errors
    /// A tensor that is missing, of another shape, or of a type that is not floating point; the system's.
    pub fn read(&mut self, name: &str, shape: &[usize]) -> std::result::Result<Vec<f32>, StoreError> {
        let wrong = |problem: String| StoreError::tensor(&self.path, name, problem);
        let info = self.tensors.get(name).ok_or_else(|| wrong("is missing".into()))?;
        if info.shape != shape {
            return Err(wrong(format!("has shape {:?}, the configuration says {shape:?}", info.shape)));
        }
        let decode: fn(&[u8], &mut Vec<f32>) = match info.dtype {
            Dtype::F32 => |bytes, out| out.extend(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b))),
            Dtype::F16 => |bytes, out| out.extend(bytes.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).to_f32())),
            Dtype::BF16 => |bytes, out| out.extend(bytes.as_chunks().0.iter().map(|b| bf16::from_le_bytes(*b).to_f32())),
            other => return Err(wrong(format!("is of type {other:?}; F32, F16 and BF16 are read"))),
        };
        let (start, end) = info.data_offsets;
        let mut left = end - start;
        let mut values = Vec::with_capacity(left / (info.dtype.bitsize() / 8));
        let mut chunk = vec![0; left.min(CHUNK)];
        self.file.seek(SeekFrom::Start(self.data + start as u64)).doing("read", &self.path)?;
        while left > 0 {
            let part = &mut chunk[..left.min(CHUNK)];
            self.file.read_exact(part).doing("read", &self.path)?;
            decode(part, &mut values);
            left -= part.len();
        }
        Ok(values)
    }
}

/// The first key that a JSON object repeats. The format's library would silently take the last of them.
fn repeated_key(header: &[u8]) -> Option<String> {
    struct Keys;
    impl<'de> Visitor<'de> for Keys {
        type Value = Option<String>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
            let (mut seen, mut twice) = (BTreeSet::new(), None);
            while let Some((key, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
                if !seen.insert(key.clone()) {
                    twice.get_or_insert(key);
                }
            }
            Ok(twice)
        }
    }
    serde_json::Deserializer::from_slice(header).deserialize_map(Keys).ok().flatten()
}

/// All tensors of a model directory: `model.safetensors`, or the shards that `model.safetensors.index.json` lists.
pub struct Weights {
    readers: Vec<Reader>,
    place: BTreeMap<String, usize>,
    dir: PathBuf,
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Weights {
    /// Opens the files of a directory and checks their headers.
    ///
    /// # Errors
    /// No such files; a shard whose name is not a plain file name; a tensor that its shard lacks; as [`Reader::open`].
    pub fn open(fs: &dyn FileSystem, dir: &Path) -> std::result::Result<Weights, StoreError> {
        let single = dir.join("model.safetensors");
        let index = dir.join("model.safetensors.index.json");
        let mut weights = Weights { readers: Vec::new(), place: BTreeMap::new(), dir: dir.to_path_buf() };
        if fs.kind(&single).doing("look at", &single)? == Some(Kind::File) {
            let reader = Reader::open(fs, &single)?;
            weights.place = reader.names().map(|name| (name.to_owned(), 0)).collect();
            weights.readers.push(reader);
        } else if fs.kind(&index).doing("look at", &index)? == Some(Kind::File) {
            weights.open_shards(fs, &index)?;
        } else {
            return Err(StoreError::bad(dir, "holds neither model.safetensors nor model.safetensors.index.json"));
        }
        Ok(weights)
    }

    fn open_shards(&mut self, fs: &dyn FileSystem, index: &Path) -> Result<()> {
        let text = read_text(fs, index)?;
        let map: Index = serde_json::from_str(&text).map_err(|e| StoreError::bad(index, format!("does not parse: {e}")))?;
        let files: BTreeSet<&String> = map.weight_map.values().collect();
        for file in &files {
            if !is_plain_name(file) {
                return Err(StoreError::bad(
                    index,
                    format!("names the shard {file:?}: a shard must be a plain file name in the same directory"),
                ));
            }
            self.readers.push(Reader::open(fs, &self.dir.join(file))?);
        }
        for (shard, file) in files.iter().enumerate() {
            for (tensor, _) in map.weight_map.iter().filter(|(_, f)| f == file) {
                if self.readers[shard].shape(tensor).is_none() {
                    return Err(StoreError::tensor(
                        self.readers[shard].path(),
                        tensor,
                        format!("is missing, though {} lists it", index.display()),
                    ));
                }
                self.place.insert(tensor.clone(), shard);
            }
        }
        Ok(())
    }

    /// Names of the tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.place.keys().map(String::as_str)
    }

    /// Reads a tensor that must have this shape, as fp32.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn read(&mut self, name: &str, shape: &[usize]) -> std::result::Result<Vec<f32>, StoreError> {
        match self.place.get(name) {
            Some(&shard) => self.readers[shard].read(name, shape),
            None => Err(StoreError::tensor(&self.dir, name, "is missing")),
        }
    }
}
