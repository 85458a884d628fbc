//! The output leaf: a strided matrix cut in disjoint parts that threads write at the same time.
//!
//! Rows of an arbitrarily strided output are no slices that could be handed to threads, so this file holds the pointer. A
//! [`Part`] owns its elements: parts are made only by cutting rows or matrices off a whole whose elements were checked to lie
//! inside the data and to be distinct.
#![allow(unsafe_code)]

use super::{Dims, Output};
use crate::round::Finish;
use crate::simd;
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

    /// Stores a block of results, `values[i * cols + j]` for element (row + i, col + j).
    ///
    /// # Panics
    /// When they lie outside of the part.
    pub(super) fn store(&mut self, row: usize, col: usize, rows: usize, cols: usize, values: &[f32]) {
        let mut tile = [0f32; TILE * TILE];
        for r in (0..rows).step_by(TILE) {
            for c in (0..cols).step_by(TILE) {
                let (height, width) = (TILE.min(rows - r), TILE.min(cols - c));
                for (i, line) in tile.chunks_exact_mut(TILE).take(height).enumerate() {
                    line[..width].copy_from_slice(&values[(r + i) * cols + c..][..width]);
                }
                self.store_tile(row + r, col + c, height, width, &tile, false);
            }
        }
    }

    /// Stores the first `rows` × `cols` results of a tile at (row, col); `transposed`: `tile[j * TILE + i]` holds (row + i, col + j).
    ///
    /// # Panics
    /// When they lie outside of the part.
    pub(super) fn store_tile(&mut self, row: usize, col: usize, rows: usize, cols: usize, tile: &[f32], transposed: bool) {
        assert!(rows <= TILE && cols <= TILE && tile.len() == TILE * TILE, "matmul: not a tile");
        assert!(row + rows <= self.rows && col + cols <= self.cols, "matmul: tile outside of its part");
        // Lines run along the axis whose elements are neighbours.
        let along_columns = self.col_stride != 1 && self.row_stride == 1;
        let mut turned;
        let tile = if transposed == along_columns {
            tile
        } else {
            turned = [0f32; TILE * TILE];
            simd::transpose_tile(tile, &mut turned);
            &turned
        };
        let start = row * self.row_stride + col * self.col_stride;
        let (lines, length, line_stride, stride) =
            if along_columns { (cols, rows, self.col_stride, 1) } else { (rows, cols, self.row_stride, self.col_stride) };
        match self.place {
            Place::F16 { base, finish } => {
                // SAFETY: the elements of the tile lie in this part, by the second assertion, and nobody else may touch them.
                let base = unsafe { base.add(start) };
                if stride == 1 {
                    // SAFETY: as above.
                    return unsafe { simd::store_tile(tile, base, line_stride, lines, length, finish) };
                }
                for (i, values) in tile.chunks_exact(TILE).take(lines).enumerate() {
                    for (j, v) in values[..length].iter().enumerate() {
                        // SAFETY: as above.
                        unsafe { base.add(i * line_stride + j * stride).write(finish.apply(*v)) };
                    }
                }
            }
            Place::F32 { base, scale, accumulate } => {
                for (i, values) in tile.chunks_exact(TILE).take(lines).enumerate() {
                    // SAFETY: as above.
                    let line = unsafe { base.add(start + i * line_stride) };
                    if stride == 1 {
                        // SAFETY: as above; neighbours are elements of the line.
                        let line = unsafe { std::slice::from_raw_parts_mut(line, length) };
                        add_line(line, &values[..length], scale, accumulate);
                    } else {
                        for (j, v) in values[..length].iter().enumerate() {
                            // SAFETY: as above.
                            add_line(unsafe { std::slice::from_mut(&mut *line.add(j * stride)) }, &[*v], scale, accumulate);
                        }
                    }
                }
            }
        }
    }

    /// Brings the place of the tile at (row, col) near, for a store that reads it.
    pub(super) fn prefetch(&self, row: usize, col: usize) {
        #[cfg(target_arch = "x86_64")]
        if let Place::F32 { base, accumulate: true, .. } = self.place {
            use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            let across = self.row_stride == 1;
            for i in 0..TILE {
                let offset = row * self.row_stride + col * self.col_stride + i * if across { self.col_stride } else { self.row_stride };
                let line = base.wrapping_add(offset);
                // SAFETY: a prefetch has no effect that a program can see, at any address.
                unsafe {
                    _mm_prefetch::<_MM_HINT_T1>(line.cast());
                    _mm_prefetch::<_MM_HINT_T1>(line.wrapping_add(TILE / 2).cast());
                }
            }
        }
    }
}

fn add_line(line: &mut [f32], values: &[f32], scale: f32, accumulate: bool) {
    if accumulate {
        for (c, v) in line.iter_mut().zip(values) {
            *c += scale * v;
        }
    } else {
        for (c, v) in line.iter_mut().zip(values) {
            *c = scale * v;
        }
    }
}
