//! Golden files, machines and measures of agreement.

use ane::emulator::{Arithmetic, Emulator, EmulatorOptions};
use cpu::Pool;
use cpu::matmul::Path;
use infer::Machine;
use model::programs::{Attention, Options, Weights};
use model::{Config, Shape};
use safetensors::{Dtype, SafeTensors};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use train::{AdamW, AdamWConfig, Batch, Net};

/// A golden file: what PyTorch computed for a tiny model.
pub struct Golden {
    pub name: String,
    pub config: Config,
    pub batch: usize,
    pub seq: usize,
    pub json: serde_json::Value,
    pub tensors: BTreeMap<String, Tensor>,
}

/// A tensor as fp32, and its shape.
pub struct Tensor {
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

impl Golden {
    pub fn load(name: &str) -> Golden {
        let base = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(base.join(format!("{name}.json"))).unwrap()).unwrap();
        let bytes = std::fs::read(base.join(format!("{name}.safetensors"))).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let tensors = file.tensors().into_iter().map(|(name, view)| {
            let data = view.data();
            let values = match view.dtype() {
                Dtype::F32 => data.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect(),
                Dtype::F16 => data.chunks(2).map(|b| half::f16::from_le_bytes(b.try_into().unwrap()).to_f32()).collect(),
                Dtype::I32 => data.chunks(4).map(|b| i32::from_le_bytes(b.try_into().unwrap()) as f32).collect(),
                other => panic!("{name}: {other:?}"),
            };
            (name, Tensor { shape: view.shape().to_vec(), values })
        });
        Golden {
            name: name.into(),
            config: serde_json::from_value(json["config"].clone()).unwrap(),
            batch: json["batch"].as_u64().unwrap() as usize,
            seq: json["seq"].as_u64().unwrap() as usize,
            tensors: tensors.collect(),
            json,
        }
    }

    pub fn tensor(&self, name: &str) -> &Tensor {
        self.tensors.get(name).unwrap_or_else(|| panic!("{} has no {name}", self.name))
    }

    pub fn params(&self) -> Vec<Vec<f32>> {
        self.config.parameters().iter().map(|p| self.tensor(&p.name).values.clone()).collect()
    }

    pub fn shape(&self) -> Shape {
        Shape { batch: self.batch, seq: self.seq }
    }

    /// The micro-batches of each step.
    pub fn steps(&self) -> Vec<Vec<Batch>> {
        let token = |v: &f32| if *v < 0.0 { train::IGNORE } else { *v as u32 };
        if let Some(windows) = self.tensors.get("steps.tokens") {
            let len = self.seq + 1;
            let step = |tokens: &[f32]| {
                let rows = || tokens.chunks(len);
                let tokens = rows().flat_map(|r| r[..self.seq].iter().map(token)).collect();
                vec![Batch { tokens, targets: rows().flat_map(|r| r[1..].iter().map(token)).collect() }]
            };
            return windows.values.chunks(self.batch * len).map(step).collect();
        }
        let (ids, targets) = (self.tensor("ids"), self.tensor("targets"));
        let (parts, part) = (ids.shape[1], self.batch * self.seq);
        let batches: Vec<Batch> = ids
            .values
            .chunks(part)
            .zip(targets.values.chunks(part))
            .map(|(x, y)| Batch { tokens: x.iter().map(token).collect(), targets: y.iter().map(token).collect() })
            .collect();
        batches.chunks(parts).map(<[Batch]>::to_vec).collect()
    }

    pub fn optimizer(&self) -> AdamW {
        let of = |key: &str| self.json["optimizer"][key].as_f64().unwrap();
        let config = AdamWConfig {
            beta1: of("beta1"),
            beta2: of("beta2"),
            eps: of("eps"),
            weight_decay: of("weight_decay"),
            max_grad_norm: of("max_norm"),
        };
        AdamW::new(config, &self.config.parameters())
    }

    pub fn lr(&self) -> f32 {
        self.json["optimizer"]["lr"].as_f64().unwrap() as f32
    }

    pub fn step_losses(&self) -> Vec<f64> {
        self.json["step_losses"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
    }

    pub fn net(&self, options: Options, path: Path, threads: usize) -> Net {
        self.net_on(&machine(path, threads), options)
    }

    pub fn net_on(&self, machine: &Machine, options: Options) -> Net {
        Net::new(machine, &self.config, self.shape(), options, self.params()).unwrap()
    }
}

pub fn machine(path: Path, threads: usize) -> Machine {
    machine_of(Arithmetic::Fast, mil::Chip::H16, path, threads)
}

pub fn machine_of(arithmetic: Arithmetic, chip: mil::Chip, path: Path, threads: usize) -> Machine {
    let pool = Arc::new(Pool::new(threads).unwrap());
    let options = EmulatorOptions { compile_limit: None, matmul: path, arithmetic, ..EmulatorOptions::new(chip, pool.clone()) };
    Machine { device: Arc::new(Emulator::new(options)), pool, path }
}

/// Every variant of the programs.
pub fn variants() -> Vec<Options> {
    let weights = [Weights::Packed, Weights::Ports, Weights::Baked];
    weights.into_iter().flat_map(|weights| [Attention::Split, Attention::Fused].map(|attention| Options { weights, attention })).collect()
}

/// The matmul paths of this machine.
pub fn paths() -> Vec<Path> {
    if Path::amx_available() {
        return vec![Path::Portable, Path::Amx];
    }
    eprintln!("no AMX on this machine: the portable path alone is tested");
    vec![Path::Portable]
}

pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

pub fn norm(a: &[f32]) -> f64 {
    a.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt()
}
