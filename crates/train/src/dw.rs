//! Weight gradients: `dW[out, in] += weight · dy[out, T] · x[in, T]ᵀ`, on CPU threads beside the device.
//!
//! Both operands are fp16 taps in surfaces that the device is done with; a job holds them open for reading, so that nobody can write
//! them before it has run. A parameter has one owner: its job holds its gradient while it runs, and a second job of the same parameter
//! waits for [`DwQueue::finish`]. So sums are formed in the order of the parts of a step, whatever the threads do.

use crate::grads::Grads;
use ane::{Slot, SlotRead, SurfaceError};
use cpu::matmul::{Dims, Operand, Output, Par, Path, matmul};
use cpu::{Pool, View};
use model::Axis;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Where the gradient of a parameter comes from.
#[derive(Clone)]
pub(crate) struct DwSource {
    /// The parameter.
    pub(crate) param: usize,
    /// Length of its rows.
    pub(crate) width: usize,
    /// Its products; several when its rows are in several surfaces, as a classifier's slices are.
    pub(crate) pieces: Vec<DwPiece>,
}

/// One product.
#[derive(Clone)]
pub(crate) struct DwPiece {
    /// Gradient of the projection's output, `[out, T]`.
    pub(crate) dy: Slot,
    /// The projection's input, `[in, T]`.
    pub(crate) x: Slot,
    /// Where the parameter's rows lie in `dy`.
    pub(crate) rows: Axis,
    /// Where its columns lie in `x`.
    pub(crate) cols: Axis,
}

/// Jobs that run on the pool's threads.
pub(crate) struct DwQueue {
    pool: Arc<Pool>,
    path: Path,
    done: Sender<(usize, Vec<f32>)>,
    finished: Receiver<(usize, Vec<f32>)>,
    running: usize,
}

impl DwQueue {
    /// A queue on `pool`.
    pub(crate) fn new(pool: Arc<Pool>, path: Path) -> DwQueue {
        let (done, finished) = channel();
        DwQueue { pool, path, done, finished, running: 0 }
    }

    /// Starts one job a parameter.
    ///
    /// # Errors
    /// When a tap is not readable: it is still being written, or its evaluation failed.
    pub(crate) fn push(&mut self, grads: &mut Grads, sources: &[DwSource], weight: f32) -> Result<(), SurfaceError> {
        sources.iter().try_for_each(|source| self.start(grads, source, weight))
    }

    fn start(&mut self, grads: &mut Grads, source: &DwSource, weight: f32) -> Result<(), SurfaceError> {
        let open = |p: &DwPiece| Ok((p.dy.read()?, p.x.read()?, p.rows.clone(), p.cols.clone()));
        let pieces: Vec<Piece> = source.pieces.iter().map(open).collect::<Result<_, SurfaceError>>()?;
        let (mut values, accumulate) = grads.take(source.param);
        let (param, width, path, done) = (source.param, source.width, self.path, self.done.clone());
        self.running += 1;
        self.pool.spawn(move || {
            for (dy, x, rows, cols) in &pieces {
                product(path, &mut values, width, dy.view(), x.view(), rows, cols, weight, accumulate);
            }
            drop(pieces);
            // The queue outlives its jobs unless the step failed; then nobody wants the result.
            let _ = done.send((param, values));
        });
        Ok(())
    }

    /// Waits for every job and hands the gradients back; says how long it waited.
    pub(crate) fn finish(&mut self, grads: &mut Grads) -> Duration {
        let start = Instant::now();
        while self.running > 0 {
            // This queue holds a sender, so the channel cannot close.
            let Ok((param, values)) = self.finished.recv() else { break };
            grads.put(param, values);
            self.running -= 1;
        }
        start.elapsed()
    }
}

type Piece = (SlotRead, SlotRead, Axis, Axis);

/// `values[rows, cols] (+)= weight · dy · xᵀ`, run by run of the axes: one product unless heads are padded.
#[allow(clippy::too_many_arguments)]
fn product(
    path: Path,
    values: &mut [f32],
    width: usize,
    dy: View<'_>,
    x: View<'_>,
    rows: &Axis,
    cols: &Axis,
    weight: f32,
    accumulate: bool,
) {
    for r in rows.segments() {
        for c in cols.segments() {
            let (a, b) = (dy.sub_rows(r.to..r.to + r.len), x.sub_rows(c.to..c.to + c.len));
            let dims = Dims { batch: 1, m: r.len, n: c.len, k: dy.cols };
            let a = Operand { data: a.data, batch_stride: 0, row_stride: a.stride, col_stride: 1 };
            let b = Operand { data: b.data, batch_stride: 0, row_stride: 1, col_stride: b.stride };
            let data = &mut values[r.from * width + c.from..];
            matmul(Par::Serial, path, dims, a, b, Output::F32 { data, batch_stride: 0, row_stride: width, scale: weight, accumulate });
        }
    }
}
