//! The state that the first step of a process starts from.

use super::{Inputs, RunError, StartAt};
use crate::checkpoint::{self, State};
use crate::plan::Plan;
use crate::{AdamW, LossScaler};
use store::{RealFs, Skipped, StoreError, Verified};

/// Weights, optimizer and all else at a step.
pub(crate) struct Start {
    /// Steps done.
    pub(crate) step: u64,
    pub(crate) params: Vec<Vec<f32>>,
    pub(crate) opt: AdamW,
    pub(crate) scaler: LossScaler,
    pub(crate) tokens_seen: u64,
    /// What was passed over, and what differs.
    pub(crate) warnings: Vec<String>,
}

/// Finds where to begin. Nothing in the run directory is moved before it is sure that the run goes on.
pub(crate) fn find(plan: &Plan, from: StartAt, inputs: &Inputs, weights: Option<Vec<Vec<f32>>>) -> Result<Start, RunError> {
    let found = match from {
        StartAt::Start => None,
        StartAt::Step(step) => Some((store::checkpoint::verify(&RealFs, &store::checkpoint::path(&plan.run_dir, step))?, Vec::new())),
        StartAt::Latest => latest(plan)?,
    };
    let Some((checkpoint, skipped)) = found else { return beginning(plan, weights) };
    let (loaded, mut warnings) = checkpoint::load(&RealFs, &checkpoint, plan, inputs)?;
    let moved = store::set_aside(&RealFs, &plan.run_dir, &skipped)?;
    for (skipped, to) in skipped.iter().zip(moved) {
        warnings.push(format!("passed over a checkpoint, now in {}: {}", to.display(), skipped.reason));
    }
    let later = checkpoint::discard_after(&RealFs, &plan.run_dir, loaded.step)?;
    if later > 0 {
        warnings.push(format!("{later} later checkpoints were moved to {}", plan.run_dir.join("discarded").display()));
    }
    let State { adam_t, scaler, tokens_seen, .. } = loaded.state;
    let mut opt = AdamW::new(plan.adamw, &plan.model.parameters());
    (opt.m, opt.v, opt.t) = (loaded.exp_avg, loaded.exp_avg_sq, adam_t);
    Ok(Start { step: loaded.step, params: loaded.params, opt, scaler, tokens_seen, warnings })
}

/// The newest checkpoint that verifies, and the newer ones that do not. A run that has checkpoints, none of them whole, is left as it
/// is: to begin again over it would lose what its owner may yet repair.
fn latest(plan: &Plan) -> Result<Option<(Verified, Vec<Skipped>)>, RunError> {
    let found = store::find_latest(&RealFs, &plan.run_dir)?;
    match (found.checkpoint, found.skipped.first()) {
        (None, Some(newest)) => Err(RunError::NoneWhole { run: plan.run_dir.clone(), reason: newest.reason.to_string() }),
        (None, None) => Ok(None),
        (Some(checkpoint), _) => Ok(Some((checkpoint, found.skipped))),
    }
}

/// The plan's weights, or fresh ones.
fn beginning(plan: &Plan, weights: Option<Vec<Vec<f32>>>) -> Result<Start, RunError> {
    let parameters = plan.model.parameters();
    let params = match (weights, &plan.weights) {
        (Some(values), _) => values,
        (None, Some(path)) => {
            let model = store::open_model(&RealFs, path)?;
            if model.config != plan.model {
                let problem = "is not the model it was when the run was planned".into();
                return Err(StoreError::Bad { path: path.clone(), problem }.into());
            }
            model.params
        }
        (None, None) => parameters.iter().map(|p| plan.model.initial_values(p, plan.seed)).collect(),
    };
    let opt = AdamW::new(plan.adamw, &parameters);
    Ok(Start { step: 0, params, opt, scaler: LossScaler::new(plan.model.n_layers), tokens_seen: 0, warnings: Vec::new() })
}
