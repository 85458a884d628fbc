//! The one device thread: first in, first out, every wait bounded.

use crate::binding::Binding;
use crate::device::{CallStats, EvalError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Runs bindings in the order they were submitted, on a thread of its own.
///
/// A call that *failed* is tried once more; a call that does not come back in time latches the queue as hung, and its surfaces are
/// never given back.
pub struct Queue {
    jobs: Sender<Job>,
    shared: Arc<Shared>,
    limit: Duration,
}

struct Shared {
    hung: AtomicBool,
    stats: Mutex<QueueStats>,
}

/// What went through a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Calls that finished.
    pub calls: u64,
    /// Calls that failed once and were tried again.
    pub retries: u64,
    /// Time on the device, summed.
    pub busy: CallStats,
}

struct Job {
    binding: Binding,
    done: SyncSender<Result<CallStats, EvalError>>,
}

/// A submitted call.
#[must_use = "a call that is not waited for may have failed"]
pub struct Pending {
    done: Receiver<Result<CallStats, EvalError>>,
    name: Arc<str>,
    limit: Duration,
    shared: Arc<Shared>,
}

impl Queue {
    /// A queue that waits at most `limit` for each call.
    pub fn new(limit: Duration) -> Queue {
        let (jobs, inbox) = channel::<Job>();
        let shared = Arc::new(Shared { hung: AtomicBool::new(false), stats: Mutex::default() });
        let stats = shared.clone();
        // The thread ends when the queue, its only sender, is dropped. A hung call keeps it, and what it holds, for ever: that is meant.
        std::thread::spawn(move || {
            for job in inbox {
                let result = run(&job.binding, &stats);
                job.binding.release(result.is_ok());
                // The submitter may have stopped listening (time-out); the result is then nobody's.
                let _ = job.done.send(result);
            }
        });
        Queue { jobs, shared, limit }
    }

    /// Queues a call. Inputs become read-only and outputs unreadable for the CPU until it is done.
    ///
    /// # Errors
    /// When a surface is in the CPU's hands, or the device is hung.
    pub fn submit(&self, binding: &Binding) -> Result<Pending, EvalError> {
        let hung = || EvalError::Hung { program: binding.name.to_string() };
        if self.shared.hung.load(Ordering::Acquire) {
            return Err(hung());
        }
        binding.claim()?;
        let (done, listen) = sync_channel(1);
        self.jobs.send(Job { binding: binding.clone(), done }).map_err(|_| hung())?;
        Ok(Pending { done: listen, name: binding.name.clone(), limit: self.limit, shared: self.shared.clone() })
    }

    /// Queues a call and waits for it.
    ///
    /// # Errors
    /// As [`Queue::submit`] and [`Pending::wait`].
    pub fn run(&self, binding: &Binding) -> Result<CallStats, EvalError> {
        self.submit(binding)?.wait()
    }

    /// What went through so far.
    pub fn stats(&self) -> QueueStats {
        *self.shared.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    /// Waits for the call, at most as long as the queue allows.
    ///
    /// # Errors
    /// When the call failed twice, or did not come back.
    pub fn wait(self) -> Result<CallStats, EvalError> {
        match self.done.recv_timeout(self.limit) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                self.shared.hung.store(true, Ordering::Release);
                Err(EvalError::Hung { program: self.name.to_string() })
            }
        }
    }
}

fn run(binding: &Binding, shared: &Shared) -> Result<CallStats, EvalError> {
    if binding.io.inputs.iter().any(|s| s.is_stale()) {
        let text = "an input is the output of a failed evaluation".to_string();
        return Err(EvalError::Failed { program: binding.name.to_string(), text });
    }
    let mut call = binding.call.lock().unwrap_or_else(PoisonError::into_inner);
    let first = call.run();
    let retried = matches!(first, Err(EvalError::Failed { .. }));
    let result = if retried { call.run() } else { first };
    let mut stats = shared.stats.lock().unwrap_or_else(PoisonError::into_inner);
    stats.retries += retried as u64;
    match result {
        Ok(one) => {
            stats.calls += 1;
            stats.busy.elapsed += one.elapsed;
            stats.busy.matmul += one.matmul;
            stats.busy.elementwise += one.elementwise;
            stats.busy.copy += one.copy;
            Ok(one)
        }
        Err(EvalError::Failed { text, .. }) => Err(EvalError::Failed { program: binding.name.to_string(), text }),
        Err(other) => Err(other),
    }
}
