//! SIGINT and SIGTERM: the first asks the run to save and stop, the second ends the process at once.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Whether the run was asked to stop. Clones share the answer.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    signal: Arc<AtomicUsize>,
}

impl Stop {
    /// A stop that nothing asks for.
    pub fn never() -> Stop {
        Stop::default()
    }

    /// A stop that SIGINT and SIGTERM ask for. From the second signal on the process exits with 128 + its number, unsaved.
    ///
    /// # Errors
    /// When the system refuses the handlers.
    pub fn on_signals() -> io::Result<Stop> {
        let stop = Stop::default();
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds `again` unset and sets it, the second exits.
            flag::register_conditional_shutdown(signal, 128 + signal, again.clone())?;
            flag::register(signal, again.clone())?;
            flag::register_usize(signal, stop.signal.clone(), signal as usize)?;
        }
        Ok(stop)
    }

    /// The signal that asked, if one did.
    pub fn asked(&self) -> Option<i32> {
        match self.signal.load(Ordering::SeqCst) {
            0 => None,
            signal => Some(signal as i32),
        }
    }
}
