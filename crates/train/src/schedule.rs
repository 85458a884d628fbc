//! The learning rate of a step: linear warm-up, then a cosine from the peak down to a minimum.

use serde::{Deserialize, Serialize};

/// A cosine schedule with warm-up. A pure function of the step: resuming needs no state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Highest learning rate, reached at the end of the warm-up.
    pub peak: f32,
    /// Lowest, reached at the last step.
    pub min: f32,
    /// Steps of warm-up.
    pub warmup: u64,
    /// Steps of the whole run.
    pub iters: u64,
}

impl Schedule {
    /// The rate of `step`, the first step being 1.
    pub fn at(&self, step: u64) -> f32 {
        if step <= self.warmup {
            return self.peak * (step as f32 / self.warmup.max(1) as f32);
        }
        let span = self.iters.saturating_sub(self.warmup).max(1) as f64;
        let done = ((step - self.warmup) as f64 / span).min(1.0);
        let cosine = 0.5 * (1.0 + (std::f64::consts::PI * done).cos());
        (self.min as f64 + (self.peak - self.min) as f64 * cosine) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_in_a_line_and_falls_in_a_cosine() {
        let schedule = Schedule { peak: 1.0, min: 0.1, warmup: 10, iters: 110 };
        assert_eq!(schedule.at(1), 0.1);
        assert_eq!(schedule.at(10), 1.0);
        assert!((schedule.at(60) - 0.55).abs() < 1e-6);
        assert_eq!(schedule.at(110), 0.1);
        assert_eq!(schedule.at(500), 0.1);
    }

    #[test]
    fn without_warmup_the_first_step_is_near_the_peak() {
        let schedule = Schedule { peak: 1.0, min: 0.0, warmup: 0, iters: 100 };
        assert!(schedule.at(1) > 0.999);
    }
}
