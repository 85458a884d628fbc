//! Working memory of a thread, kept between matmuls.

use std::cell::Cell;

/// What a thread keeps at most, in bytes per kind of buffer; larger buffers are given back after use.
const KEEP: usize = 32 << 20;

/// A cache line, in bytes: buffers start on one.
const LINE: usize = 64;

/// Lends `f` a buffer of `len` elements that starts on a cache line; its contents are whatever was there.
///
/// The buffer is taken out of the thread's store meanwhile, so a job that runs on the same thread while `f` waits gets one of
/// its own.
fn lend<T: Copy + Default, R>(store: &'static std::thread::LocalKey<Cell<Vec<T>>>, len: usize, f: impl FnOnce(&mut [T]) -> R) -> R {
    let mut buffer = store.take();
    let room = LINE / size_of::<T>();
    if buffer.len() < len + room {
        buffer = Vec::new();
        buffer.resize(len + room, T::default());
    }
    let start = buffer.as_ptr().align_offset(LINE).min(room);
    let result = f(&mut buffer[start..start + len]);
    if size_of_val(&*buffer) <= KEEP {
        store.set(buffer);
    }
    result
}

/// Lends fp32 working memory.
pub(super) fn f32s<R>(len: usize, f: impl FnOnce(&mut [f32]) -> R) -> R {
    thread_local!(static STORE: Cell<Vec<f32>> = const { Cell::new(Vec::new()) });
    lend(&STORE, len, f)
}

/// Lends working memory for packed panels that threads share.
pub(super) fn u16s<R>(len: usize, f: impl FnOnce(&mut [u16]) -> R) -> R {
    thread_local!(static STORE: Cell<Vec<u16>> = const { Cell::new(Vec::new()) });
    lend(&STORE, len, f)
}

/// Lends working memory for packed panels of one thread.
pub(super) fn moving<R>(len: usize, f: impl FnOnce(&mut [u16]) -> R) -> R {
    thread_local!(static STORE: Cell<Vec<u16>> = const { Cell::new(Vec::new()) });
    lend(&STORE, len, f)
}
