//! The loss scale: a factor that lifts fp16 gradients out of the range where the chip loses them.
//!
//! Gradients that small vanish: products below about 2^-15 are lost in the multiply-accumulate (ane-measurements 1.8). So the loss
//! starts multiplied by 256 · n_layers, rounded up to a power of two so that dividing by it is exact. The chip never shows NaN and its overflow is ±inf or, in places, 0
//! (ane-measurements 1.3), so what is watched is every dx output: infinities, the largest value, and the share of zeros.

use cpu::stats::Watch;
use serde::{Deserialize, Serialize};

/// Above this amax a dx output is too close to the 2^15 at which a matrix product becomes inf.
pub const AMAX_LIMIT: f32 = 16_384.0;
/// The scale is raised only while every dx output stays under this.
const RAISE_LIMIT: f32 = 4_096.0;
/// Clean steps in a row before the scale may rise.
const GROWTH_INTERVAL: u32 = 200;
/// Skipped steps in a row after which training stops.
const MAX_SKIPS: u32 = 20;

/// The scale and what decides its next value; saved with every checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossScaler {
    scale: f32,
    clean: u32,
    skipped: u32,
}

/// Why the scaler gives up.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScalerError {
    /// Nothing is left to halve.
    #[error(
        "gradients overflow even with a loss scale of 1: the learning rate is too high or the weights have diverged; resume from an earlier checkpoint with a lower --learning-rate"
    )]
    BelowOne,
    /// Too many skips in a row.
    #[error(
        "{0} updates in a row were skipped for overflowing gradients: the weights have diverged; resume from an earlier checkpoint with a lower --learning-rate"
    )]
    Skips(u32),
    /// A NaN on the CPU side, which no overflow of the device explains.
    #[error("the gradient norm is {0}, though no device output overflowed: this is a bug; please report it with the run's log")]
    NotANumber(f64),
}

impl LossScaler {
    /// The scale that a model of `n_layers` starts with.
    pub fn new(n_layers: usize) -> LossScaler {
        LossScaler::with_scale((256 * n_layers.max(1)) as f32)
    }

    /// A scale of one's own choice.
    pub fn with_scale(scale: f32) -> LossScaler {
        LossScaler { scale, clean: 0, skipped: 0 }
    }

    /// What the loss is multiplied by in the next step.
    pub fn scale(&self) -> f32 {
        self.scale
    }

    /// Decides whether a step's gradients may update the weights, and moves the scale. `norm` is the unscaled gradient norm.
    ///
    /// # Errors
    /// When training cannot go on.
    pub fn accept(&mut self, norm: f64, watch: &Watch) -> Result<bool, ScalerError> {
        let overflow = watch.infinite > 0 || watch.amax >= AMAX_LIMIT || norm.is_infinite();
        if !overflow {
            if norm.is_nan() {
                return Err(ScalerError::NotANumber(norm));
            }
            self.skipped = 0;
            self.clean += 1;
            if self.clean >= GROWTH_INTERVAL {
                self.clean = 0;
                if watch.amax * 2.0 < RAISE_LIMIT {
                    self.scale *= 2.0;
                }
            }
            return Ok(true);
        }
        self.clean = 0;
        self.skipped += 1;
        self.scale /= 2.0;
        if self.scale < 1.0 {
            return Err(ScalerError::BelowOne);
        }
        if self.skipped >= MAX_SKIPS {
            return Err(ScalerError::Skips(self.skipped));
        }
        Ok(false)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn quiet(amax: f32) -> Watch {
        Watch { amax, infinite: 0, zeros: 0, count: 100 }
    }

    #[test]
    fn starts_at_256_a_layer() {
        assert_eq!(LossScaler::new(8).scale(), 2048.0);
        assert_eq!(LossScaler::new(12).scale(), 3072.0);
    }

    #[test]
    fn halves_and_skips_on_overflow() {
        let mut scaler = LossScaler::new(4);
        assert!(!scaler.accept(1.0, &Watch { infinite: 1, ..quiet(1.0) }).unwrap());
        assert_eq!(scaler.scale(), 512.0);
        assert!(!scaler.accept(1.0, &quiet(AMAX_LIMIT)).unwrap());
        assert_eq!(scaler.scale(), 256.0);
        assert!(scaler.accept(1.0, &quiet(100.0)).unwrap());
        assert_eq!(scaler.scale(), 256.0);
    }

    #[test]
    fn rises_after_clean_steps_while_there_is_room() {
        let mut scaler = LossScaler::new(1);
        for _ in 0..GROWTH_INTERVAL {
            assert!(scaler.accept(1.0, &quiet(10.0)).unwrap());
        }
        assert_eq!(scaler.scale(), 512.0);
        for _ in 0..GROWTH_INTERVAL {
            assert!(scaler.accept(1.0, &quiet(3000.0)).unwrap());
        }
        assert_eq!(scaler.scale(), 512.0);
    }

    #[test]
    fn stops_with_an_explanation() {
        let mut scaler = LossScaler::with_scale(1.0);
        assert_eq!(scaler.accept(f64::INFINITY, &quiet(1.0)), Err(ScalerError::BelowOne));
        assert!(matches!(LossScaler::new(1).accept(f64::NAN, &quiet(1.0)), Err(ScalerError::NotANumber(_))));
    }
}
