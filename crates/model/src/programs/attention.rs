//! Attention without weights: scores, probabilities and values, forward and backward.
//!
//! All ports are `[1, C, 1, S]`. The heads of all sequences of the micro-batch ride along the channels: head `h` of sequence
//! `b` is block `b · heads + h`. Query heads that share a key/value head are rows of one matmul, `[1, kv, G·S, head_dim]`
//! (programs.md rule 8), so query head `h` meets key/value head `h div G`. With `G = 1` channels-first operands fit as they
//! are and nothing is transposed. `1/√head_dim` is in the query already, put there in fp32.

use super::emit::{Emit, Val};
use super::{Act, Attention, AttentionForward, Context, ProgramError, ProgramKind, ProgramSpec};
use half::f16;

/// Sizes of attention over a whole micro-batch.
struct Heads {
    /// Query heads of all sequences.
    heads: usize,
    /// Key/value heads of all sequences.
    kv: usize,
    /// Query heads to a key/value head.
    group: usize,
    /// Padded channels of a head.
    hd: usize,
    /// Padded tokens of a sequence.
    s: usize,
}

impl Heads {
    fn new(cx: &Context) -> Heads {
        let (l, batch) = (&cx.layout, cx.layout.shape.batch);
        Heads { heads: batch * l.n_heads, kv: batch * l.n_kv_heads, group: l.group(), hd: l.head_dim, s: l.shape.seq_padded() }
    }

    /// Channels of all queries.
    fn q(&self) -> usize {
        self.heads * self.hd
    }

    /// Channels of all keys.
    fn k(&self) -> usize {
        self.kv * self.hd
    }

    /// Rows of all scores.
    fn rows(&self) -> usize {
        self.heads * self.s
    }

    /// `len` channels from `row` on as heads, `[1, heads, hd, S]`.
    fn cut(&self, e: &mut Emit<'_>, x: Val, row: usize, heads: usize) -> Result<Val, ProgramError> {
        let part = e.window(x, [0, row, 0, 0], [1, heads * self.hd, 1, self.s])?;
        e.reshape(part, &[1, heads, self.hd, self.s])
    }

    /// Scores (or probabilities) from `row` on as matrices of a key/value head, `[1, kv, G·S, S]`.
    fn cut_scores(&self, e: &mut Emit<'_>, x: Val, row: usize) -> Result<Val, ProgramError> {
        let part = e.window(x, [0, row, 0, 0], [1, self.rows(), 1, self.s])?;
        e.reshape(part, &[1, self.kv, self.group * self.s, self.s])
    }

    /// `[1, heads, hd, S]` to rows of the group, `[1, kv, G·S, hd]`.
    fn group_rows(&self, e: &mut Emit<'_>, x: Val) -> Result<Val, ProgramError> {
        let turned = e.swap(x)?;
        e.reshape(turned, &[1, self.kv, self.group * self.s, self.hd])
    }

    /// Rows of the group, `[1, kv, G·S, hd]`, to channels, `[1, Q, 1, S]`.
    fn ungroup(&self, e: &mut Emit<'_>, x: Val) -> Result<Val, ProgramError> {
        let heads = e.reshape(x, &[1, self.heads, self.s, self.hd])?;
        let turned = e.swap(heads)?;
        e.reshape(turned, &[1, self.q(), 1, self.s])
    }

    /// `[1, kv, S, hd]` to channels, `[1, K, 1, S]`.
    fn kv_out(&self, e: &mut Emit<'_>, x: Val) -> Result<Val, ProgramError> {
        let turned = e.swap(x)?;
        e.reshape(turned, &[1, self.k(), 1, self.s])
    }

    /// `q·kᵀ` of heads, `[1, heads, S, S]`.
    fn scores(&self, e: &mut Emit<'_>, q: Val, k: Val) -> Result<Val, ProgramError> {
        if self.group == 1 {
            return e.matmul(q, k, true, false);
        }
        let q = self.group_rows(e, q)?;
        let scores = e.matmul(q, k, false, false)?;
        e.reshape(scores, &[1, self.heads, self.s, self.s])
    }

    /// Probabilities `[1, kv, G·S, S]` times values `[1, kv, hd, S]`, as channels `[1, Q, 1, S]`.
    fn values(&self, e: &mut Emit<'_>, p: Val, v: Val) -> Result<Val, ProgramError> {
        if self.group == 1 {
            let out = e.matmul(v, p, false, true)?;
            return e.reshape(out, &[1, self.q(), 1, self.s]);
        }
        let out = e.matmul(p, v, false, true)?;
        self.ungroup(e, out)
    }
}

/// `q, k, v → out`, in one program or two.
pub(super) fn forward(cx: &Context) -> Result<AttentionForward, ProgramError> {
    match cx.options.attention {
        Attention::Split => Ok(AttentionForward::Split { qk: qk(cx)?, pv: pv(cx)? }),
        Attention::Fused => Ok(AttentionForward::Fused { attn: fused(cx)? }),
    }
}

/// `q | k → scores`.
fn qk(cx: &Context) -> Result<ProgramSpec, ProgramError> {
    let n = Heads::new(cx);
    let mut e = Emit::new(cx, ProgramKind::Qk);
    let x = e.stacked(&[(Act::Q, n.q()), (Act::K, n.k())], n.s)?;
    let q = n.cut(&mut e, x, 0, n.heads)?;
    let k = n.cut(&mut e, x, n.q(), n.kv)?;
    let scores = n.scores(&mut e, q, k)?;
    let out = e.reshape(scores, &[1, n.rows(), 1, n.s])?;
    e.finish(out, &[(Act::Scores, n.rows())], n.s)
}

/// `p | v → out`.
fn pv(cx: &Context) -> Result<ProgramSpec, ProgramError> {
    let n = Heads::new(cx);
    let mut e = Emit::new(cx, ProgramKind::Pv);
    let x = e.stacked(&[(Act::Probs, n.rows()), (Act::V, n.k())], n.s)?;
    let p = n.cut_scores(&mut e, x, 0)?;
    let v = n.cut(&mut e, x, n.rows(), n.kv)?;
    let out = n.values(&mut e, p, v)?;
    e.finish(out, &[(Act::AttnOut, n.q())], n.s)
}

/// `q | k | v → out | p`. The mask is added, −10⁴ where hidden: the chip's own attention op ignores its mask, and `select`
/// is refused (programs.md rules 6, 9). The probabilities go out for the backward pass.
fn fused(cx: &Context) -> Result<ProgramSpec, ProgramError> {
    let n = Heads::new(cx);
    let mut e = Emit::new(cx, ProgramKind::Attn);
    let x = e.stacked(&[(Act::Q, n.q()), (Act::K, n.k()), (Act::V, n.k())], n.s)?;
    let q = n.cut(&mut e, x, 0, n.heads)?;
    let k = n.cut(&mut e, x, n.q(), n.kv)?;
    let v = n.cut(&mut e, x, n.q() + n.k(), n.kv)?;
    let scores = n.scores(&mut e, q, k)?;
    let mask = e.causal_mask(n.s)?;
    let masked = e.add(scores, mask)?;
    let p = e.softmax(masked)?;
    let grouped = e.reshape(p, &[1, n.kv, n.group * n.s, n.s])?;
    let out = n.values(&mut e, grouped, v)?;
    let p = e.reshape(p, &[1, n.rows(), 1, n.s])?;
    let all = e.concat(&[out, p])?;
    e.finish(all, &[(Act::AttnOut, n.q()), (Act::Probs, n.rows())], n.s)
}

/// Values of the additive causal mask, `[s, s]`: 0 where the key (column) is not after the query (row), −10⁴ where it is.
/// Exact in fp16, and small enough that a score added to it stays finite.
pub fn causal_mask(s: usize) -> Vec<f16> {
    let hidden = f16::from_f32(-1e4);
    (0..s * s).map(|i| if i % s > i / s { hidden } else { f16::ZERO }).collect()
}

/// `p | dout | v → dv | dp`.
pub(super) fn backward1(cx: &Context) -> Result<ProgramSpec, ProgramError> {
    let n = Heads::new(cx);
    let mut e = Emit::new(cx, ProgramKind::AttnBwd1);
    let x = e.stacked(&[(Act::Probs, n.rows()), (Act::DAttnOut, n.q()), (Act::V, n.k())], n.s)?;
    let p = n.cut_scores(&mut e, x, 0)?;
    let da = n.cut(&mut e, x, n.rows(), n.heads)?;
    let v = n.cut(&mut e, x, n.rows() + n.q(), n.kv)?;
    let (dv, dp) = if n.group == 1 {
        let dv = e.matmul(da, p, false, false)?;
        (e.reshape(dv, &[1, n.k(), 1, n.s])?, e.matmul(da, v, true, false)?)
    } else {
        let da = n.group_rows(&mut e, da)?;
        let dv = e.matmul(p, da, true, false)?;
        (n.kv_out(&mut e, dv)?, e.matmul(da, v, false, false)?)
    };
    let dp = e.reshape(dp, &[1, n.rows(), 1, n.s])?;
    let all = e.concat(&[dv, dp])?;
    e.finish(all, &[(Act::DV, n.k()), (Act::DProbs, n.rows())], n.s)
}

/// `ds | q | k → dq | dk`.
pub(super) fn backward2(cx: &Context) -> Result<ProgramSpec, ProgramError> {
    let n = Heads::new(cx);
    let mut e = Emit::new(cx, ProgramKind::AttnBwd2);
    let x = e.stacked(&[(Act::DScores, n.rows()), (Act::Q, n.q()), (Act::K, n.k())], n.s)?;
    let ds = n.cut_scores(&mut e, x, 0)?;
    let q = n.cut(&mut e, x, n.rows(), n.heads)?;
    let k = n.cut(&mut e, x, n.rows() + n.q(), n.kv)?;
    let (dq, dk) = if n.group == 1 {
        let dq = e.matmul(k, ds, false, true)?;
        let dk = e.matmul(q, ds, false, false)?;
        (e.reshape(dq, &[1, n.q(), 1, n.s])?, e.reshape(dk, &[1, n.k(), 1, n.s])?)
    } else {
        let q = n.group_rows(&mut e, q)?;
        let dq = e.matmul(ds, k, false, true)?;
        let dk = e.matmul(ds, q, true, false)?;
        (n.ungroup(&mut e, dq)?, n.kv_out(&mut e, dk)?)
    };
    let all = e.concat(&[dq, dk])?;
    e.finish(all, &[(Act::DQ, n.q()), (Act::DK, n.k())], n.s)
}
