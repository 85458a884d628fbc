//! Rotary position embedding, forward and transposed, in both conventions, with tables computed in fp64.

use crate::pool::Pool;
use crate::round::{round, widen};
use crate::simd::dispatch;
use crate::view::{View, ViewMut};
use half::f16;
use rayon::prelude::*;
use std::ops::Range;

/// Which two channels of a head turn together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Channels i and i + head_dim/2 (Hugging Face).
    Half,
    /// Channels 2i and 2i + 1 (llama2.c).
    Interleaved,
}

/// cos and sin of every (pair, position): pair i turns by position · theta^(−2i / head_dim).
#[derive(Clone, Debug)]
pub struct Rope {
    head_dim: usize,
    style: Style,
    positions: usize,
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl Rope {
    /// Tables for the positions of `positions`, which become columns 0, 1, …
    ///
    /// # Panics
    /// When `head_dim` is odd.
    pub fn new(head_dim: usize, theta: f64, positions: Range<usize>, style: Style) -> Rope {
        assert!(head_dim.is_multiple_of(2), "rope: odd head_dim {head_dim}");
        let angle = |i: usize, p: usize| p as f64 * theta.powf(-2.0 * i as f64 / head_dim as f64);
        let table =
            |f: fn(f64) -> f64| (0..head_dim / 2).flat_map(|i| positions.clone().map(move |p| f(angle(i, p)) as f32)).collect::<Vec<_>>();
        Rope { head_dim, style, positions: positions.len(), cos: table(f64::cos), sin: table(f64::sin) }
    }

    /// dst = scale · R · src for `heads` heads: head h is the block of rows from h·`head_stride` on, of which the first
    /// head_dim are channels; the rest is padding, ignored in `src` and set to zero in `dst`.
    /// The scale is 1/√head_dim for queries, 1 for keys. Columns are the positions of one sequence.
    ///
    /// # Panics
    /// When the shapes disagree.
    pub fn rotate(&self, pool: &Pool, src: View<'_>, dst: ViewMut<'_>, heads: usize, head_stride: usize, scale: f32) {
        self.turn(pool, src, dst, heads, head_stride, scale, 1.0);
    }

    /// dst = scale · Rᵀ · src: the backward pass of [`Rope::rotate`], with the same scale.
    ///
    /// # Panics
    /// When the shapes disagree.
    pub fn rotate_back(&self, pool: &Pool, src: View<'_>, dst: ViewMut<'_>, heads: usize, head_stride: usize, scale: f32) {
        self.turn(pool, src, dst, heads, head_stride, scale, -1.0);
    }

    #[allow(clippy::too_many_arguments)]
    fn turn(&self, pool: &Pool, src: View<'_>, dst: ViewMut<'_>, heads: usize, head_stride: usize, scale: f32, sign: f32) {
        let t = self.positions;
        assert!(head_stride >= self.head_dim, "rope: head_stride {head_stride} < head_dim {}", self.head_dim);
        assert!(src.cols == t && dst.cols == t, "rope: columns are not the table's {t} positions");
        assert!(src.rows >= heads * head_stride && dst.rows >= heads * head_stride, "rope: fewer rows than {heads} heads");
        let heads_per_task = (32 * 1024 / (head_stride * t).max(1)).max(1);
        pool.install(|| {
            dst.sub_rows(0..heads * head_stride).par_blocks(heads_per_task * head_stride).enumerate().for_each(|(block, mut dst)| {
                let mut wide = vec![0f32; 2 * t];
                for base in (0..dst.rows).step_by(head_stride) {
                    let from = block * heads_per_task * head_stride + base;
                    for i in 0..self.head_dim / 2 {
                        let (first, second) = match self.style {
                            Style::Half => (i, i + self.head_dim / 2),
                            Style::Interleaved => (2 * i, 2 * i + 1),
                        };
                        let (a, b) = wide.split_at_mut(t);
                        widen(src.row(from + first), a);
                        widen(src.row(from + second), b);
                        let (cos, sin) = (&self.cos[i * t..][..t], &self.sin[i * t..][..t]);
                        dispatch(
                            #[inline(always)]
                            || {
                                for (((a, b), cos), sin) in a.iter_mut().zip(b.iter_mut()).zip(cos).zip(sin) {
                                    let (x, y, sin) = (*a, *b, sin * sign);
                                    *a = (x * cos - y * sin) * scale;
                                    *b = (y * cos + x * sin) * scale;
                                }
                            },
                        );
                        round(a, dst.row_mut(base + first));
                        round(b, dst.row_mut(base + second));
                    }
                    for pad in self.head_dim..head_stride {
                        dst.row_mut(base + pad).fill(f16::ZERO);
                    }
                }
            });
        });
    }
}
