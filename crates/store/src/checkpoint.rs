//! One checkpoint: saved whole or not at all, loaded verified or not at all.
//!
//! A save goes through these steps, each of which leaves the previous checkpoint whole and findable:
//! 1. the room on the disk is compared with the exact need;
//! 2. `checkpoints/.tmp-step-N/` is filled, every file hashed while it is written and synced, the manifest last;
//! 3. the directory is synced, renamed to `step-N`, and its parent synced: from here on it is a checkpoint;
//! 4. `RUN/latest` is replaced, a convenience for people that nothing relies on.
//!
//! Where `step-N` exists already (the step was saved before, or a run was rolled back and came by again) the same bytes
//! are left alone, and others are moved to `.old-step-N` before the rename, from where [`crate::sweep`] brings them back if the
//! rename was not reached.

use crate::error::{Context, Result, StoreError};
use crate::files::{HashWriter, TMP, create_dirs, parent, read_text, remove_tree, write_atomic};
use crate::fs::{FileSystem, Kind};
use crate::manifest::{self, Manifest, json_bytes};
use crate::rope::Rows;
use crate::run::{self, OLD};
use crate::safetensors::{self as st, Dtype, Reader, Tensor};
use model::Config;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

const MODEL: &str = "model.safetensors";
const OPTIMIZER: &str = "optimizer.safetensors";
const STATE: &str = "state.json";

/// What a checkpoint holds. Tensors are in the order of [`Config::parameters`], rotary channels in the model's own order.
pub struct Checkpoint<'a, S> {
    /// The model.
    pub config: &'a Config,
    /// Master weights.
    pub params: &'a [&'a [f32]],
    /// Adam's first moments.
    pub exp_avg: &'a [&'a [f32]],
    /// Adam's second moments.
    pub exp_avg_sq: &'a [&'a [f32]],
    /// All else that the next step depends on, and nothing that depends on the clock or the machine. Numbers must be
    /// finite: JSON has no others, and a state that does not come back the same is refused.
    pub state: &'a S,
    /// Further small files, such as `config.json` and `tokenizer.json`, covered by the manifest like the rest.
    pub files: &'a [(&'a str, &'a [u8])],
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateFile<C, S> {
    format: u32,
    step: u64,
    config: C,
    state: S,
}

/// A checkpoint directory whose every file has the length and checksum of its manifest. Only [`verify`] and
/// [`crate::find_latest`] make one.
#[derive(Clone, Debug)]
pub struct Verified {
    dir: PathBuf,
    step: u64,
    config: Config,
}

impl Verified {
    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The number of steps that were done.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The model that was trained.
    pub fn config(&self) -> &Config {
        &self.config
    }
}

/// A checkpoint in memory; vectors in the order of [`Config::parameters`].
#[derive(Debug, PartialEq)]
pub struct Loaded<S> {
    /// The number of steps that were done.
    pub step: u64,
    /// Master weights.
    pub params: Vec<Vec<f32>>,
    /// Adam's first moments.
    pub exp_avg: Vec<Vec<f32>>,
    /// Adam's second moments.
    pub exp_avg_sq: Vec<Vec<f32>>,
    /// The trainer's own state.
    pub state: S,
}

/// The path of a step's checkpoint in a run directory.
pub fn path(run_dir: &Path, step: u64) -> PathBuf {
    run::checkpoints(run_dir).join(run::step_name(step))
}

impl<'a, S: Serialize + DeserializeOwned> Checkpoint<'a, S> {
    /// The tensors of both files, and the texts, checked against the configuration.
    #[allow(clippy::type_complexity)] // two lists of tensors and a list of named texts, used once
    fn contents(&self, step: u64) -> Result<(Vec<Tensor<'a>>, Vec<Tensor<'a>>, Vec<(&'a str, Vec<u8>)>)> {
        self.config.check().map_err(|e| StoreError::Input(e.to_string()))?;
        let specs = self.config.parameters();
        let (mut model, mut optimizer) = (Vec::new(), Vec::new());
        for (what, data) in [("params", self.params), ("exp_avg", self.exp_avg), ("exp_avg_sq", self.exp_avg_sq)] {
            if data.len() != specs.len() {
                return Err(StoreError::Input(format!("checkpoint: {} tensors in {what}, the model has {}", data.len(), specs.len())));
            }
            for (spec, data) in specs.iter().zip(data) {
                let rows = Rows::of(self.config, spec);
                let tensor = |name: String| Tensor { name, shape: spec.shape.clone(), data, rows };
                match what {
                    "params" => model.push(tensor(spec.name.clone())),
                    moment => optimizer.push(tensor(format!("{}.{moment}", spec.name))),
                }
            }
        }
        let mut texts = vec![(STATE, self.state_bytes(step)?)];
        for (name, bytes) in self.files {
            if !crate::files::is_plain_name(name) || [MODEL, OPTIMIZER, STATE, manifest::NAME].contains(name) {
                return Err(StoreError::Input(format!("checkpoint: {name:?} cannot be the name of a further file")));
            }
            texts.push((name, bytes.to_vec()));
        }
        Ok((model, optimizer, texts))
    }
}

impl<S: Serialize + DeserializeOwned> Checkpoint<'_, S> {
    /// The state as text that is known to come back the same: JSON turns a NaN into `null`, which no one could load.
    fn state_bytes(&self, step: u64) -> Result<Vec<u8>> {
        let bytes = json_bytes(&StateFile { format: manifest::FORMAT, step, config: self.config, state: self.state }, STATE)?;
        let back = serde_json::from_slice::<StateFile<Config, S>>(&bytes);
        match back.map(|b| json_bytes(&b, STATE)) {
            Ok(Ok(again)) if again == bytes => Ok(bytes),
            Err(e) => Err(StoreError::Input(format!("checkpoint: the state does not survive JSON (a number that is not finite?): {e}"))),
            _ => Err(StoreError::Input("checkpoint: the state comes back from JSON changed".into())),
        }
    }
}

/// Saves a checkpoint as `RUN/checkpoints/step-…` and returns its path. Bytes depend on nothing but `step` and `checkpoint`.
///
/// Needs the run's [`crate::RunLock`]. Does not verify what it wrote: [`crate::prune`] does, before it removes any other.
///
/// # Errors
/// Too little room ([`StoreError::is_no_space`]) or the system's error: the previous checkpoints are whole, training can
/// go on and save again. Tensors that do not fit the configuration.
pub fn save<S: Serialize + DeserializeOwned>(
    fs: &dyn FileSystem,
    run_dir: &Path,
    step: u64,
    checkpoint: &Checkpoint<'_, S>,
) -> std::result::Result<PathBuf, StoreError> {
    let (model, optimizer, texts) = checkpoint.contents(step)?;
    let all = run::checkpoints(run_dir);
    create_dirs(fs, &all)?;
    let bytes = st::encoded_len(&model, Dtype::F32)? + st::encoded_len(&optimizer, Dtype::F32)?;
    check_room(fs, &all, bytes + texts.iter().map(|(_, t)| t.len() as u64).sum::<u64>())?;

    let (name, target) = (run::step_name(step), path(run_dir, step));
    let tmp = all.join(format!("{TMP}{name}"));
    let written = fill(fs, &tmp, step, &model, &optimizer, &texts).and_then(|manifest| publish(fs, &tmp, &target, &manifest));
    if let Err(e) = written {
        // Give the room back; if even that fails, `sweep` does it later, and the first error is the one to report.
        let _ = remove_tree(fs, &tmp, Kind::Dir);
        return Err(e);
    }
    write_atomic(fs, &run_dir.join(run::LATEST), format!("checkpoints/{name}\n").as_bytes())?;
    Ok(target)
}

/// Compares the need, and a little for directories and the manifest, with the free space.
fn check_room(fs: &dyn FileSystem, dir: &Path, bytes: u64) -> Result<()> {
    let need = bytes + (1 << 20);
    let free = fs.free_space(dir).doing("ask for the free space of", dir)?;
    if free < need {
        return Err(StoreError::NoSpace { path: dir.to_path_buf(), need, free });
    }
    Ok(())
}

fn fill(
    fs: &dyn FileSystem,
    tmp: &Path,
    step: u64,
    model: &[Tensor<'_>],
    optimizer: &[Tensor<'_>],
    texts: &[(&str, Vec<u8>)],
) -> Result<Manifest> {
    if let Some(kind) = fs.kind(tmp).doing("look at", tmp)? {
        remove_tree(fs, tmp, kind)?;
    }
    fs.create_dir(tmp).doing("create", tmp)?;
    let mut files = BTreeMap::new();
    for (name, tensors) in [(MODEL, model), (OPTIMIZER, optimizer)] {
        files.insert(name.to_owned(), st::write_hashed(fs, &tmp.join(name), tensors, Dtype::F32)?.into());
    }
    for (name, bytes) in texts {
        let path = tmp.join(name);
        let mut file = HashWriter::create(fs, &path)?;
        file.write_all(bytes).doing("write", &path)?;
        files.insert((*name).to_owned(), file.finish(&path)?.into());
    }
    let manifest = Manifest { format: manifest::FORMAT, step, files };
    manifest.write(fs, tmp)?;
    fs.sync_dir(tmp).doing("sync", tmp)?;
    Ok(manifest)
}

/// Renames a filled directory to its place. Nothing is removed before what stands for it is durable.
fn publish(fs: &dyn FileSystem, tmp: &Path, target: &Path, manifest: &Manifest) -> Result<()> {
    let all = parent(target);
    let old = target.with_file_name(format!("{OLD}{}", run::step_name(manifest.step)));
    let replaced = fs.kind(target).doing("look at", target)?.is_some();
    if replaced {
        if Manifest::read(fs, target).is_ok_and(|there| there == *manifest) && manifest.check(fs, target).is_ok() {
            remove_tree(fs, tmp, Kind::Dir)?;
            return fs.sync_dir(&all).doing("sync", &all);
        }
        if let Some(kind) = fs.kind(&old).doing("look at", &old)? {
            fs.sync_dir(&all).doing("sync", &all)?;
            remove_tree(fs, &old, kind)?;
        }
        fs.rename(target, &old).doing("move aside", target)?;
    }
    if let Err(e) = fs.rename(tmp, target).doing("rename to", target) {
        if replaced {
            let _ = fs.rename(&old, target); // `sweep` does it otherwise
        }
        return Err(e);
    }
    fs.sync_dir(&all).doing("sync", &all)?;
    if replaced { remove_tree(fs, &old, Kind::Dir) } else { Ok(()) }
}

/// Compares every file of a checkpoint directory with the manifest.
///
/// # Errors
/// The first file that is missing, truncated or damaged; a format this program does not read.
pub fn verify(fs: &dyn FileSystem, dir: &Path) -> std::result::Result<Verified, StoreError> {
    let manifest = Manifest::read(fs, dir)?;
    if let Some(name) = [MODEL, OPTIMIZER, STATE].into_iter().find(|n| !manifest.files.contains_key(*n)) {
        return Err(StoreError::bad(&dir.join(manifest::NAME), format!("does not list {name}")));
    }
    if let Some(step) = dir.file_name().and_then(|n| n.to_str()).and_then(run::step_of)
        && step != manifest.step
    {
        return Err(StoreError::bad(&dir.join(manifest::NAME), format!("is of step {}, not of {step}", manifest.step)));
    }
    manifest.check(fs, dir)?;
    let state: StateFile<Config, IgnoredAny> = read_state(fs, dir)?;
    let path = dir.join(STATE);
    if (state.format, state.step) != (manifest.format, manifest.step) {
        return Err(StoreError::bad(&path, format!("is of step {}, the manifest of {}", state.step, manifest.step)));
    }
    state.config.check().map_err(|source| StoreError::Config { path, source })?;
    Ok(Verified { dir: dir.to_path_buf(), step: state.step, config: state.config })
}

fn read_state<C: DeserializeOwned, S: DeserializeOwned>(fs: &dyn FileSystem, dir: &Path) -> Result<StateFile<C, S>> {
    let path = dir.join(STATE);
    serde_json::from_str(&read_text(fs, &path)?).map_err(|e| StoreError::bad(&path, format!("does not parse: {e}")))
}

/// Loads a verified checkpoint, which must be of the model `config`.
///
/// # Errors
/// The first field of the configuration that differs, with both values; a tensor that is missing or of another shape; a
/// state of another form; the system's.
pub fn load<S: DeserializeOwned>(
    fs: &dyn FileSystem,
    checkpoint: &Verified,
    config: &Config,
) -> std::result::Result<Loaded<S>, StoreError> {
    same_config(&checkpoint.dir, &checkpoint.config, config)?;
    let params = load_params(fs, checkpoint)?;
    let file = checkpoint.dir.join(OPTIMIZER);
    let mut optimizer = Reader::open(fs, &file)?;
    let held = optimizer.names().count();
    let mut moment = |suffix| read_all(config, &file, held, suffix, |name, shape| optimizer.read(name, shape));
    let (exp_avg, exp_avg_sq) = (moment(".exp_avg")?, moment(".exp_avg_sq")?);
    let state: StateFile<Config, S> = read_state(fs, &checkpoint.dir)?;
    Ok(Loaded { step: checkpoint.step, params, exp_avg, exp_avg_sq, state: state.state })
}

/// Loads only the weights of a verified checkpoint, in the order of [`Config::parameters`].
///
/// # Errors
/// As [`load`].
pub fn load_params(fs: &dyn FileSystem, checkpoint: &Verified) -> std::result::Result<Vec<Vec<f32>>, StoreError> {
    let file = checkpoint.dir.join(MODEL);
    let mut model = Reader::open(fs, &file)?;
    let held = model.names().count();
    read_all(&checkpoint.config, &file, held, "", |name, shape| model.read(name, shape))
}

/// Reads one tensor for each parameter, `suffix` after its name, rows brought to the model's order. `held` is the number of
/// tensors that are there: a configuration is not believed to have a million layers before anyone has seen one.
pub(crate) fn read_all(
    config: &Config,
    path: &Path,
    held: usize,
    suffix: &str,
    mut read: impl FnMut(&str, &[usize]) -> Result<Vec<f32>>,
) -> Result<Vec<Vec<f32>>> {
    if config.n_layers > held {
        let layers = config.n_layers;
        return Err(StoreError::bad(path, format!("holds {held} tensors, too few for the {layers} layers of its configuration")));
    }
    let one = |spec: &model::ParamSpec| {
        let data = read(&format!("{}{suffix}", spec.name), &spec.shape)?;
        Ok(Rows::of(config, spec).to_memory(data, spec.shape[1..].iter().product()))
    };
    config.parameters().iter().map(one).collect()
}

/// Compares two configurations field by field.
fn same_config(path: &Path, there: &Config, here: &Config) -> Result<()> {
    let fields = [
        ("dim", there.dim.to_string(), here.dim.to_string()),
        ("hidden_dim", there.hidden_dim.to_string(), here.hidden_dim.to_string()),
        ("n_layers", there.n_layers.to_string(), here.n_layers.to_string()),
        ("n_heads", there.n_heads.to_string(), here.n_heads.to_string()),
        ("n_kv_heads", there.n_kv_heads.to_string(), here.n_kv_heads.to_string()),
        ("head_dim", there.head_dim.to_string(), here.head_dim.to_string()),
        ("vocab_size", there.vocab_size.to_string(), here.vocab_size.to_string()),
        ("max_seq_len", there.max_seq_len.to_string(), here.max_seq_len.to_string()),
        ("rope_theta", there.rope_theta.to_string(), here.rope_theta.to_string()),
        ("rope", format!("{:?}", there.rope), format!("{:?}", here.rope)),
        ("norm_eps", there.norm_eps.to_string(), here.norm_eps.to_string()),
        ("tied", there.tied.to_string(), here.tied.to_string()),
    ];
    match fields.into_iter().find(|(_, a, b)| a != b) {
        Some((field, checkpoint, run)) => Err(StoreError::ConfigMismatch { path: path.to_path_buf(), field, checkpoint, run }),
        None => Ok(()),
    }
}
