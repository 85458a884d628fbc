//! The forward pass of attention: projections and products on the device, RoPE, mask and softmax on the CPU.

use crate::assemble::{Assembly, Unit};
use crate::error::InferError;
use crate::machine::Machine;
use ane::{Queue, Slot};
use cpu::rope::Rope;
use cpu::{Pool, View, ViewMut};
use model::programs::{Act, ProgramKind};
use model::{Layout, Role};

/// Attention of one layer. The slots are the taps that the backward pass reads.
pub struct Attention {
    /// The gain of the norm before it, among the parameters.
    pub norm: usize,
    /// Its input: the normed residual stream, `[D, T]`.
    pub x: Slot,
    /// What it adds to the residual stream, `[D, T]`.
    pub y: Slot,
    /// Rotated queries times `1/√head_dim`, `[B·Q, S]`.
    pub q: Slot,
    /// Rotated keys, `[B·K, S]`.
    pub k: Slot,
    /// Values, `[B·K, S]`.
    pub v: Slot,
    /// Probabilities, `[B·heads·S, S]`.
    pub probs: Slot,
    /// `1/√head_dim`, which queries carry so that scores need no scaling (programs.md rule 6).
    pub query_scale: f32,
    qkv: Unit,
    core: Core,
    out: Slot,
    wo: Unit,
    wo_in: Slot,
}

/// Queries, keys and values to result.
enum Core {
    /// Mask and softmax on the CPU.
    Split { qk: Unit, scores: Slot, pv: Unit },
    /// All on the device.
    Fused { attn: Unit },
}

impl Attention {
    /// Binds the programs of `layer`.
    ///
    /// # Errors
    /// When memory is short.
    pub fn build(a: &mut Assembly, layout: &Layout, head_dim: usize, layer: usize) -> Result<Attention, InferError> {
        let qkv = a.unit(ProgramKind::QkvFwd, 0, layer, &[])?;
        // Where the output projection takes attention's result as it is, both meet in one surface and nothing is copied. It is the
        // layer's own in either case: the result is a tap of Wo's gradient.
        let direct = layout.shape.batch == 1 && a.takes_whole(ProgramKind::WoFwd, Act::AttnOut);
        let (core, wo, q, k, v, probs, out) = if a.has(ProgramKind::Attn) {
            let attn = a.unit(ProgramKind::Attn, 0, layer, &[])?;
            let (probs, out) = (attn.output(Act::Probs), attn.output(Act::AttnOut));
            let given = [(Act::AttnOut, &out.surface)];
            let wo = a.unit(ProgramKind::WoFwd, 0, layer, if direct && out.field.row == 0 { &given } else { &[] })?;
            let (q, k, v) = (attn.input(Act::Q), attn.input(Act::K), attn.input(Act::V));
            (Core::Fused { attn }, wo, q, k, v, probs, out)
        } else {
            let wo = a.unit(ProgramKind::WoFwd, 0, layer, &[])?;
            let result = wo.input(Act::AttnOut).surface;
            let given = [(Act::AttnOut, &result)];
            let qk = a.unit(ProgramKind::Qk, 0, layer, &[])?;
            let pv = a.unit(ProgramKind::Pv, 0, layer, if direct { &given } else { &[] })?;
            let (q, k, scores) = (qk.input(Act::Q), qk.input(Act::K), qk.output(Act::Scores));
            let (probs, v, out) = (pv.input(Act::Probs), pv.input(Act::V), pv.output(Act::AttnOut));
            (Core::Split { qk, scores, pv }, wo, q, k, v, probs, out)
        };
        Ok(Attention {
            norm: a.param(Role::AttnNorm, layer),
            x: qkv.input(Act::X),
            y: wo.output(Act::Y),
            q,
            k,
            v,
            probs,
            query_scale: 1.0 / (head_dim as f32).sqrt(),
            core,
            out,
            wo_in: wo.input(Act::AttnOut),
            qkv,
            wo,
        })
    }

    /// Attention's result as the output projection reads it, `[Q, T]`: its dW tap.
    pub fn result(&self) -> &Slot {
        &self.wo_in
    }

    /// From [`Attention::x`] to [`Attention::y`].
    ///
    /// # Errors
    /// When an evaluation failed.
    pub fn forward(&self, queue: &Queue, machine: &Machine, layout: &Layout, rope: &Rope) -> Result<(), InferError> {
        queue.run(&self.qkv.binding)?;
        self.rotate(&machine.pool, layout, rope)?;
        match &self.core {
            Core::Fused { attn } => queue.run(&attn.binding)?,
            Core::Split { qk, scores, pv } => {
                queue.run(&qk.binding)?;
                cpu::softmax::causal_softmax(
                    &machine.pool,
                    scores.read()?.view(),
                    self.probs.write()?.view_mut(),
                    layout.shape.seq_padded(),
                );
                queue.run(&pv.binding)?
            }
        };
        if !self.out.surface.is(&self.wo_in.surface) {
            gather_sequences(&machine.pool, layout, self.out.read()?.view(), self.wo_in.write()?.view_mut());
        }
        queue.run(&self.wo.binding)?;
        Ok(())
    }

    /// Projected queries, keys and values into attention's inputs: rotated, sequence by sequence, queries times `1/√head_dim`.
    fn rotate(&self, pool: &Pool, layout: &Layout, rope: &Rope) -> Result<(), InferError> {
        let s = layout.shape.seq_padded();
        let heads = [(Act::Q, &self.q, layout.n_heads, self.query_scale), (Act::K, &self.k, layout.n_kv_heads, 1.0)];
        for (act, into, heads, scale) in heads {
            let (from, mut into) = (self.qkv.output(act).read()?, into.write()?);
            let block = heads * layout.head_dim;
            for b in 0..layout.shape.batch {
                let (src, dst) = (from.view().sub_cols(b * s..(b + 1) * s), into.view_mut().sub_rows(b * block..(b + 1) * block));
                rope.rotate(pool, src, dst, heads, layout.head_dim, scale);
            }
        }
        scatter_sequences(pool, layout, self.qkv.output(Act::V).read()?.view(), self.v.write()?.view_mut());
        Ok(())
    }

    /// Its programs that have weights.
    pub fn units(&self) -> [&Unit; 2] {
        [&self.qkv, &self.wo]
    }

    /// Its programs that have weights.
    pub(crate) fn units_mut(&mut self) -> [&mut Unit; 2] {
        [&mut self.qkv, &mut self.wo]
    }
}

/// `[C, B·S]` into `[B·C, S]`: each sequence's columns to its block of rows.
pub fn scatter_sequences(pool: &Pool, layout: &Layout, from: View<'_>, into: ViewMut<'_>) {
    let (s, block) = (layout.shape.seq_padded(), from.rows);
    into.par_rows_mut(pool, |row, out| {
        let (b, channel) = (row / block, row % block);
        out.copy_from_slice(&from.row(channel)[b * s..(b + 1) * s]);
    });
}

/// `[B·C, S]` into `[C, B·S]`: the way back.
pub fn gather_sequences(pool: &Pool, layout: &Layout, from: View<'_>, into: ViewMut<'_>) {
    let (s, block) = (layout.shape.seq_padded(), into.rows);
    into.par_rows_mut(pool, |channel, out| {
        for (b, out) in out.chunks_mut(s).enumerate() {
            out.copy_from_slice(from.row(b * block + channel));
        }
    });
}
