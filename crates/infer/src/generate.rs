//! Continuing text: one token at a time, from the logits of the last position.
//!
//! There is no key/value cache yet: each token runs the forward pass over the whole sequence, in the shortest of a few lengths that
//! holds it. Past the longest, the sequence is continued from its last half.

use crate::error::InferError;
use crate::machine::Machine;
use crate::network::{Network, Use};
use model::programs::{Attention, Options, Weights};
use model::{Config, MAX_SEQ, SEQ_MULTIPLE, Shape};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// How the next token is chosen, and when to stop.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Tokens to make.
    pub max_tokens: usize,
    /// 0 takes the likeliest token; 1 draws by the model's own probabilities.
    pub temperature: f32,
    /// Draw among the `k` likeliest only.
    pub top_k: Option<usize>,
    /// Draw among the likeliest that together have this probability.
    pub top_p: Option<f32>,
    /// Seed of the draws.
    pub seed: u64,
    /// A token that ends the text; it is not returned.
    pub stop: Option<u32>,
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling { max_tokens: 256, temperature: 0.8, top_k: None, top_p: None, seed: 0, stop: None }
    }
}

/// A model ready to continue text. Its parameters stay with the caller, so that a run in training can show samples without a copy.
pub struct Generator {
    machine: Machine,
    config: Config,
    limit: usize,
    /// Networks by length, made when first needed.
    networks: Vec<Network>,
}

impl Generator {
    /// A generator for sequences of up to `max_len` tokens (at most 512, and at most what the model was made for).
    ///
    /// # Errors
    /// When the configuration is no model.
    pub fn new(machine: &Machine, config: &Config, max_len: usize) -> Result<Generator, InferError> {
        config.check()?;
        let limit = max_len.min(config.max_seq_len).clamp(1, MAX_SEQ);
        Ok(Generator { machine: machine.clone(), config: config.clone(), limit, networks: Vec::new() })
    }

    /// Takes over parameters that have changed since the last call.
    ///
    /// # Errors
    /// When a surface is in use.
    pub fn refresh(&mut self, values: &[Vec<f32>]) -> Result<(), InferError> {
        self.networks.iter().try_for_each(|n| n.stage(values))
    }

    /// Continues `prompt`; `on_token` sees each new token and may stop by returning `false`. The result is the new tokens.
    ///
    /// # Errors
    /// When the prompt is empty or holds an unknown token, or the device fails.
    pub fn generate(
        &mut self,
        values: &[Vec<f32>],
        prompt: &[u32],
        sampling: &Sampling,
        on_token: &mut dyn FnMut(u32) -> bool,
    ) -> Result<Vec<u32>, InferError> {
        if prompt.is_empty() {
            return Err(InferError::Empty);
        }
        let mut random = ChaCha8Rng::seed_from_u64(sampling.seed);
        let mut text = prompt.to_vec();
        for _ in 0..sampling.max_tokens {
            let window = window(text.len(), self.limit);
            let logits = self.logits(values, &text[window..])?;
            let token = choose(logits, sampling, &mut random);
            if sampling.stop == Some(token) {
                break;
            }
            text.push(token);
            if !on_token(token) {
                break;
            }
        }
        Ok(text.split_off(prompt.len()))
    }

    /// The logits after `tokens`, over the vocabulary.
    ///
    /// # Errors
    /// When there are no tokens or too many, or the device fails.
    pub fn logits(&mut self, values: &[Vec<f32>], tokens: &[u32]) -> Result<Vec<f32>, InferError> {
        let last = tokens.len().checked_sub(1).ok_or(InferError::Empty)?;
        let network = self.network(values, tokens.len())?;
        let network = &self.networks[network];
        network.forward(values, &network.columns_of(tokens)?)?;
        Ok(network.head.read()?.column(last))
    }

    /// The network of the shortest length that holds `len` tokens.
    fn network(&mut self, values: &[Vec<f32>], len: usize) -> Result<usize, InferError> {
        if len > self.limit {
            return Err(InferError::TooLong { tokens: len, limit: self.limit });
        }
        let seq = len.next_power_of_two().max(SEQ_MULTIPLE).min(self.limit.next_multiple_of(SEQ_MULTIPLE));
        if let Some(found) = self.networks.iter().position(|n| n.columns() == seq) {
            return Ok(found);
        }
        let options = Options { weights: Weights::Ports, attention: Attention::Split };
        let shape = Shape { batch: 1, seq };
        self.networks.push(Network::new(&self.machine, &self.config, shape, options, values, Use::Inference)?);
        Ok(self.networks.len() - 1)
    }
}

/// Where the part of a text of `len` tokens begins that fits in `limit`: at its start, or, in steps of half the limit, later.
fn window(len: usize, limit: usize) -> usize {
    if len <= limit {
        return 0;
    }
    let half = (limit / 2).max(1);
    (len - limit).div_ceil(half) * half
}

/// The next token.
fn choose(mut logits: Vec<f32>, sampling: &Sampling, random: &mut ChaCha8Rng) -> u32 {
    let likeliest = |logits: &[f32]| {
        let best = logits.iter().enumerate().fold((0, f32::NEG_INFINITY), |best, (i, &l)| if l > best.1 { (i, l) } else { best });
        best.0 as u32
    };
    if sampling.temperature <= 0.0 {
        return likeliest(&logits);
    }
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for l in &mut logits {
        *l = ((*l - top) / sampling.temperature).exp();
    }
    // Likeliest first; equal ones in order of token, so that a draw is reproducible.
    let mut order: Vec<u32> = (0..logits.len() as u32).collect();
    order.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]).then(a.cmp(&b)));
    order.truncate(sampling.top_k.unwrap_or(usize::MAX).max(1));
    let weight = |token: &u32| f64::from(logits[*token as usize]);
    let mut total: f64 = order.iter().map(weight).sum();
    if let Some(p) = sampling.top_p {
        let (mut sum, wanted) = (0.0, total * f64::from(p));
        let kept = order.iter().position(|t| {
            sum += weight(t);
            sum >= wanted
        });
        order.truncate(kept.map_or(order.len(), |k| k + 1));
        total = order.iter().map(weight).sum();
    }
    let mut draw = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64 * total;
    for token in &order {
        draw -= weight(token);
        if draw < 0.0 {
            return *token;
        }
    }
    order.last().copied().unwrap_or_else(|| likeliest(&logits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_move_in_halves() {
        assert_eq!(window(10, 10), 0);
        assert_eq!(window(11, 10), 5);
        assert_eq!(window(15, 10), 5);
        assert_eq!(window(16, 10), 10);
        assert!((1..200).all(|len| len - window(len, 10) <= 10 && len > window(len, 10)));
    }

    #[test]
    fn draws_follow_the_probabilities() {
        let logits = vec![0.0, 1.0f32.ln(), 2.0f32.ln(), f32::NEG_INFINITY];
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let sampling = Sampling { temperature: 1.0, ..Sampling::default() };
        let mut counts = [0; 4];
        for _ in 0..4000 {
            counts[choose(logits.clone(), &sampling, &mut random) as usize] += 1;
        }
        assert_eq!(counts[3], 0);
        assert!((counts[2] as f64 / 4000.0 - 0.5).abs() < 0.03, "{counts:?}");
        let greedy = Sampling { temperature: 0.0, ..Sampling::default() };
        assert_eq!(choose(logits.clone(), &greedy, &mut random), 2);
        let one = Sampling { top_k: Some(1), ..sampling.clone() };
        assert!((0..100).all(|_| choose(logits.clone(), &one, &mut random) == 2));
        let narrow = Sampling { top_p: Some(0.4), ..sampling };
        assert!((0..100).all(|_| choose(logits.clone(), &narrow, &mut random) == 2));
    }
}
