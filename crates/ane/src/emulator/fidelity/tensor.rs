//! Dense tensors of any element type, and walks over their indices.

use mil::DType;

/// A tensor; row-major. Every element is exactly a value of `dtype` (integers up to 2^53).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tensor {
    pub(super) dtype: DType,
    pub(super) dims: Vec<usize>,
    pub(super) data: Vec<f64>,
}

impl Tensor {
    /// `f` of every index, taken as it is: nothing is rounded here.
    pub(super) fn new(dtype: DType, dims: &[usize], mut f: impl FnMut(&[usize]) -> f64) -> Tensor {
        let mut data = Vec::with_capacity(dims.iter().product());
        walk(dims, |index| data.push(f(index)));
        Tensor { dtype, dims: dims.to_vec(), data }
    }

    pub(super) fn at(&self, index: &[usize]) -> f64 {
        self.data[position(&self.dims, index)]
    }

    /// The element at an index of a shape that this one broadcasts to: axes are aligned at the last, one-element axes repeat.
    pub(super) fn broadcast(&self, index: &[usize]) -> f64 {
        let own = &index[index.len() - self.dims.len()..];
        self.data[self.dims.iter().zip(own).fold(0, |p, (&d, &i)| p * d + if d == 1 { 0 } else { i })]
    }

    /// The same elements under other extents.
    pub(super) fn reshape(&self, dims: &[usize]) -> Tensor {
        Tensor { dims: dims.to_vec(), ..self.clone() }
    }
}

/// Row-major position of an index.
pub(super) fn position(dims: &[usize], index: &[usize]) -> usize {
    dims.iter().zip(index).fold(0, |p, (d, i)| p * d + i)
}

/// Calls `f` with every index of a shape, row-major.
pub(super) fn walk(dims: &[usize], mut f: impl FnMut(&[usize])) {
    let mut index = vec![0; dims.len()];
    for _ in 0..dims.iter().product() {
        f(&index);
        for axis in (0..dims.len()).rev() {
            index[axis] += 1;
            if index[axis] < dims[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}
