//! The one thread pool of a process: the emulator, the weight-gradient jobs and the CPU math share it, so that the
//! thread count bounds everything and nothing oversubscribes.
//!
//! Waits block, they do not spin: a spinning pool collapses when another process takes a core. A parallel region costs a
//! wake-up (some microseconds), so functions cut work into few coarse tasks.

use rayon::prelude::*;

/// Why there is no pool.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {threads} CPU threads: {reason}; ask for fewer with --threads")]
pub struct PoolError {
    threads: usize,
    reason: String,
}

/// A fixed set of worker threads.
#[derive(Debug)]
pub struct Pool {
    inner: rayon::ThreadPool,
}

impl Pool {
    /// A pool of `threads` workers; 0 asks for one per available core.
    pub fn new(threads: usize) -> Result<Pool, PoolError> {
        let threads = if threads == 0 { std::thread::available_parallelism().map_or(1, usize::from) } else { threads };
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("cpu-{i}"))
            .build()
            .map(|inner| Pool { inner })
            .map_err(|e| PoolError { threads, reason: e.to_string() })
    }

    /// Number of workers.
    pub fn threads(&self) -> usize {
        self.inner.current_num_threads()
    }

    /// Runs `f` on a worker and waits; rayon's parallel iterators inside use this pool. Called on a worker it runs in place.
    pub fn install<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        self.inner.install(f)
    }

    /// Queues `f` for a worker and returns at once.
    pub fn spawn(&self, f: impl FnOnce() + Send + 'static) {
        self.inner.spawn(f);
    }

    /// Calls `f(i)` for each of `0..n` in parallel, each index a task of its own, and waits. A single task runs in place.
    pub fn for_each(&self, n: usize, f: impl Fn(usize) + Sync) {
        if n == 1 {
            return f(0);
        }
        self.install(|| (0..n).into_par_iter().with_max_len(1).for_each(&f));
    }

    /// Calls `f(i, chunk i)` for every `len`-element chunk of `data` in parallel, and waits. A single chunk runs in place.
    pub fn chunks_mut<T: Send>(&self, data: &mut [T], len: usize, f: impl Fn(usize, &mut [T]) + Sync) {
        if data.is_empty() {
            return;
        }
        if data.len() <= len {
            return f(0, data);
        }
        self.install(|| data.par_chunks_mut(len.max(1)).with_max_len(1).enumerate().for_each(|(i, c)| f(i, c)));
    }
}
