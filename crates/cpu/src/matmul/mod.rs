//! fp16 matrix products with wide sums: C = A · B, batched, over any strides.
//!
//! Two paths ([`Path`]): AMX tiles by an exact split of fp16 in two bf16 halves, and the `gemm` crate in fp32. Their bits
//! differ; within one path the bits are a function of the operands and [`Dims`] alone. K is never split across threads.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod amx;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod pack;
mod portable;
mod scratch;
mod sgemm;
mod target;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod tiled;

use crate::pool::Pool;
use crate::round::Finish;
use half::f16;
use std::str::FromStr;
use target::Part;

/// The arithmetic of a matmul. Part of a run's record: bits are promised for one path only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// AMX tiles: three products of bf16 halves, fp32 sums; relative error about 2^-17 before the fp16 store.
    Amx,
    /// fp32 through the `gemm` crate.
    Portable,
}

impl Path {
    /// The fastest path of this CPU and operating system.
    pub fn detect() -> Path {
        if Path::amx_available() { Path::Amx } else { Path::Portable }
    }

    /// Whether this CPU has AMX tiles with bf16 and the operating system grants them (asked once per process).
    pub fn amx_available() -> bool {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        return amx::Amx::get().is_some();
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        return false;
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Path::Amx => "amx",
            Path::Portable => "portable",
        })
    }
}

/// What a user asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The fastest that is there.
    #[default]
    Auto,
    /// [`Path::Amx`] or an error.
    Amx,
    /// [`Path::Portable`].
    Portable,
}

/// Why a choice of path cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Not a name of a path.
    #[error("unknown matmul path `{0}`; use auto, amx or portable")]
    Unknown(String),
    /// AMX was asked for where it is absent.
    #[error("this CPU or operating system has no AMX tiles with bf16; use auto or portable")]
    NoAmx,
}

impl Choice {
    /// The path to use.
    pub fn resolve(self) -> Result<Path, PathError> {
        match self {
            Choice::Auto => Ok(Path::detect()),
            Choice::Portable => Ok(Path::Portable),
            Choice::Amx if Path::amx_available() => Ok(Path::Amx),
            Choice::Amx => Err(PathError::NoAmx),
        }
    }
}

impl FromStr for Choice {
    type Err = PathError;
    fn from_str(s: &str) -> Result<Self, PathError> {
        match s {
            "auto" => Ok(Choice::Auto),
            "amx" => Ok(Choice::Amx),
            "portable" => Ok(Choice::Portable),
            other => Err(PathError::Unknown(other.to_owned())),
        }
    }
}

/// Where the work runs. The bits are the same.
#[derive(Clone, Copy, Debug)]
pub enum Par<'a> {
    /// On the calling thread.
    Serial,
    /// On the workers of a pool.
    Pool(&'a Pool),
}

/// C = A · B for each of `batch` matrices, with A `[m, k]` and B `[k, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dims {
    /// Number of products.
    pub batch: usize,
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Length of the contraction.
    pub k: usize,
}

impl Dims {
    fn swapped(self) -> Dims {
        Dims { m: self.n, n: self.m, ..self }
    }
}

/// A factor: element (b, r, c) is `data[b * batch_stride + r * row_stride + c * col_stride]`.
/// Fast when one of row and column stride is 1; any strides work. Batch stride 0 repeats one matrix.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// The elements.
    pub data: &'a [f16],
    /// Distance of two matrices.
    pub batch_stride: usize,
    /// Distance of two rows.
    pub row_stride: usize,
    /// Distance of two columns.
    pub col_stride: usize,
}

impl<'a> Operand<'a> {
    /// One row-major matrix with this row stride.
    pub fn rows(data: &'a [f16], row_stride: usize) -> Self {
        Operand { data, batch_stride: 0, row_stride, col_stride: 1 }
    }

    /// The transpose.
    #[must_use]
    pub fn t(self) -> Self {
        Operand { row_stride: self.col_stride, col_stride: self.row_stride, ..self }
    }

    fn batch(self, b: usize) -> Self {
        Operand { data: &self.data[b * self.batch_stride..], ..self }
    }

    fn check(&self, name: &str, batch: usize, rows: usize, cols: usize) {
        let end = (batch - 1) * self.batch_stride + (rows - 1) * self.row_stride + (cols - 1) * self.col_stride;
        assert!(end < self.data.len(), "matmul: operand {name} of {batch} × {rows} × {cols} ends past its {} elements", self.data.len());
    }
}

/// Where a product goes.
#[derive(Debug)]
pub enum Output<'a> {
    /// fp16, rounded once: element (b, i, j) is `data[b * batch_stride + i * row_stride + j * col_stride]`.
    F16 {
        /// The elements.
        data: &'a mut [f16],
        /// Distance of two matrices.
        batch_stride: usize,
        /// Distance of two rows.
        row_stride: usize,
        /// Distance of two columns; efficient when this or `row_stride` is 1.
        col_stride: usize,
        /// What is done to a result besides rounding.
        finish: Finish,
    },
    /// fp32 with columns side by side: C = scale · A·B, or C += scale · A·B.
    F32 {
        /// The elements.
        data: &'a mut [f32],
        /// Distance of two matrices.
        batch_stride: usize,
        /// Distance of two rows.
        row_stride: usize,
        /// Multiplies the product.
        scale: f32,
        /// Add to what is there.
        accumulate: bool,
    },
}

impl Output<'_> {
    fn reborrow(&mut self) -> Output<'_> {
        match self {
            Output::F16 { data, batch_stride, row_stride, col_stride, finish } => {
                Output::F16 { data, batch_stride: *batch_stride, row_stride: *row_stride, col_stride: *col_stride, finish: *finish }
            }
            Output::F32 { data, batch_stride, row_stride, scale, accumulate } => {
                Output::F32 { data, batch_stride: *batch_stride, row_stride: *row_stride, scale: *scale, accumulate: *accumulate }
            }
        }
    }
}

/// C = A · B for every matrix of the batch.
///
/// With `k` = 0 the product is zero. On [`Path::Amx`] a matmul in which any operand holds ±inf or NaN is computed by the
/// portable path as a whole, since the halves of an infinity would give NaN: an accumulating one is looked through before,
/// the others are overwritten once packing has met such an element.
///
/// # Panics
/// On [`Path::Amx`] where [`Path::amx_available`] says no. When an operand or the output ends past its data, or two elements of the output share a place: sorted by stride, each axis of
/// the output must step over all of the smaller ones.
pub fn matmul(par: Par<'_>, path: Path, dims: Dims, a: Operand<'_>, b: Operand<'_>, mut out: Output<'_>) {
    let Dims { batch, m, n, k } = dims;
    if batch == 0 || m == 0 || n == 0 {
        return;
    }
    if k > 0 {
        a.check("A", batch, m, k);
        b.check("B", batch, k, n);
    }
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    if path == Path::Amx && k > 0 {
        let granted = amx::Amx::get().expect("matmul: the AMX path needs AMX; Choice::resolve gives a path that is there");
        if tiled::run(granted, par, dims, a, b, out.reborrow()).is_ok() {
            return;
        }
    }
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    assert!(path == Path::Portable, "matmul: the AMX path needs AMX; Choice::resolve gives a path that is there");
    portable::run(par, dims, a, b, out.reborrow());
}

/// Runs `f` on every item, in parallel when `par` says so.
fn for_each<T: Send>(par: Par<'_>, items: Vec<T>, f: impl Fn(usize, T) + Sync) {
    use rayon::prelude::*;
    match par {
        Par::Pool(pool) if items.len() > 1 && pool.threads() > 1 => {
            pool.install(|| items.into_par_iter().with_max_len(1).enumerate().for_each(|(i, t)| f(i, t)));
        }
        _ => items.into_iter().enumerate().for_each(|(i, t)| f(i, t)),
    }
}
