//! What a checkpoint holds beside tensors, and what must not have changed when a run goes on from it.

use crate::plan::{ChipName, Matmul, Plan};
use crate::run::Inputs;
use crate::{AdamW, LossScaler};
use model::Config;
use model::programs::Options;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use store::hf::SpecialTokens;
use store::{FileSystem, Loaded, StoreError, Verified};
use text::Tokenizer;

/// `state.json`: a pure function of (configuration, data, seed, step). Times, compiles, hosts and restarts are in `run.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Updates made: steps less those that were skipped.
    pub adam_t: u64,
    /// The loss scale and what moves it.
    pub scaler: LossScaler,
    /// Targets that were learnt from.
    pub tokens_seen: u64,
    /// Fingerprint of the training tokens.
    pub data: String,
    /// Fingerprint of the tokenizer, if there is one.
    pub tokenizer: Option<String>,
    /// Seed of initial values and data order.
    pub seed: u64,
    /// Sequences of a micro-batch.
    pub batch_size: usize,
    /// Tokens of a sequence.
    pub seq: usize,
    /// Micro-batches of a step.
    pub parts: usize,
    /// Which variant of the programs.
    pub options: Options,
    /// The chip that the bits are those of.
    pub chip: ChipName,
    /// The CPU's way to multiply, on which bits depend too.
    pub matmul: Matmul,
}

impl State {
    /// The state after so many updates.
    pub fn new(plan: &Plan, inputs: &Inputs, opt: &AdamW, scaler: &LossScaler, tokens_seen: u64) -> State {
        State {
            adam_t: opt.t,
            scaler: scaler.clone(),
            tokens_seen,
            data: inputs.data_fingerprint.clone(),
            tokenizer: inputs.tokenizer_fingerprint(),
            seed: plan.seed,
            batch_size: plan.batch_size,
            seq: plan.seq,
            parts: plan.parts,
            options: plan.options,
            chip: plan.machine.chip,
            matmul: plan.machine.matmul,
        }
    }
}

/// Why a run cannot go on from a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// What the weights were trained on is not what they would be trained on.
    #[error("cannot resume from {}: `{field}` has changed since ({was} then, {now} now); give the same as before, or {allow} to go on with another", dir.display())]
    Changed {
        /// The checkpoint.
        dir: PathBuf,
        /// What changed.
        field: &'static str,
        /// Fingerprint in the checkpoint.
        was: String,
        /// Fingerprint now.
        now: String,
        /// How to go on all the same.
        allow: &'static str,
    },
    /// The checkpoint, or the model in it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Loads a verified checkpoint for `plan`; also says what else differs, which is allowed and worth a warning.
///
/// # Errors
/// When model, data or tokenizer are not those of the checkpoint and the plan does not allow it; the store's.
pub fn load(fs: &dyn FileSystem, from: &Verified, plan: &Plan, inputs: &Inputs) -> Result<(Loaded<State>, Vec<String>), ResumeError> {
    let loaded: Loaded<State> = store::checkpoint::load(fs, from, &plan.model)?;
    let (was, now) = (&loaded.state, inputs);
    let tokenizer = (&was.tokenizer, &now.tokenizer_fingerprint());
    let changed = |field, was: String, now: String, allow| Err(ResumeError::Changed { dir: from.dir().into(), field, was, now, allow });
    if tokenizer.0 != tokenizer.1 && !plan.allow.tokenizer {
        let name = |t: &Option<String>| t.as_deref().map_or("none".into(), short);
        return changed("tokenizer", name(tokenizer.0), name(tokenizer.1), "--allow-tokenizer-change");
    }
    // Another tokenizer makes other tokens of the same text.
    if was.data != now.data_fingerprint && !plan.allow.data && !plan.allow.tokenizer {
        return changed("data", short(&was.data), short(&now.data_fingerprint), "--allow-data-change");
    }
    let here = (plan.seed, plan.batch_size, plan.seq, plan.parts);
    let mut differs = Vec::new();
    let mut differ = |field: &str, was: String, now: String| {
        if was != now {
            differs.push(format!("{field} was {was} up to step {}, and is {now} from here on", loaded.step));
        }
    };
    differ("seed", was.seed.to_string(), here.0.to_string());
    differ("batch size", was.batch_size.to_string(), here.1.to_string());
    differ("sequence length", was.seq.to_string(), here.2.to_string());
    differ("micro-batches of a step", was.parts.to_string(), here.3.to_string());
    differ("program variant", format!("{:?}", was.options), format!("{:?}", plan.options));
    differ("chip", was.chip.to_string(), plan.machine.chip.to_string());
    differ("matmul path", was.matmul.to_string(), plan.machine.matmul.to_string());
    Ok((loaded, differs))
}

/// The first characters of a fingerprint: enough to tell two apart.
fn short(fingerprint: &str) -> String {
    fingerprint.chars().take(12).collect()
}

/// Start and end tokens, as a Hugging Face configuration names them.
pub fn special_tokens(tokenizer: Option<&Tokenizer>) -> SpecialTokens {
    SpecialTokens { bos: tokenizer.and_then(Tokenizer::bos), eos: tokenizer.and_then(Tokenizer::eos), pad: None }
}

/// The files of a tokenizer in a Hugging Face directory.
pub fn tokenizer_files(tokenizer: &Tokenizer) -> Vec<(&'static str, Vec<u8>)> {
    let class = b"{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\"\n}\n".to_vec();
    vec![("tokenizer.json", tokenizer.to_json()), ("tokenizer_config.json", class)]
}

/// The files beside the four of a checkpoint, so that other programs load its directory.
///
/// # Errors
/// When the configuration is no model.
pub(crate) fn companions(config: &Config, tokenizer: Option<&Tokenizer>) -> Result<Vec<(&'static str, Vec<u8>)>, StoreError> {
    let mut files = vec![("config.json", store::hf::config_json(config, special_tokens(tokenizer), "float32")?)];
    files.extend(tokenizer.map(tokenizer_files).unwrap_or_default());
    Ok(files)
}

/// Moves the checkpoints after `step` out of the way of a run that goes on from `step`: to `RUN/discarded/`, where nothing looks for
/// them and nothing is deleted. Returns how many there were.
///
/// # Errors
/// The system's.
pub(crate) fn discard_after(fs: &dyn FileSystem, run_dir: &Path, step: u64) -> Result<usize, StoreError> {
    let later: Vec<u64> = store::list_steps(fs, run_dir)?.into_iter().filter(|&s| s > step).collect();
    if later.is_empty() {
        return Ok(0);
    }
    let discarded = run_dir.join("discarded");
    store::create_dirs(fs, &discarded)?;
    let io = |action, path: &Path, source| StoreError::Io { action, path: path.into(), source };
    for step in &later {
        let from = store::checkpoint::path(run_dir, *step);
        let name = from.file_name().unwrap_or_default().to_owned();
        let mut to = discarded.join(&name);
        let mut again = 1;
        while fs.kind(&to).map_err(|e| io("look at", &to, e))?.is_some() {
            again += 1;
            to = discarded.join(format!("{}.{again}", name.to_string_lossy()));
        }
        fs.rename(&from, &to).map_err(|e| io("move", &from, e))?;
    }
    fs.sync_dir(&run_dir.join("checkpoints")).map_err(|e| io("sync", run_dir, e))?;
    Ok(later.len())
}
