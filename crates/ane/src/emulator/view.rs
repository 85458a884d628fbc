//! Strided views: how a tensor lies in a buffer. Slices, reshapes and transposes are arithmetic on these, not copies.

/// A tensor's place in a buffer of fp16 elements.
///
/// Axes of one element have stride 0, so that equal places compare equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// Extents, outermost first.
    pub(super) dims: Vec<usize>,
    /// Elements from one index to the next, per axis.
    pub(super) strides: Vec<isize>,
    /// Element at index 0 on all axes.
    pub(super) offset: usize,
}

impl View {
    /// A view with the strides of its one-element axes cleared.
    pub(super) fn new(dims: Vec<usize>, mut strides: Vec<isize>, offset: usize) -> View {
        for (s, &d) in strides.iter_mut().zip(&dims) {
            if d == 1 {
                *s = 0;
            }
        }
        View { dims, strides, offset }
    }

    /// Row-major from element 0.
    pub(super) fn dense(dims: &[usize]) -> View {
        View::rows(dims, dims.last().copied().unwrap_or(1))
    }

    /// Row-major from element 0, `row` elements from one row (last axis) to the next: a port as the device reports it.
    pub(super) fn rows(dims: &[usize], row: usize) -> View {
        let mut strides = vec![1isize; dims.len()];
        let mut step = row as isize;
        for i in (0..dims.len().saturating_sub(1)).rev() {
            strides[i] = step;
            step *= dims[i] as isize;
        }
        View::new(dims.to_vec(), strides, 0)
    }

    /// Number of elements.
    pub(super) fn numel(&self) -> usize {
        self.dims.iter().product()
    }

    /// First element touched and one past the last.
    pub(super) fn span(&self) -> (usize, usize) {
        let (mut low, mut high) = (self.offset as isize, self.offset as isize);
        for (&d, &s) in self.dims.iter().zip(&self.strides) {
            let reach = (d as isize - 1) * s;
            if reach < 0 { low += reach } else { high += reach }
        }
        (low as usize, high as usize + 1)
    }

    /// Axis `i` of the result is axis `perm[i]` of this.
    pub(super) fn permute(&self, perm: &[usize]) -> View {
        View {
            dims: perm.iter().map(|&p| self.dims[p]).collect(),
            strides: perm.iter().map(|&p| self.strides[p]).collect(),
            offset: self.offset,
        }
    }

    /// Undoes [`View::permute`].
    pub(super) fn unpermute(&self, perm: &[usize]) -> View {
        let mut inverse = vec![0; perm.len()];
        for (i, &p) in perm.iter().enumerate() {
            inverse[p] = i;
        }
        self.permute(&inverse)
    }

    /// `dims[i]` elements from `begin[i]`, every `step[i]`-th.
    pub(super) fn window(&self, begin: &[usize], step: &[isize], dims: &[usize]) -> View {
        let shift: isize = begin.iter().zip(&self.strides).map(|(&b, &s)| b as isize * s).sum();
        let strides = self.strides.iter().zip(step).map(|(&s, &n)| s * n).collect();
        View::new(dims.to_vec(), strides, (self.offset as isize + shift) as usize)
    }

    /// `len` elements of one axis from `begin`.
    pub(super) fn narrow(&self, axis: usize, begin: usize, len: usize) -> View {
        let mut dims = self.dims.clone();
        dims[axis] = len;
        View::new(dims, self.strides.clone(), (self.offset as isize + begin as isize * self.strides[axis]) as usize)
    }

    /// Repeats one-element axes (and missing leading ones) up to `dims`.
    pub(super) fn broadcast(&self, dims: &[usize]) -> View {
        let lead = dims.len() - self.dims.len();
        let strides = (0..dims.len()).map(|i| if i < lead || self.dims[i - lead] == 1 { 0 } else { self.strides[i - lead] }).collect();
        View::new(dims.to_vec(), strides, self.offset)
    }

    /// The same elements in row-major order under other extents, where strides can say that.
    pub(super) fn reshape(&self, dims: &[usize]) -> Option<View> {
        let old: Vec<(usize, isize)> = self.dims.iter().copied().zip(self.strides.iter().copied()).filter(|(d, _)| *d != 1).collect();
        let mut strides = vec![0isize; dims.len()];
        let (mut i, mut j) = (0, 0);
        while i < old.len() {
            // The shortest runs of old and new axes with the same number of elements.
            let (first_i, first_j) = (i, j);
            let (mut have, mut want) = (old[i].0, *dims.get(j)?);
            while have != want {
                if want < have {
                    j += 1;
                    want *= *dims.get(j)?;
                } else {
                    i += 1;
                    have *= old.get(i)?.0;
                }
            }
            if (first_i..i).any(|k| old[k].1 != old[k + 1].0 as isize * old[k + 1].1) {
                return None;
            }
            let mut step = old[i].1;
            for k in (first_j..=j).rev() {
                strides[k] = step;
                step *= dims[k] as isize;
            }
            (i, j) = (i + 1, j + 1);
        }
        Some(View::new(dims.to_vec(), strides, self.offset))
    }

    /// The view moved so that element `low` of the buffer becomes element 0.
    pub(super) fn rebase(&self, low: usize) -> View {
        View { offset: self.offset - low, ..self.clone() }
    }
}

/// Loops over several equally shaped views at once, ordered by where the first one lies in memory, adjacent axes merged.
///
/// Going through `0..len` in order, the first view's elements come in ascending order of address, so a range of it can be cut into
/// disjoint slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Nest {
    /// Extents of all loops but the innermost.
    outer: Vec<usize>,
    /// Extent of the innermost loop.
    pub(super) inner: usize,
    /// Of each view: offset, strides of the outer loops, stride of the innermost.
    views: Vec<(usize, Vec<isize>, isize)>,
}

impl Nest {
    /// Loops over `views`, of which the first `written` are written: `Err(i)` if view `i` cannot be cut along these loops.
    pub(super) fn new(views: &[&View], written: usize) -> Result<Nest, usize> {
        let dims = &views[0].dims;
        let mut axes: Vec<usize> = (0..dims.len()).filter(|&a| dims[a] != 1).collect();
        axes.sort_by_key(|&a| std::cmp::Reverse(views[0].strides[a]));
        for (i, view) in views[..written].iter().enumerate() {
            let mut reach = 0;
            for &a in axes.iter().rev() {
                if view.strides[a] <= reach {
                    return Err(i);
                }
                reach += view.strides[a] * (dims[a] as isize - 1);
            }
        }
        // Merge an axis into the one before it where every view allows.
        let mut loops: Vec<(usize, Vec<isize>)> = Vec::new();
        for &a in &axes {
            let strides: Vec<isize> = views.iter().map(|v| v.strides[a]).collect();
            match loops.last_mut() {
                Some((extent, before)) if before.iter().zip(&strides).all(|(&b, &s)| b == s * dims[a] as isize) => {
                    *extent *= dims[a];
                    *before = strides;
                }
                _ => loops.push((dims[a], strides)),
            }
        }
        let (inner, inner_strides) = loops.pop().unwrap_or_else(|| (1, vec![1; views.len()]));
        let views =
            views.iter().enumerate().map(|(i, v)| (v.offset, loops.iter().map(|(_, s)| s[i]).collect(), inner_strides[i])).collect();
        Ok(Nest { outer: loops.into_iter().map(|(n, _)| n).collect(), inner, views })
    }

    /// Number of elements.
    pub(super) fn len(&self) -> usize {
        self.outer.iter().product::<usize>() * self.inner
    }

    /// Stride of view `v` along the innermost loop.
    pub(super) fn step(&self, v: usize) -> isize {
        self.views[v].2
    }

    /// Element of view `v` at position `at` of the loops.
    pub(super) fn element(&self, v: usize, at: usize) -> usize {
        let (offset, strides, step) = &self.views[v];
        let (mut row, column) = (at / self.inner, at % self.inner);
        let mut place = *offset as isize + column as isize * step;
        for (&n, &s) in self.outer.iter().zip(strides).rev() {
            place += (row % n) as isize * s;
            row /= n;
        }
        place as usize
    }

    /// Calls `f(position, length)` for each run within one pass of the innermost loop that `from..to` covers.
    pub(super) fn runs(&self, from: usize, to: usize, mut f: impl FnMut(usize, usize)) {
        let mut at = from;
        while at < to {
            let len = (self.inner - at % self.inner).min(to - at);
            f(at, len);
            at += len;
        }
    }

    /// Cuts written view `v`, in the slice `data` that spans it, into pieces of `len` positions each.
    pub(super) fn cut<'a, T>(&self, v: usize, mut data: &'a mut [T], len: usize) -> Vec<&'a mut [T]> {
        let (total, mut start, mut pieces) = (self.len(), self.element(v, 0), Vec::new());
        data = &mut data[start..];
        let mut at = 0;
        while at < total {
            let next = (at + len).min(total);
            if next == total {
                pieces.push(std::mem::take(&mut data));
            } else {
                let end = self.element(v, next);
                let (piece, rest) = data.split_at_mut(end - start);
                pieces.push(piece);
                (data, start) = (rest, end);
            }
            at = next;
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Every element's place, in row-major order of the view's indices.
    fn places(view: &View) -> Vec<usize> {
        let mut all = vec![view.offset as isize];
        for (&d, &s) in view.dims.iter().zip(&view.strides) {
            all = all.iter().flat_map(|&p| (0..d as isize).map(move |i| p + i * s)).collect();
        }
        all.into_iter().map(|p| p as usize).collect()
    }

    #[test]
    fn reshape_keeps_the_order_or_refuses() {
        let port = View::rows(&[1, 6, 1, 4], 32);
        let heads = port.reshape(&[1, 2, 3, 4]).unwrap();
        assert_eq!(places(&port), places(&heads));
        assert!(port.reshape(&[1, 2, 12]).is_none(), "padded rows cannot be merged");
        let turned = heads.permute(&[0, 1, 3, 2]);
        assert!(turned.reshape(&[2, 2, 2, 3]).is_some());
        assert!(turned.reshape(&[8, 3]).is_none());
        assert!(turned.reshape(&[2, 12]).is_none());
        assert_eq!(View::dense(&[1, 1]).reshape(&[]).unwrap().numel(), 1);
        assert_eq!(View::dense(&[2, 3]).reshape(&[3, 2, 1, 1]).unwrap(), View::dense(&[3, 2, 1, 1]));
    }

    #[test]
    fn windows_narrows_and_permutations_touch_the_same_elements() {
        let v = View::rows(&[4, 5], 8);
        assert_eq!(places(&v.window(&[3, 1], &[-2, 2], &[2, 2])), [25, 27, 9, 11]);
        assert_eq!(v.window(&[3, 1], &[-2, 2], &[2, 2]).span(), (9, 28));
        assert_eq!(v.narrow(1, 2, 2), v.window(&[0, 2], &[1, 1], &[4, 2]));
        assert_eq!(v.permute(&[1, 0]).unpermute(&[1, 0]), v);
        assert_eq!(places(&View::dense(&[2]).broadcast(&[2, 2])), [0, 1, 0, 1]);
    }

    #[test]
    fn a_nest_walks_memory_in_order_and_cuts_it_apart() {
        let turned = View::rows(&[3, 4], 8).permute(&[1, 0]);
        let other = View::dense(&[4, 3]);
        let nest = Nest::new(&[&turned, &other], 1).unwrap();
        let walk: Vec<usize> = (0..nest.len()).map(|i| nest.element(0, i)).collect();
        assert!(walk.is_sorted());
        assert_eq!(nest.element(1, 1), 3);
        let mut data = [0u8; 24];
        let pieces = nest.cut(0, &mut data, 5);
        assert_eq!(pieces.iter().map(|p| p.len()).collect::<Vec<_>>(), [9, 9, 6]);
        assert_eq!(Nest::new(&[&View::dense(&[2]).broadcast(&[2, 2])], 1), Err(0), "overlapping elements cannot be written");
        assert_eq!(Nest::new(&[&View::dense(&[2, 3, 4])], 1).unwrap().inner, 24, "dense axes merge");
    }
}
