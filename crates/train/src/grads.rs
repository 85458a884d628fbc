//! Gradients of all parameters, fp32, with the loss scale still in.

use cpu::Pool;
use cpu::stats::sum_of_squares;
use model::ParamSpec;

/// One vector a parameter, in canonical order. Matrices are overwritten by their first weight-gradient job of a step and added to by
/// the later ones, so they need no clearing.
pub struct Grads {
    values: Vec<Vec<f32>>,
    written: Vec<bool>,
}

impl Grads {
    /// Zero gradients.
    pub fn new(parameters: &[ParamSpec]) -> Grads {
        Grads { values: parameters.iter().map(|p| vec![0.0; p.len()]).collect(), written: vec![false; parameters.len()] }
    }

    /// Forgets the last step's gradients.
    pub fn clear(&mut self) {
        self.written.fill(false);
    }

    /// The gradient of a parameter, to add to.
    pub fn sum(&mut self, param: usize) -> &mut [f32] {
        if !std::mem::replace(&mut self.written[param], true) {
            self.values[param].fill(0.0);
        }
        &mut self.values[param]
    }

    /// Lends a gradient out, and whether it holds a sum already. [`Grads::put`] brings it back.
    pub(crate) fn take(&mut self, param: usize) -> (Vec<f32>, bool) {
        let holds_sum = std::mem::replace(&mut self.written[param], true);
        (std::mem::take(&mut self.values[param]), holds_sum)
    }

    /// Brings a gradient back.
    pub(crate) fn put(&mut self, param: usize, values: Vec<f32>) {
        self.values[param] = values;
    }

    /// The gradient of a parameter, with the loss scale in.
    pub fn get(&self, param: usize) -> &[f32] {
        &self.values[param]
    }

    /// The norm of all gradients together, without the loss scale: the one place where it is taken out. The optimizer takes it out of each
    /// element by a factor.
    pub fn unscaled_norm(&mut self, pool: &Pool, scale: f32) -> f64 {
        for param in 0..self.values.len() {
            // A parameter that nothing wrote has a gradient of zero, not the last step's.
            self.sum(param);
        }
        self.values.iter().map(|g| sum_of_squares(pool, g)).sum::<f64>().sqrt() / f64::from(scale)
    }
}
