//! Tests of the public functions against fp64 references written here.
#![allow(clippy::unwrap_used)]

mod matmul;
mod round;
mod step;
mod training;

use cpu::f16;

/// A small deterministic generator (xorshift), enough to fill operands.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Uniform in −1..1.
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    fn halves(&mut self, n: usize) -> Vec<f16> {
        (0..n).map(|_| f16::from_f32(self.unit())).collect()
    }
}
