//! What a training step costs in arithmetic.

use crate::{Config, Shape};

/// Floating-point operations of one forward and backward pass over a micro-batch, a multiply-add counting two.
///
/// Matmuls only, at the model's own sizes: padding, norms and the optimizer are left out. Every matrix takes part three
/// times (forward, dx, dW), and so do scores and values of attention, which are counted whole, as the programs compute
/// them: the causal half is not left out.
pub fn train_flops(config: &Config, shape: Shape) -> u64 {
    3 * forward_flops(config, shape)
}

/// Floating-point operations of one forward pass over a micro-batch; see [`train_flops`].
pub fn forward_flops(config: &Config, shape: Shape) -> u64 {
    let (d, h, q, kv) = (config.dim, config.hidden_dim, config.q_dim(), config.kv_dim());
    let layer = d * (q + 2 * kv) + q * d + 3 * d * h;
    let weights = config.n_layers * layer + config.vocab_size * d;
    let attention = config.n_layers * 2 * q * shape.seq;
    2 * (shape.batch * shape.seq) as u64 * (weights + attention) as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Preset;

    #[test]
    fn six_operations_a_weight_and_token() {
        let config = Preset::by_name("stories110m").unwrap().config;
        let gains = (2 * 12 + 1) * 768;
        let weights = (config.parameter_count() - gains) as u64; // tied: the embedding is the classifier
        let tokens = 256;
        let attention = 12 * 12 * 2 * (2 * 256 * 256 * 64) * 3;
        assert_eq!(train_flops(&config, Shape { batch: 1, seq: 256 }), 6 * weights * tokens + attention);
    }
}
