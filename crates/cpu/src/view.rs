//! Windows of an fp16 matrix: `rows` rows of `cols` elements, one row every `stride` elements.
//!
//! The last row may end where the data ends: it needs `cols` elements, not `stride`.

use crate::pool::Pool;
use half::f16;
use rayon::prelude::*;
use std::ops::Range;

/// Elements that a window of `rows` × `cols` with this stride spans.
fn span(rows: usize, cols: usize, stride: usize) -> Option<usize> {
    if rows == 0 || cols == 0 { Some(0) } else { (rows - 1).checked_mul(stride)?.checked_add(cols) }
}

fn fits(len: usize, rows: usize, cols: usize, stride: usize) -> bool {
    (stride >= cols || rows <= 1) && span(rows, cols, stride).is_some_and(|s| s <= len)
}

/// A matrix that is read: element (r, c) is `data[r * stride + c]`.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The elements, from the first of row 0 on.
    pub data: &'a [f16],
    /// Number of rows (channels).
    pub rows: usize,
    /// Number of columns (tokens).
    pub cols: usize,
    /// Distance between the starts of two rows, in elements.
    pub stride: usize,
}

impl<'a> View<'a> {
    /// A window of `data`; `None` when it does not fit or rows would overlap.
    pub fn new(data: &'a [f16], rows: usize, cols: usize, stride: usize) -> Option<Self> {
        fits(data.len(), rows, cols, stride).then_some(View { data, rows, cols, stride })
    }

    /// All of `data` as dense rows of `cols` elements; `None` when it is no whole number of rows.
    pub fn dense(data: &'a [f16], cols: usize) -> Option<Self> {
        (cols > 0 && data.len().is_multiple_of(cols)).then(|| View { data, rows: data.len() / cols, cols, stride: cols })
    }

    /// Row `r`.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row(&self, r: usize) -> &'a [f16] {
        assert!(r < self.rows, "row {r} of {}", self.rows);
        if self.cols == 0 { &[] } else { &self.data[r * self.stride..][..self.cols] }
    }

    /// The rows of `range` as a window.
    ///
    /// # Panics
    /// When the range ends after the last row.
    pub fn sub_rows(&self, range: Range<usize>) -> View<'a> {
        assert!(range.start <= range.end && range.end <= self.rows, "rows {range:?} of {}", self.rows);
        let start = (range.start * self.stride).min(self.data.len());
        View { data: &self.data[start..], rows: range.len(), ..*self }
    }

    /// The columns of `range` as a window.
    ///
    /// # Panics
    /// When the range ends after the last column.
    pub fn sub_cols(&self, range: Range<usize>) -> View<'a> {
        assert!(range.start <= range.end && range.end <= self.cols, "columns {range:?} of {}", self.cols);
        View { data: &self.data[range.start.min(self.data.len())..], cols: range.len(), ..*self }
    }
}

/// A matrix that is written: element (r, c) is `data[r * stride + c]`. What lies between the rows is left alone.
#[derive(Debug)]
pub struct ViewMut<'a> {
    /// The elements, from the first of row 0 on.
    pub data: &'a mut [f16],
    /// Number of rows (channels).
    pub rows: usize,
    /// Number of columns (tokens).
    pub cols: usize,
    /// Distance between the starts of two rows, in elements.
    pub stride: usize,
}

impl<'a> ViewMut<'a> {
    /// A window of `data`; `None` when it does not fit or rows would overlap.
    pub fn new(data: &'a mut [f16], rows: usize, cols: usize, stride: usize) -> Option<Self> {
        fits(data.len(), rows, cols, stride).then_some(ViewMut { data, rows, cols, stride })
    }

    /// All of `data` as dense rows of `cols` elements; `None` when it is no whole number of rows.
    pub fn dense(data: &'a mut [f16], cols: usize) -> Option<Self> {
        (cols > 0 && data.len().is_multiple_of(cols)).then(|| ViewMut { rows: data.len() / cols, data, cols, stride: cols })
    }

    /// The same window, read.
    pub fn as_view(&self) -> View<'_> {
        View { data: self.data, rows: self.rows, cols: self.cols, stride: self.stride }
    }

    /// The same window, lent for a shorter time.
    pub fn reborrow(&mut self) -> ViewMut<'_> {
        ViewMut { data: self.data, rows: self.rows, cols: self.cols, stride: self.stride }
    }

    /// Row `r`.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row_mut(&mut self, r: usize) -> &mut [f16] {
        assert!(r < self.rows, "row {r} of {}", self.rows);
        if self.cols == 0 { &mut [] } else { &mut self.data[r * self.stride..][..self.cols] }
    }

    /// The rows of `range` as a window.
    ///
    /// # Panics
    /// When the range ends after the last row.
    pub fn sub_rows(self, range: Range<usize>) -> ViewMut<'a> {
        assert!(range.start <= range.end && range.end <= self.rows, "rows {range:?} of {}", self.rows);
        let start = (range.start * self.stride).min(self.data.len());
        ViewMut { data: &mut self.data[start..], rows: range.len(), cols: self.cols, stride: self.stride }
    }

    /// The columns of `range` as a window.
    ///
    /// # Panics
    /// When the range ends after the last column.
    pub fn sub_cols(self, range: Range<usize>) -> ViewMut<'a> {
        assert!(range.start <= range.end && range.end <= self.cols, "columns {range:?} of {}", self.cols);
        let start = range.start.min(self.data.len());
        ViewMut { data: &mut self.data[start..], rows: self.rows, cols: range.len(), stride: self.stride }
    }

    /// The first `rows` rows, and the others.
    ///
    /// # Panics
    /// When there are not so many rows.
    pub fn split_rows(self, rows: usize) -> (ViewMut<'a>, ViewMut<'a>) {
        assert!(rows <= self.rows, "split at row {rows} of {}", self.rows);
        let at = (rows * self.stride).min(self.data.len());
        let (head, tail) = self.data.split_at_mut(at);
        let (cols, stride) = (self.cols, self.stride);
        (ViewMut { data: head, rows, cols, stride }, ViewMut { data: tail, rows: self.rows - rows, cols, stride })
    }

    /// The window cut in blocks of `height` rows (the last may be shorter), in order, for parallel writing.
    pub(crate) fn par_blocks(self, height: usize) -> impl IndexedParallelIterator<Item = ViewMut<'a>> {
        let ViewMut { data, rows, cols, stride } = self;
        let rows = if cols == 0 { 0 } else { rows };
        let stride = stride.max(1);
        let height = height.max(1);
        let end = data.len().min(rows * stride);
        data[..end].par_chunks_mut(stride * height).enumerate().with_max_len(1).map(move |(i, data)| ViewMut {
            data,
            rows: height.min(rows - i * height),
            cols,
            stride,
        })
    }

    /// Calls `f(r, row r)` for every row, in parallel blocks of a fixed number of rows.
    pub fn par_rows_mut(self, pool: &Pool, f: impl Fn(usize, &mut [f16]) + Sync) {
        let height = rows_per_task(self.cols);
        pool.install(|| {
            self.par_blocks(height).enumerate().for_each(|(i, mut block)| {
                for r in 0..block.rows {
                    f(i * height + r, block.row_mut(r));
                }
            });
        });
    }
}

/// Rows of `cols` elements that make one task of a cheap row-wise pass: about 32 Ki elements.
pub(crate) fn rows_per_task(cols: usize) -> usize {
    (32 * 1024 / cols.max(1)).max(1)
}
