//! What a plan costs, said before anything is built: memory, compiles, dispatches, operations.

use crate::plan::Plan;
use model::programs::{BlobContent, Content, FieldSpec, LayerPrograms, PortSpec, ProgramError, Sharing};
use serde::Serialize;
use std::collections::BTreeSet;

/// Why a plan cannot be carried out, whatever the data.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The model has no programs of this shape.
    #[error(transparent)]
    Programs(#[from] ProgramError),
    /// One process cannot build the model and update it once.
    #[error(
        "one update of this model needs {need} compiles ({build} to build it, {update} to take over changed weights), and a process has {limit}: \
         use --weights ports, which compiles once, or raise --compile-budget"
    )]
    Budget {
        /// Compiles that are needed.
        need: usize,
        /// Of those, at the start.
        build: usize,
        /// Of those, at the update.
        update: usize,
        /// Compiles there are.
        limit: u32,
    },
}

/// What a plan costs, before anything is built.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Parameters of the model.
    pub parameters: usize,
    /// Bytes of memory, estimated: see [`Memory`].
    pub memory: Memory,
    /// Compiles before the first step.
    pub compiles: usize,
    /// Compiles after each update.
    pub compiles_per_update: usize,
    /// Programs sent to the device in one step.
    pub dispatches_per_step: usize,
    /// Operations of one step.
    pub flops_per_step: u64,
    /// Tokens of one step.
    pub tokens_per_step: usize,
}

/// An estimate of the memory of a run, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// fp32 weights, their gradients and both moments.
    pub masters: usize,
    /// fp16 weights that programs read.
    pub weights: usize,
    /// fp16 activations and gradients in surfaces.
    pub surfaces: usize,
    /// fp32 values kept for the backward pass.
    pub saved: usize,
}

impl Memory {
    /// All together.
    pub fn total(&self) -> usize {
        self.masters + self.weights + self.surfaces + self.saved
    }
}

impl Plan {
    /// What the plan costs; also the check that it can be carried out.
    ///
    /// # Errors
    /// When the model has no such programs, or the compile budget cannot hold even one update.
    pub fn cost(&self) -> Result<Cost, PlanError> {
        let programs = self.programs()?;
        let layers = self.model.n_layers;
        let (build, update) = (programs.compiles(layers), programs.recompiles(layers));
        if let Some(limit) = self.machine.compile_budget
            && build + update > limit as usize
        {
            return Err(PlanError::Budget { need: build + update, build, update, limit });
        }
        Ok(Cost {
            parameters: self.model.parameter_count(),
            memory: memory(self, &programs),
            compiles: build,
            compiles_per_update: update,
            dispatches_per_step: programs.dispatches(layers) * self.parts,
            flops_per_step: self.flops_per_step(),
            tokens_per_step: self.tokens_per_step(),
        })
    }
}

/// What the surfaces of one network hold: ports that all layers share once, others once a layer, and a weight surface once
/// for all programs that read it.
fn memory(plan: &Plan, programs: &LayerPrograms) -> Memory {
    let layers = plan.model.n_layers;
    let mut bytes = Bytes::default();
    let mut seen = BTreeSet::new();
    for spec in programs.layer() {
        for port in spec.inputs.iter().chain(&spec.outputs) {
            match port.sharing {
                Sharing::All => bytes.port(port, 1),
                Sharing::One => bytes.port(port, layers),
                Sharing::Weights(key) if seen.insert(key) => bytes.port(port, layers),
                Sharing::Weights(_) => {}
            }
        }
        for blob in &spec.blobs {
            if let BlobContent::Weights(fields) = &blob.content {
                bytes.fields(fields, layers);
            }
        }
    }
    for port in programs.classifier.iter().flat_map(|slice| slice.fwd.inputs.iter().chain(&slice.fwd.outputs)) {
        bytes.port(port, 1);
    }
    let norms = (2 * layers + 1) * plan.model.dim * plan.shape().columns() * 4;
    Memory { masters: 16 * plan.model.parameter_count(), weights: bytes.weights, surfaces: bytes.activations, saved: norms }
}

#[derive(Default)]
struct Bytes {
    weights: usize,
    activations: usize,
}

impl Bytes {
    fn port(&mut self, port: &PortSpec, times: usize) {
        self.fields(&port.fields, times);
    }

    fn fields(&mut self, fields: &[FieldSpec], times: usize) {
        for field in fields {
            let bytes = 2 * field.rows * field.cols * times;
            match field.content {
                Content::Weight(_) => self.weights += bytes,
                Content::Activation(_) => self.activations += bytes,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::plan::tests::tiny;
    use model::programs::Weights;

    #[test]
    fn weights_weigh_what_their_binding_makes_of_them() {
        let mut plan = tiny();
        plan.model = model::Preset::by_name("stories15m").unwrap().config;
        plan.batch_size = 1;
        let parameters = plan.model.parameter_count();
        let weights = |plan: &Plan| plan.cost().unwrap().memory.weights as f64 / (2 * parameters) as f64;
        let ports = weights(&plan);
        assert!((0.95..1.1).contains(&ports), "ports: one fp16 copy, not {ports}");
        plan.options.weights = Weights::Packed;
        let packed = weights(&plan);
        assert!(packed > 1.3, "packed: forward and backward have their own copies of the layers, not {packed}");
        assert_eq!(plan.cost().unwrap().memory.masters, 16 * parameters);
    }

    #[test]
    fn a_budget_that_cannot_hold_one_update_is_refused_with_both_numbers() {
        let mut plan = tiny();
        plan.options.weights = Weights::Baked;
        let need = {
            plan.machine.compile_budget = None;
            let cost = plan.cost().unwrap();
            assert!(cost.compiles_per_update > 0);
            cost.compiles + cost.compiles_per_update
        };
        plan.machine.compile_budget = Some(need as u32);
        plan.cost().unwrap();
        plan.machine.compile_budget = Some(need as u32 - 1);
        let refused = plan.cost().unwrap_err().to_string();
        assert!(refused.contains(&need.to_string()) && refused.contains(&(need - 1).to_string()), "{refused}");
    }
}
