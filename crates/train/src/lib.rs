//! Training: the step ([`step()`], the file to read first), what it is made of, and the loop around it.

mod backward;
pub mod checkpoint;
mod cost;
mod dw;
mod grads;
mod head_back;
pub mod metrics;
mod net;
mod optimizer;
pub mod plan;
mod report;
pub mod restart;
pub mod run;
mod scaler;
mod schedule;
pub mod signals;
mod step;
mod watch;

pub use cost::{Cost, Memory, PlanError};
pub use cpu::loss::IGNORE;
pub use grads::Grads;
pub use net::{Batch, Net, Outcome, Phases, StepError};
pub use optimizer::{AdamW, AdamWConfig};
pub use plan::Plan;
pub use report::{Report, peak_rss_mib};
pub use run::{RunError, run};
pub use scaler::{AMAX_LIMIT, LossScaler, ScalerError};
pub use schedule::Schedule;
pub use step::step;
