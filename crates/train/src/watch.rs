//! What the dx outputs of a step look like, for the loss scaler.

use ane::Slot;
use cpu::Pool;
use cpu::stats::{Watch, watch};
use infer::InferError;

/// The watch of a step's dx outputs, all together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchSum(pub(crate) Watch);

impl WatchSum {
    /// Of nothing yet.
    pub(crate) fn new() -> WatchSum {
        WatchSum(Watch::EMPTY)
    }

    /// Looks at device outputs.
    pub(crate) fn look(&mut self, pool: &Pool, slots: &[&Slot]) -> Result<(), InferError> {
        for slot in slots {
            self.0 = self.0.and(watch(pool, slot.read()?.view()));
        }
        Ok(())
    }
}
