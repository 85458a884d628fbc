//! CPU math of a training step: matmul, norms, softmax, cross-entropy, RoPE, AdamW, fp16 rounding.
