//! Where a parameter's elements and a micro-batch's tokens lie in a program's ports.
//!
//! Padding is a property of the layout and of nothing else: the model never sees it. Channels, hidden units, the
//! channels of a head, vocabulary slices and packed column blocks are padded to multiples of 32, sequences to
//! multiples of 64 (programs.md rule 2). Padded places hold zeros and stay zero: a program only ever multiplies them
//! by zeros.

use crate::Config;

/// Channels, columns of weights and contraction lengths come in multiples of this (programs.md rule 2).
pub const CHANNEL_MULTIPLE: usize = 32;
/// Sequences come in multiples of this (programs.md rule 2).
pub const SEQ_MULTIPLE: usize = 64;
/// Longest sequence whose scores fit in one program; beyond it attention needs query tiles (programs.md rule 10).
pub const MAX_SEQ: usize = 512;

/// A run of elements that are neighbours both in the parameter and in the padded axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First element in the parameter's axis.
    pub from: usize,
    /// First element in the padded axis.
    pub to: usize,
    /// Number of elements.
    pub len: usize,
}

/// How one axis of a parameter lies in a padded axis of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    segments: Vec<Segment>,
    padded: usize,
}

impl Axis {
    /// `len` elements, then zeros up to a multiple of 32.
    pub fn plain(len: usize) -> Axis {
        Axis::window(0, len, len.next_multiple_of(CHANNEL_MULTIPLE))
    }

    /// `heads` blocks of `head_dim` channels, each followed by zeros up to a multiple of 32.
    pub fn heads(heads: usize, head_dim: usize) -> Axis {
        let block = head_dim.next_multiple_of(CHANNEL_MULTIPLE);
        if block == head_dim {
            return Axis::plain(heads * head_dim);
        }
        let segments = (0..heads).map(|h| Segment { from: h * head_dim, to: h * block, len: head_dim }).collect();
        Axis { segments, padded: heads * block }
    }

    /// The parameter's elements `first .. first + len` (a vocabulary slice), then zeros up to `padded`.
    pub fn window(first: usize, len: usize, padded: usize) -> Axis {
        Axis { segments: vec![Segment { from: first, to: 0, len }], padded: padded.max(len) }
    }

    /// The runs, ascending on both sides; what none of them covers is zero.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Length of the padded axis.
    pub fn padded(&self) -> usize {
        self.padded
    }

    /// Number of the parameter's elements that the axis holds.
    pub fn held(&self) -> usize {
        self.segments.iter().map(|s| s.len).sum()
    }
}

/// The shape of a micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Sequences.
    pub batch: usize,
    /// Tokens of one sequence.
    pub seq: usize,
}

impl Shape {
    /// Columns that one sequence takes: `seq`, padded to a multiple of 64. The causal mask hides the padded keys from
    /// every real token; what padded columns hold must be kept out of the loss (a zero gradient there).
    pub fn seq_padded(self) -> usize {
        self.seq.next_multiple_of(SEQ_MULTIPLE)
    }

    /// Columns of a position-wise program: `batch · seq_padded`; token `s` of sequence `b` is in column
    /// `b · seq_padded + s`.
    pub fn columns(self) -> usize {
        self.batch * self.seq_padded()
    }
}

/// The padded axes of a model, and the shape of its micro-batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Channels of the residual stream.
    pub dim: Axis,
    /// Hidden units of the feed-forward network.
    pub hidden: Axis,
    /// Channels of all query heads.
    pub q: Axis,
    /// Channels of all key (or value) heads.
    pub kv: Axis,
    /// Padded channels of one head: head `h` of an activation begins at row `h · head_dim`.
    pub head_dim: usize,
    /// Query heads.
    pub n_heads: usize,
    /// Key/value heads.
    pub n_kv_heads: usize,
    /// The micro-batch.
    pub shape: Shape,
}

impl Layout {
    /// The layout of `config` for micro-batches of `shape`.
    pub fn new(config: &Config, shape: Shape) -> Layout {
        Layout {
            dim: Axis::plain(config.dim),
            hidden: Axis::plain(config.hidden_dim),
            q: Axis::heads(config.n_heads, config.head_dim),
            kv: Axis::heads(config.n_kv_heads, config.head_dim),
            head_dim: config.head_dim.next_multiple_of(CHANNEL_MULTIPLE),
            n_heads: config.n_heads,
            n_kv_heads: config.n_kv_heads,
            shape,
        }
    }

    /// Query heads that share a key/value head.
    pub fn group(&self) -> usize {
        self.n_heads / self.n_kv_heads
    }
}

/// The slices of the classifier: as few as keep each at most 16,384 rows, equal in length, a multiple of 64
/// (programs.md 3). Each maps its rows of the `[vocab_size, dim]` parameter; the last one may hold fewer.
pub fn vocab_slices(vocab_size: usize) -> Vec<Axis> {
    const LARGEST: usize = 16_384;
    let count = vocab_size.div_ceil(LARGEST).max(1);
    let rows = vocab_size.div_ceil(count).next_multiple_of(SEQ_MULTIPLE);
    (0..vocab_size).step_by(rows.max(1)).map(|first| Axis::window(first, rows.min(vocab_size - first), rows)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// Writes a parameter's axis into its padded place and reads it back.
    fn round_trip(axis: &Axis, param_len: usize) -> (Vec<usize>, Vec<usize>) {
        let mut padded = vec![0; axis.padded()];
        let mut back = vec![0; param_len];
        for s in axis.segments() {
            for i in 0..s.len {
                assert_eq!(padded[s.to + i], 0, "two elements in one place");
                padded[s.to + i] = s.from + i + 1;
            }
        }
        for s in axis.segments() {
            back[s.from..s.from + s.len].copy_from_slice(&padded[s.to..s.to + s.len]);
        }
        (padded, back)
    }

    proptest! {
        #[test]
        fn plain_axes_round_trip(len in 1usize..3000) {
            let axis = Axis::plain(len);
            let (padded, back) = round_trip(&axis, len);
            prop_assert_eq!(back, (1..=len).collect::<Vec<_>>());
            prop_assert!(padded[len..].iter().all(|&v| v == 0));
            prop_assert!(axis.padded().is_multiple_of(32) && axis.padded() < len + 32);
            prop_assert_eq!(axis.held(), len);
        }

        #[test]
        fn head_axes_keep_each_head_in_its_block(heads in 1usize..40, head_dim in 1usize..200) {
            let axis = Axis::heads(heads, head_dim);
            let block = head_dim.next_multiple_of(32);
            let (padded, back) = round_trip(&axis, heads * head_dim);
            prop_assert_eq!(back, (1..=heads * head_dim).collect::<Vec<_>>());
            prop_assert_eq!(axis.padded(), heads * block);
            for (i, &v) in padded.iter().enumerate() {
                let (h, c) = (i / block, i % block);
                prop_assert_eq!(v, if c < head_dim { h * head_dim + c + 1 } else { 0 });
            }
            // contiguous runs are merged, so an unpadded axis is one copy
            prop_assert_eq!(axis.segments().len(), if block == head_dim { 1 } else { heads });
        }

        #[test]
        fn vocabulary_slices_cover_every_row_once(vocab in 1usize..200_000) {
            let slices = vocab_slices(vocab);
            let rows = slices[0].padded();
            prop_assert!(rows <= 16_384 && rows.is_multiple_of(64));
            let mut next = 0;
            for slice in &slices {
                prop_assert_eq!(slice.padded(), rows);
                let [one] = slice.segments() else { panic!("a slice is one run") };
                prop_assert_eq!((one.from, one.to), (next, 0));
                prop_assert!(one.len > 0);
                next += one.len;
            }
            prop_assert_eq!(next, vocab);
        }
    }

    #[test]
    fn vocabulary_slices_of_known_models() {
        let lens = |v| vocab_slices(v).iter().map(|a| (a.held(), a.padded())).collect::<Vec<_>>();
        assert_eq!(lens(32_000), [(16_000, 16_000); 2], "Stories110M");
        let qwen3 = lens(151_936);
        assert_eq!(qwen3.len(), 10);
        assert_eq!((qwen3[0], qwen3[9]), ((15_232, 15_232), (14_848, 15_232)));
        assert_eq!(lens(500), [(500, 512)]);
    }

    #[test]
    fn sequences_are_padded_to_64_columns() {
        let shape = Shape { batch: 3, seq: 100 };
        assert_eq!((shape.seq_padded(), shape.columns()), (128, 384));
        assert_eq!(Shape { batch: 1, seq: 256 }.columns(), 256);
    }
}
