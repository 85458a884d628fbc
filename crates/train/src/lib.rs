//! Training: the step ([`step()`], the file to read first), what it is made of, and the loop around it.

mod backward;
mod dw;
mod grads;
mod head_back;
mod net;
mod optimizer;
mod scaler;
mod schedule;
mod step;
mod watch;

pub use cpu::loss::IGNORE;
pub use grads::Grads;
pub use net::{Batch, Net, Outcome, Phases, StepError};
pub use optimizer::{AdamW, AdamWConfig};
pub use scaler::{AMAX_LIMIT, LossScaler, ScalerError};
pub use schedule::Schedule;
pub use step::step;
