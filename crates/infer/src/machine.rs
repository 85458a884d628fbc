//! What a network runs on.

use ane::Device;
use cpu::Pool;
use cpu::matmul::Path;
use std::sync::Arc;

/// A device, the CPU's one thread pool, and the CPU's way to multiply matrices.
#[derive(Clone)]
pub struct Machine {
    /// Runs the programs.
    pub device: Arc<dyn Device>,
    /// Runs the CPU's share.
    pub pool: Arc<Pool>,
    /// How the CPU multiplies (dW).
    pub path: Path,
}
