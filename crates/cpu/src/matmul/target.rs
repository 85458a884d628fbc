//! The output leaf: a strided matrix cut in disjoint parts that threads write at the same time.
//!
//! Rows of an arbitrarily strided output are no slices that could be handed to threads, so this file holds the pointer. A
//! [`Part`] owns its elements: parts are made only by cutting rows or matrices off a whole whose elements were checked to lie
//! inside the data and to be distinct.
#![allow(unsafe_code)]

use super::{Dims, Output};
use crate::round::Finish;
use half::f16;
use std::marker::PhantomData;

/// Edge of the square tiles in which a product is computed and stored.
pub(super) const TILE: usize = 32;

#[derive(Clone, Copy)]
enum Place {
    F16 { base: *mut f16, finish: Finish },
    F32 { base: *mut f32, scale: f32, accumulate: bool },
}

/// A matrix `[rows, cols]` of the output, or some rows of one, owned by whoever holds this.
pub(super) struct Part<'a> {
    place: Place,
    pub(super) rows: usize,
    pub(super) cols: usize,
    row_stride: usize,
    col_stride: usize,
    life: PhantomData<&'a mut [f16]>,
}

// SAFETY: a part is the only access to its elements while it lives, like a `&mut [f16]`.
unsafe impl Send for Part<'_> {}

impl<'a> Part<'a> {
    /// The matrices of an output, checked.
    pub(super) fn batches(out: Output<'a>, dims: Dims) -> Vec<Part<'a>> {
        let (place, len, batch_stride, row_stride, col_stride) = match out {
            Output::F16 { data, batch_stride, row_stride, col_stride, finish } => {
                (Place::F16 { base: data.as_mut_ptr(), finish }, data.len(), batch_stride, row_stride, col_stride)
            }
            Output::F32 { data, batch_stride, row_stride, scale, accumulate } => {
                (Place::F32 { base: data.as_mut_ptr(), scale, accumulate }, data.len(), batch_stride, row_stride, 1)
            }
        };
        let mut axes = [(batch_stride, dims.batch), (row_stride, dims.m), (col_stride, dims.n)];
        axes.sort_unstable();
        let mut reach = 0;
        for (stride, size) in axes {
            assert!(size == 1 || stride > reach, "matmul: output strides {axes:?} (stride, size) overlap");
            reach += (size - 1) * stride;
        }
        assert!(reach < len, "matmul: output of {dims:?} with (stride, size) {axes:?} ends past its {len} elements");
        let whole = Part { place, rows: dims.m, cols: dims.n, row_stride, col_stride, life: PhantomData };
        (0..dims.batch).map(|b| whole.shifted(b * batch_stride, dims.m)).collect()
    }

    /// `rows` rows from the element `offset` on. Private: the caller sees to it that parts are disjoint.
    fn shifted(&self, offset: usize, rows: usize) -> Part<'a> {
        let place = match self.place {
            // SAFETY: the offset is that of an element of the checked output.
            Place::F16 { base, finish } => Place::F16 { base: unsafe { base.add(offset) }, finish },
            // SAFETY: as above.
            Place::F32 { base, scale, accumulate } => Place::F32 { base: unsafe { base.add(offset) }, scale, accumulate },
        };
        Part { place, rows, cols: self.cols, row_stride: self.row_stride, col_stride: self.col_stride, life: PhantomData }
    }

    /// The transpose: the same elements.
    pub(super) fn transposed(self) -> Part<'a> {
        Part { rows: self.cols, cols: self.rows, row_stride: self.col_stride, col_stride: self.row_stride, ..self }
    }

    /// Parts of `height` rows, the last perhaps shorter.
    pub(super) fn split_rows(&mut self, height: usize) -> Vec<Part<'_>> {
        (0..self.rows).step_by(height).map(|r| self.shifted(r * self.row_stride, height.min(self.rows - r))).collect()
    }

    /// Stores `rows` × `cols` results, `values[i * ld + j]` for element (row + i, col + j).
    ///
    /// # Panics
    /// When they lie outside of the part.
    pub(super) fn store(&mut self, row: usize, col: usize, rows: usize, cols: usize, values: &[f32], ld: usize) {
        assert!(row + rows <= self.rows && col + cols <= self.cols, "matmul: tile outside of its part");
        for i in 0..rows {
            let line = &values[i * ld..][..cols];
            let start = (row + i) * self.row_stride + col * self.col_stride;
            match self.place {
                Place::F16 { base, finish } => {
                    for (piece, line) in line.chunks(TILE).enumerate() {
                        let mut half = [f16::ZERO; TILE];
                        let half = &mut half[..line.len()];
                        finish.round(line, half);
                        let start = start + piece * TILE * self.col_stride;
                        for (j, h) in half.iter().enumerate() {
                            // SAFETY: inside the part, by the assertion above.
                            unsafe { base.add(start + j * self.col_stride).write(*h) };
                        }
                    }
                }
                Place::F32 { base, scale, accumulate } => {
                    for (j, v) in line.iter().enumerate() {
                        // SAFETY: inside the part, by the assertion above; the part is the only access to it.
                        let place = unsafe { &mut *base.add(start + j * self.col_stride) };
                        *place = if accumulate { *place + scale * v } else { scale * v };
                    }
                }
            }
        }
    }
}
