//! The `gemm` crate's leaf: one fp32 product on one thread, with the bounds checked.
#![allow(unsafe_code)]

/// A strided fp32 matrix: element (r, c) is `data[r * row_stride + c * col_stride]`.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    pub(super) data: &'a [f32],
    pub(super) row_stride: usize,
    pub(super) col_stride: usize,
}

impl Matrix<'_> {
    fn holds(&self, rows: usize, cols: usize) -> bool {
        (rows - 1) * self.row_stride + (cols - 1) * self.col_stride < self.data.len()
    }
}

/// c = a · b, or c += a · b, with c dense row-major `[m, n]`.
///
/// # Panics
/// When a matrix ends past its data or a size is 0.
pub(super) fn sgemm(m: usize, n: usize, k: usize, a: Matrix<'_>, b: Matrix<'_>, c: &mut [f32], accumulate: bool) {
    assert!(m > 0 && n > 0 && k > 0 && a.holds(m, k) && b.holds(k, n) && c.len() >= m * n, "sgemm: bounds");
    // SAFETY: all three matrices were checked to lie inside their slices; c is borrowed mutably, so it aliases neither.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c.as_mut_ptr(),
            1,
            n as isize,
            accumulate,
            a.data.as_ptr(),
            a.col_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.col_stride as isize,
            b.row_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}
