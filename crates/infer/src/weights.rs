//! Where the fp32 parameters lie, rounded to fp16, in the surfaces that programs read.

use ane::{Slot, SurfaceError};
use cpu::{Pool, ViewMut};
use half::f16;
use model::Axis;
use rayon::prelude::*;

/// A parameter's place in a surface.
pub struct WeightSlot {
    /// Which parameter, in canonical order.
    pub param: usize,
    /// Where.
    pub slot: Slot,
    /// Whether the field holds the parameter's transpose.
    pub transposed: bool,
    /// How the parameter's rows lie in the field: in its columns, if transposed.
    pub rows: Axis,
    /// How the parameter's columns lie in the field.
    pub cols: Axis,
}

impl WeightSlot {
    /// Writes the parameter `values`, `[_, width]` row-major, rounded to fp16.
    ///
    /// # Errors
    /// When the surface is in use.
    pub fn stage(&self, pool: &Pool, values: &[f32], width: usize) -> Result<(), SurfaceError> {
        let mut guard = self.slot.write()?;
        place(pool, values, width, guard.view_mut(), self.transposed, &self.rows, &self.cols);
        Ok(())
    }
}

/// Rounds `values`, `[_, width]` row-major, into `field` by the axes. Places that no axis covers are left alone: they are zero from the start.
pub fn place(pool: &Pool, values: &[f32], width: usize, field: ViewMut<'_>, transposed: bool, rows: &Axis, cols: &Axis) {
    let stride = field.stride;
    let data = field.data;
    let (down, across) = if transposed { (cols, rows) } else { (rows, cols) };
    for d in down.segments() {
        let end = ((d.to + d.len) * stride).min(data.len());
        let block = &mut data[d.to * stride..end];
        pool.install(|| {
            block.par_chunks_mut(ROWS * stride).enumerate().for_each(|(chunk, lines)| {
                for a in across.segments() {
                    for (i, line) in lines.chunks_mut(stride).enumerate() {
                        let out = &mut line[a.to..a.to + a.len];
                        let index = d.from + chunk * ROWS + i;
                        if transposed {
                            gather(values, width, a.from, index, out);
                        } else {
                            let start = index * width + a.from;
                            cpu::round::round(&values[start..start + a.len], out);
                        }
                    }
                }
            });
        });
    }
}

/// Rows of a field that one task writes.
const ROWS: usize = 16;

/// Column `col` of `values` from row `first` on, rounded.
fn gather(values: &[f32], width: usize, first: usize, col: usize, out: &mut [f16]) {
    for (i, o) in out.iter_mut().enumerate() {
        *o = f16::from_f32(values[(first + i) * width + col]);
    }
}
