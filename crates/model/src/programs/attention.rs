//! Attention without weights: scores, probabilities and values, forward and backward.
//!
//! All ports are `[1, C, 1, S]`. The heads of all sequences of the micro-batch ride along the channels: head `h` of sequence
//! `b` is block `b · heads + h`. Query heads that share a key/value head are rows of one matmul, `[1, kv, G·S, head_dim]`
//! (programs.md rule 8), so query head `h` meets key/value head `h div G`. With `G = 1` channels-first operands fit as they
//! are and nothing is transposed. `1/√head_dim` is in the query already, put there in fp32.

use super::emit::{Emit, Val};
use super::{Act, Attention, AttentionForward, Context, ProgramError, ProgramKind, ProgramSpec};

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
    fn cut(&self, e: &mut Emit<'_>, name: &str, x: Val, row: usize, heads: usize) -> Result<Val, ProgramError> {
        let part = e.window(name, x, [0, row, 0, 0], [1, heads * self.hd, 1, self.s])?;
        e.reshape(&format!("{name}_heads"), part, &[1, heads, self.hd, self.s])
    }

    /// Scores (or probabilities) from `row` on as matrices of a key/value head, `[1, kv, G·S, S]`.
    fn cut_scores(&self, e: &mut Emit<'_>, name: &str, x: Val, row: usize) -> Result<Val, ProgramError> {
        let part = e.window(name, x, [0, row, 0, 0], [1, self.rows(), 1, self.s])?;
        e.reshape(&format!("{name}_heads"), part, &[1, self.kv, self.group * self.s, self.s])
    }

    /// `[1, heads, hd, S]` to rows of the group, `[1, kv, G·S, hd]`.
    fn group_rows(&self, e: &mut Emit<'_>, name: &str, x: Val) -> Result<Val, ProgramError> {
        let turned = e.swap(&format!("{name}_t"), x)?;
        e.reshape(&format!("{name}_rows"), turned, &[1, self.kv, self.group * self.s, self.hd])
    }

    /// Rows of the group, `[1, kv, G·S, hd]`, to channels, `[1, Q, 1, S]`.
    fn ungroup(&self, e: &mut Emit<'_>, name: &str, x: Val) -> Result<Val, ProgramError> {
        let heads = e.reshape(&format!("{name}_ungrouped"), x, &[1, self.heads, self.s, self.hd])?;
        let turned = e.swap(&format!("{name}_t"), heads)?;
        e.reshape(&format!("{name}_out"), turned, &[1, self.q(), 1, self.s])
    }

    /// `[1, kv, S, hd]` to channels, `[1, K, 1, S]`.
    fn kv_out(&self, e: &mut Emit<'_>, name: &str, x: Val) -> Result<Val, ProgramError> {
        let turned = e.swap(&format!("{name}_t"), x)?;
        e.reshape(&format!("{name}_out"), turned, &[1, self.k(), 1, self.s])
    }

    /// `q·kᵀ` of heads, `[1, heads, S, S]`.
    fn scores(&self, e: &mut Emit<'_>, q: Val, k: Val) -> Result<Val, ProgramError> {
        if self.group == 1 {
            return e.matmul("scores", q, k, true, false);
        }
        let q = self.group_rows(e, "q", q)?;
        let scores = e.matmul("group_scores", q, k, false, false)?;
        e.reshape("scores", scores, &[1, self.heads, self.s, self.s])
    }

    /// Probabilities `[1, kv, G·S, S]` times values `[1, kv, hd, S]`, as channels `[1, Q, 1, S]`.
    fn values(&self, e: &mut Emit<'_>, p: Val, v: Val) -> Result<Val, ProgramError> {
        if self.group == 1 {
            let out = e.matmul("pv", v, p, false, true)?;
            return e.reshape("pv_out", out, &[1, self.q(), 1, self.s]);
        }
        let out = e.matmul("pv", p, v, false, true)?;
        self.ungroup(e, "pv", out)
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
    let q = n.cut(&mut e, "q", x, 0, n.heads)?;
    let k = n.cut(&mut e, "k", x, n.q(), n.kv)?;
    let scores = n.scores(&mut e, q, k)?;
    let out = e.reshape("out", scores, &[1, n.rows(), 1, n.s])?;
    e.finish(out, &[(Act::Scores, n.rows())], n.s)
}

/// `p | v → out`.
fn pv(cx: &Context) -> Result<ProgramSpec, ProgramError> {
    let n = Heads::new(cx);
    let mut e = Emit::new(cx, ProgramKind::Pv);
    let x = e.stacked(&[(Act::Probs, n.rows()), (Act::V, n.k())], n.s)?;
    let p = n.cut_scores(&mut e, "p", x, 0)?;
    let v = n.cut(&mut e, "v", x, n.rows(), n.kv)?;
    let out = n.values(&mut e, p, v)?;
    e.finish(out, &[(Act::AttnOut, n.q())], n.s)
}

/// `q | k | v → out | p`. The mask is added, −10⁴ where hidden: the chip's own attention op ignores its mask, and `select`
/// is refused (programs.md rules 6, 9). The probabilities go out for the backward pass.
fn fused(cx: &Context) -> Result<ProgramSpec, ProgramError> {
    let n = Heads::new(cx);
    let mut e = Emit::new(cx, ProgramKind::Attn);
    let x = e.stacked(&[(Act::Q, n.q()), (Act::K, n.k()), (Act::V, n.k())], n.s)?;
    let q = n.cut(&mut e, "q", x, 0, n.heads)?;
    let k = n.cut(&mut e, "k", x, n.q(), n.kv)?;
    let v = n.cut(&mut e, "v", x, n.q() + n.k(), n.kv)?;
    let scores = n.scores(&mut e, q, k)?;
    let mask = e.causal_mask(n.s)?;
    let masked = e.add("masked", scores, mask)?;
    let p = e.softmax("p", masked)?;
    let grouped = e.reshape("p_heads", p, &[1, n.kv, n.group * n.s, n.s])?;
    let out = n.values(&mut e, grouped, v)?;
    let p = e.reshape("p_out", p, &[1, n.rows(), 1, n.s])?;
    let all = e.concat("out_p", &[out, p])?;
    e.finish(all, &[(Act::AttnOut, n.q()), (Act::Probs, n.rows())], n.s)
}

/// `p | dout | v → dv | dp`.
pub(super) fn backward1(cx: &Context) -> Result<ProgramSpec, ProgramError> {
    let n = Heads::new(cx);
    let mut e = Emit::new(cx, ProgramKind::AttnBwd1);
    let x = e.stacked(&[(Act::Probs, n.rows()), (Act::DAttnOut, n.q()), (Act::V, n.k())], n.s)?;
    let p = n.cut_scores(&mut e, "p", x, 0)?;
    let da = n.cut(&mut e, "da", x, n.rows(), n.heads)?;
    let v = n.cut(&mut e, "v", x, n.rows() + n.q(), n.kv)?;
    let (dv, dp) = if n.group == 1 {
        let dv = e.matmul("dv", da, p, false, false)?;
        (e.reshape("dv_out", dv, &[1, n.k(), 1, n.s])?, e.matmul("dp", da, v, true, false)?)
    } else {
        let da = n.group_rows(&mut e, "da", da)?;
        let dv = e.matmul("dv", p, da, true, false)?;
        (n.kv_out(&mut e, "dv", dv)?, e.matmul("dp", da, v, false, false)?)
    };
    let dp = e.reshape("dp_out", dp, &[1, n.rows(), 1, n.s])?;
    let all = e.concat("dv_dp", &[dv, dp])?;
    e.finish(all, &[(Act::DV, n.k()), (Act::DProbs, n.rows())], n.s)
}

/// `ds | q | k → dq | dk`.
pub(super) fn backward2(cx: &Context) -> Result<ProgramSpec, ProgramError> {
    let n = Heads::new(cx);
    let mut e = Emit::new(cx, ProgramKind::AttnBwd2);
    let x = e.stacked(&[(Act::DScores, n.rows()), (Act::Q, n.q()), (Act::K, n.k())], n.s)?;
    let ds = n.cut_scores(&mut e, "ds", x, 0)?;
    let q = n.cut(&mut e, "q", x, n.rows(), n.heads)?;
    let k = n.cut(&mut e, "k", x, n.rows() + n.q(), n.kv)?;
    let (dq, dk) = if n.group == 1 {
        let dq = e.matmul("dq", k, ds, false, true)?;
        let dk = e.matmul("dk", q, ds, false, false)?;
        (e.reshape("dq_out", dq, &[1, n.q(), 1, n.s])?, e.reshape("dk_out", dk, &[1, n.k(), 1, n.s])?)
    } else {
        let q = n.group_rows(&mut e, "q", q)?;
        let dq = e.matmul("dq", ds, k, false, true)?;
        let dk = e.matmul("dk", ds, q, true, false)?;
        (n.ungroup(&mut e, "dq", dq)?, n.kv_out(&mut e, "dk", dk)?)
    };
    let all = e.concat("dq_dk", &[dq, dk])?;
    e.finish(all, &[(Act::DQ, n.q()), (Act::DK, n.k())], n.s)
}
