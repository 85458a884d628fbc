//! The loss of a model on token sequences.

use crate::error::InferError;
use crate::network::Network;
use cpu::loss::{IGNORE, Slice, nll_only};

/// Negative log-likelihood, summed, and over how many targets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loss {
    /// Sum over targets, in nats.
    pub nll: f64,
    /// Number of targets.
    pub targets: usize,
}

impl Loss {
    /// Mean over targets, in nats.
    pub fn mean(&self) -> f64 {
        self.nll / self.targets.max(1) as f64
    }

    /// `exp(mean)`; of sums, never a mean of perplexities.
    pub fn perplexity(&self) -> f64 {
        self.mean().exp()
    }
}

/// The loss of one micro-batch: `tokens` and `targets` sequence after sequence, `cpu::loss::IGNORE` for targets that do not count.
///
/// # Errors
/// When a token or target is not in the vocabulary, or an evaluation failed.
pub fn evaluate(network: &Network, values: &[Vec<f32>], tokens: &[u32], targets: &[u32]) -> Result<Loss, InferError> {
    let columns = network.columns_of(tokens)?;
    let targets = network.target_columns(targets)?;
    network.forward(values, &columns)?;
    let logits = network.head.read()?;
    let slices: Vec<_> = logits.views().into_iter().map(|logits| Slice { valid: logits.rows, logits }).collect();
    let loss = nll_only(&network.machine.pool, &slices, &targets);
    Ok(Loss { nll: loss.nll, targets: targets.iter().filter(|&&t| t != IGNORE).count() })
}
