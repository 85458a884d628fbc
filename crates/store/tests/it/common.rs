//! Small models and their checkpoints, and a short way to save and load them.

use model::{Config, Rope};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use store::{Checkpoint, FileSystem, Loaded, StoreError, Verified, checkpoint};

pub(crate) const RUN: &str = "/runs/one";

pub(crate) fn run() -> &'static Path {
    Path::new(RUN)
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) loss_scale: f32,
    pub(crate) seen: u64,
    pub(crate) best: f64,
}

pub(crate) fn config(rope: Rope, tied: bool) -> Config {
    Config {
        dim: 8,
        hidden_dim: 12,
        n_layers: 2,
        n_heads: 2,
        n_kv_heads: 1,
        head_dim: 4,
        vocab_size: 10,
        max_seq_len: 16,
        rope_theta: 10_000.0,
        rope,
        norm_eps: 1e-5,
        tied,
    }
}

/// A model with its moments and state, all different for different seeds.
pub(crate) struct Snapshot {
    pub(crate) config: Config,
    pub(crate) data: [Vec<Vec<f32>>; 3],
    pub(crate) state: State,
}

impl Snapshot {
    pub(crate) fn new(config: Config, seed: u64) -> Snapshot {
        let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 40) as f32 / 1e6 - 8.0
        };
        let data = [(); 3].map(|()| config.parameters().iter().map(|p| (0..p.len()).map(|_| next()).collect()).collect());
        let state = State { loss_scale: 512.0, seen: seed * 100, best: 0.1 + seed as f64 / 3.0 };
        Snapshot { config, data, state }
    }

    pub(crate) fn save(&self, fs: &dyn FileSystem, run: &Path, step: u64) -> Result<PathBuf, StoreError> {
        let [params, exp_avg, exp_avg_sq] = self.data.each_ref().map(|d| slices(d));
        let config_json = store::hf::config_json(&self.config, Default::default(), "float32")?;
        let files: &[(&str, &[u8])] = &[("config.json", &config_json)];
        let all =
            Checkpoint { config: &self.config, params: &params, exp_avg: &exp_avg, exp_avg_sq: &exp_avg_sq, state: &self.state, files };
        checkpoint::save(fs, run, step, &all)
    }

    /// Asserts that a checkpoint holds exactly this.
    pub(crate) fn assert_is(&self, fs: &dyn FileSystem, found: &Verified) {
        let loaded: Loaded<State> = checkpoint::load(fs, found, &self.config).unwrap();
        assert!(self.equals(&loaded), "the checkpoint at {} holds something else", found.dir().display());
    }

    pub(crate) fn equals(&self, loaded: &Loaded<State>) -> bool {
        let [p, m, v] = &self.data;
        p == &loaded.params && m == &loaded.exp_avg && v == &loaded.exp_avg_sq && self.state == loaded.state
    }
}

pub(crate) fn slices(data: &[Vec<f32>]) -> Vec<&[f32]> {
    data.iter().map(Vec::as_slice).collect()
}

/// The newest checkpoint of a run, as a trainer finds it at start.
pub(crate) fn recover(fs: &dyn FileSystem, run: &Path) -> Option<Verified> {
    store::sweep(fs, run).unwrap();
    let found = store::find_latest(fs, run).unwrap();
    assert!(found.skipped.is_empty(), "a crash left a damaged checkpoint: {}", found.skipped[0].reason);
    found.checkpoint
}
