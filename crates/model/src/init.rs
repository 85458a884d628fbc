//! Initial values of parameters.

use crate::{Config, ParamSpec, Role};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Standard deviation of matrices and embeddings (GPT-2's and llama2.c's).
const STD: f64 = 0.02;

impl Config {
    /// Initial values of `param`, a function of the seed, the parameter's name, its length and role alone: the order
    /// in which parameters are made does not matter.
    ///
    /// Gains are 1. Everything else is normal with standard deviation 0.02; the two projections that write into the
    /// residual stream (`o_proj` and `down_proj`) are smaller by `√(2·n_layers)`, so that the stream's variance does not
    /// grow with depth.
    pub fn initial_values(&self, param: &ParamSpec, seed: u64) -> Vec<f32> {
        let std = match param.role {
            Role::AttnNorm | Role::FfnNorm | Role::FinalNorm => return vec![1.0; param.len()],
            Role::Wo | Role::W2 => STD / (2.0 * self.n_layers as f64).sqrt(),
            Role::Embedding | Role::Classifier | Role::Wq | Role::Wk | Role::Wv | Role::W1 | Role::W3 => STD,
        };
        let mut stream = stream(seed, &param.name);
        let mut values = Vec::with_capacity(param.len() + 1);
        while values.len() < param.len() {
            values.extend(normal_pair(&mut stream).map(|z| (z * std) as f32));
        }
        values.truncate(param.len());
        values
    }
}

/// A stream of random numbers of its own for each (seed, name).
fn stream(seed: u64, name: &str) -> ChaCha8Rng {
    // FNV-1a: the name's hash must be the same on every machine and in every version.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&hash.to_le_bytes());
    ChaCha8Rng::from_seed(key)
}

/// Two independent standard normal numbers (Box and Muller).
fn normal_pair(stream: &mut ChaCha8Rng) -> [f64; 2] {
    const STEP: f64 = 1.0 / (1u64 << 53) as f64;
    let above_zero = ((stream.next_u64() >> 11) + 1) as f64 * STEP;
    let turn = (stream.next_u64() >> 11) as f64 * STEP;
    let radius = (-2.0 * above_zero.ln()).sqrt();
    let (sin, cos) = (std::f64::consts::TAU * turn).sin_cos();
    [radius * cos, radius * sin]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Preset;

    fn moments(values: &[f32]) -> (f64, f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
        let central = |p: i32| values.iter().map(|&v| (f64::from(v) - mean).powi(p)).sum::<f64>() / n;
        (mean, central(2).sqrt(), central(4) / central(2).powi(2))
    }

    #[test]
    fn statistics_are_gpt2s() {
        let config = Preset::by_name("stories15m").unwrap().config;
        for param in config.parameters() {
            let values = config.initial_values(&param, 7);
            assert_eq!(values.len(), param.len());
            if !param.decays() {
                assert!(values.iter().all(|&v| v == 1.0), "{}", param.name);
                continue;
            }
            let want = match param.role {
                Role::Wo | Role::W2 => 0.02 / 12f64.sqrt(),
                _ => 0.02,
            };
            let (mean, std, kurtosis) = moments(&values);
            let sigmas = 6.0 / (values.len() as f64).sqrt();
            assert!(mean.abs() < sigmas * want, "{}: mean {mean}", param.name);
            assert!((std / want - 1.0).abs() < sigmas, "{}: std {std}, not {want}", param.name);
            assert!((kurtosis - 3.0).abs() < 5.0 * sigmas, "{}: kurtosis {kurtosis}", param.name);
        }
    }

    #[test]
    fn values_depend_on_seed_and_name_alone() {
        let config = Preset::by_name("stories260k").unwrap().config;
        let all = config.parameters();
        let (first, other) = (&all[2], all.iter().find(|p| p.role == Role::Wq && p.layer == Some(1)).unwrap());
        assert_eq!(first.shape, other.shape);
        let once = config.initial_values(first, 1);
        assert_ne!(once, config.initial_values(other, 1));
        assert_ne!(once, config.initial_values(first, 2));
        assert_eq!(once, config.initial_values(first, 1));
    }

    #[test]
    fn values_do_not_change_between_versions() {
        let config = Preset::by_name("stories260k").unwrap().config;
        let values = config.initial_values(&config.parameters()[0], 0);
        for (value, want) in values.iter().zip([0.005_832_526_4, -0.023_281_405, 0.041_476_928, 0.029_142_42]) {
            assert!((value - want).abs() < 1e-8, "{:?}", &values[..4]);
        }
    }
}
