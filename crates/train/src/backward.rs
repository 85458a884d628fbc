//! The backward passes of a layer's blocks: dx programs on the device; softmax, RoPE and, where weights are packed, SiLU backwards on the CPU.

use crate::dw::{DwPiece, DwSource};
use crate::watch::WatchSum;
use ane::{Queue, Slot};
use cpu::elementwise::round_into;
use cpu::rope::Rope;
use cpu::{Pool, View, ViewMut};
use half::f16;
use infer::{Attention, FeedForward, InferError, Network, Unit, gather_sequences, scatter_sequences};
use model::Layout;
use model::programs::{Act, Dir, ProgramKind, Tap};

/// The backward pass of one layer.
pub(crate) struct LayerBack {
    /// Of attention.
    pub(crate) attn: AttentionBack,
    /// Of the feed-forward network.
    pub(crate) ffn: FeedForwardBack,
}

impl LayerBack {
    /// Binds the dx programs of `layer`, and finds the taps of its weight gradients.
    ///
    /// # Errors
    /// When memory is short.
    pub(crate) fn build(net: &mut Network, layer: usize) -> Result<LayerBack, InferError> {
        let mut ffn = FeedForwardBack::build(net, layer)?;
        let mut attn = AttentionBack::build(net, layer)?;
        let forward = &net.layers[layer];
        let units: Vec<&Unit> =
            forward.attn.units().into_iter().chain([&forward.ffn.forward]).chain(ffn.units()).chain(attn.units()).collect();
        let (mut of_ffn, mut of_attn) = (Vec::new(), Vec::new());
        for g in &net.programs.grads {
            let param = net.assembly.param(g.role, layer);
            let piece = DwPiece { dy: tap(&units, g.dy), x: tap(&units, g.x), rows: g.rows.clone(), cols: g.cols.clone() };
            let source = DwSource { param, width: net.assembly.width(param), pieces: vec![piece] };
            use ProgramKind::{FfnBwd, FfnBwdW2, FfnBwdW13};
            if matches!(g.dy.program, FfnBwd | FfnBwdW2 | FfnBwdW13) { of_ffn.push(source) } else { of_attn.push(source) }
        }
        ffn.dw = Dw::split(of_ffn, &ffn.dy);
        attn.dw = Dw::split(of_attn, &attn.dy);
        Ok(LayerBack { attn, ffn })
    }
}

/// The slot of a tap among a layer's programs.
fn tap(units: &[&Unit], tap: Tap) -> Slot {
    let unit = units.iter().find(|u| u.kind() == tap.program);
    let unit = unit.unwrap_or_else(|| panic!("no program {}: weight gradients and programs come from one table", tap.program));
    match tap.dir {
        Dir::In => unit.input(tap.act),
        Dir::Out => unit.output(tap.act),
    }
}

/// Weight gradients of a block, by when they can start.
#[derive(Default)]
pub(crate) struct Dw {
    /// Those that need only the block's `dy` and forward taps: they run beside the block's own dx programs.
    pub(crate) early: Vec<DwSource>,
    /// Those that need what the dx programs make: they run beside the next block's.
    pub(crate) late: Vec<DwSource>,
}

impl Dw {
    fn split(sources: Vec<DwSource>, dy: &Slot) -> Dw {
        let (early, late) =
            sources.into_iter().partition(|s| s.pieces.iter().all(|p| p.dy.surface.is(&dy.surface) && p.dy.field == dy.field));
        Dw { early, late }
    }
}

/// The backward pass of a feed-forward network.
pub(crate) struct FeedForwardBack {
    /// Gradient of its output, `[D, T]`.
    pub(crate) dy: Slot,
    /// Gradient of its input, `[D, T]`.
    pub(crate) dx: Slot,
    /// Its weight gradients.
    pub(crate) dw: Dw,
    programs: FeedForwardPrograms,
}

enum FeedForwardPrograms {
    /// SiLU's gradient inside the program.
    Joined { all: Unit },
    /// SiLU's gradient on the CPU, between two programs.
    Apart { w2: Unit, w13: Unit },
}

impl FeedForwardBack {
    fn build(net: &mut Network, layer: usize) -> Result<FeedForwardBack, InferError> {
        let a = &mut net.assembly;
        let (programs, dy, dx) = if a.has(ProgramKind::FfnBwd) {
            let all = a.unit(ProgramKind::FfnBwd, 0, layer, &[])?;
            let (dy, dx) = (all.input(Act::Dy), all.output(Act::Dx));
            (FeedForwardPrograms::Joined { all }, dy, dx)
        } else {
            let w2 = a.unit(ProgramKind::FfnBwdW2, 0, layer, &[])?;
            let w13 = a.unit(ProgramKind::FfnBwdW13, 0, layer, &[])?;
            let (dy, dx) = (w2.input(Act::Dy), w13.output(Act::Dx));
            (FeedForwardPrograms::Apart { w2, w13 }, dy, dx)
        };
        Ok(FeedForwardBack { dy, dx, dw: Dw::default(), programs })
    }

    fn units(&self) -> Vec<&Unit> {
        match &self.programs {
            FeedForwardPrograms::Joined { all } => vec![all],
            FeedForwardPrograms::Apart { w2, w13 } => vec![w2, w13],
        }
    }

    /// Its programs, to be compiled anew when their weights are constants.
    pub(crate) fn units_mut(&mut self) -> Vec<&mut Unit> {
        match &mut self.programs {
            FeedForwardPrograms::Joined { all } => vec![all],
            FeedForwardPrograms::Apart { w2, w13 } => vec![w2, w13],
        }
    }

    /// Writes the gradient of the block's output, and the taps that travel with it.
    ///
    /// # Errors
    /// When a surface is in use.
    pub(crate) fn start(&self, pool: &Pool, dx: &[f32], forward: &FeedForward) -> Result<(), InferError> {
        round_into(pool, dx, self.dy.write()?.view_mut());
        if let FeedForwardPrograms::Joined { all } = &self.programs {
            for (act, from) in [(Act::H1, &forward.h1), (Act::H3, &forward.h3)] {
                copy(pool, from.read()?.view(), all.input(act).write()?.view_mut());
            }
        }
        Ok(())
    }

    /// From `dy` to `dx`, with the gradients of gate and up projections on the way.
    ///
    /// # Errors
    /// When an evaluation failed.
    pub(crate) fn run(&self, queue: &Queue, pool: &Pool, forward: &FeedForward, watch: &mut WatchSum) -> Result<(), InferError> {
        match &self.programs {
            FeedForwardPrograms::Joined { all } => {
                queue.run(&all.binding)?;
                watch.look(pool, &[&all.output(Act::DH1), &all.output(Act::DH3)])?;
            }
            FeedForwardPrograms::Apart { w2, w13 } => {
                queue.run(&w2.binding)?;
                let dgate = w2.output(Act::DGate);
                watch.look(pool, &[&dgate])?;
                let (dgate, h1, h3) = (dgate.read()?, forward.h1.read()?, forward.h3.read()?);
                let (dgate, h1, h3) = (dgate.view(), h1.view(), h3.view());
                // gate = silu(h1) · h3, silu(h) = h · s(h).
                elementwise(pool, [dgate, h1, h3], w13.input(Act::DH1).write()?.view_mut(), |d, h, u, s| {
                    d * u * (s * (1.0 + h * (1.0 - s)))
                });
                elementwise(pool, [dgate, h1, h3], w13.input(Act::DH3).write()?.view_mut(), |d, h, _, s| d * (h * s));
                queue.run(&w13.binding)?;
            }
        }
        watch.look(pool, &[&self.dx])
    }
}

/// The backward pass of attention.
pub(crate) struct AttentionBack {
    /// Gradient of its output, `[D, T]`.
    pub(crate) dy: Slot,
    /// Gradient of its input, `[D, T]`.
    pub(crate) dx: Slot,
    /// Its weight gradients.
    pub(crate) dw: Dw,
    wo: Unit,
    bwd1: Unit,
    bwd2: Unit,
    qkv: Unit,
}

impl AttentionBack {
    fn build(net: &mut Network, layer: usize) -> Result<AttentionBack, InferError> {
        let a = &mut net.assembly;
        let mut unit = |kind| a.unit(kind, 0, layer, &[]);
        let (wo, bwd1, bwd2) = (unit(ProgramKind::WoBwd)?, unit(ProgramKind::AttnBwd1)?, unit(ProgramKind::AttnBwd2)?);
        let qkv = unit(ProgramKind::QkvBwd)?;
        Ok(AttentionBack { dy: wo.input(Act::Dy), dx: qkv.output(Act::Dx), dw: Dw::default(), wo, bwd1, bwd2, qkv })
    }

    fn units(&self) -> [&Unit; 4] {
        [&self.wo, &self.bwd1, &self.bwd2, &self.qkv]
    }

    /// Its programs that have weights, to be compiled anew when those are constants.
    pub(crate) fn units_mut(&mut self) -> Vec<&mut Unit> {
        vec![&mut self.wo, &mut self.qkv]
    }

    /// Writes the gradient of the block's output.
    ///
    /// # Errors
    /// When the surface is in use.
    pub(crate) fn start(&self, pool: &Pool, dx: &[f32]) -> Result<(), InferError> {
        round_into(pool, dx, self.dy.write()?.view_mut());
        Ok(())
    }

    /// From `dy` to `dx`, with the gradients of queries, keys and values on the way.
    ///
    /// # Errors
    /// When an evaluation failed.
    pub(crate) fn run(
        &self,
        queue: &Queue,
        pool: &Pool,
        layout: &Layout,
        rope: &Rope,
        forward: &Attention,
        watch: &mut WatchSum,
    ) -> Result<(), InferError> {
        let (one, two, seq) = (&self.bwd1, &self.bwd2, layout.shape.seq_padded());
        queue.run(&self.wo.binding)?;
        scatter_sequences(pool, layout, self.wo.output(Act::DAttnOut).read()?.view(), one.input(Act::DAttnOut).write()?.view_mut());
        copy(pool, forward.probs.read()?.view(), one.input(Act::Probs).write()?.view_mut());
        copy(pool, forward.v.read()?.view(), one.input(Act::V).write()?.view_mut());
        queue.run(&one.binding)?; // dV, dP
        let (p, dp) = (forward.probs.read()?, one.output(Act::DProbs).read()?);
        cpu::softmax::softmax_backward(pool, p.view(), dp.view(), two.input(Act::DScores).write()?.view_mut(), seq);
        copy(pool, forward.q.read()?.view(), two.input(Act::Q).write()?.view_mut());
        copy(pool, forward.k.read()?.view(), two.input(Act::K).write()?.view_mut());
        queue.run(&two.binding)?; // dQ, dK
        let rotated = [(Act::DQ, layout.n_heads, forward.query_scale), (Act::DK, layout.n_kv_heads, 1.0)];
        for (act, heads, scale) in rotated {
            let (from, mut into) = (two.output(act).read()?, self.qkv.input(act).write()?);
            let block = heads * layout.head_dim;
            for b in 0..layout.shape.batch {
                let src = from.view().sub_rows(b * block..(b + 1) * block);
                let dst = into.view_mut().sub_cols(b * seq..(b + 1) * seq);
                rope.rotate_back(pool, src, dst, heads, layout.head_dim, scale);
            }
        }
        gather_sequences(pool, layout, one.output(Act::DV).read()?.view(), self.qkv.input(Act::DV).write()?.view_mut());
        queue.run(&self.qkv.binding)?;
        watch.look(pool, &[&self.wo.output(Act::DAttnOut), &one.output(Act::DV), &two.output(Act::DQ), &two.output(Act::DK), &self.dx])
    }
}

/// Row by row.
fn copy(pool: &Pool, from: View<'_>, into: ViewMut<'_>) {
    into.par_rows_mut(pool, |r, row| row.copy_from_slice(from.row(r)));
}

/// `out = f(d, h, u, sigmoid(h))` for each element, in fp32, rounded once.
fn elementwise(pool: &Pool, [d, h, u]: [View<'_>; 3], out: ViewMut<'_>, f: impl Fn(f32, f32, f32, f32) -> f32 + Sync) {
    out.par_rows_mut(pool, |r, row: &mut [f16]| {
        let wide = |v: View<'_>| {
            let mut wide = vec![0.0; v.cols];
            cpu::round::widen(v.row(r), &mut wide);
            wide
        };
        let (mut d, h, u) = (wide(d), wide(h), wide(u));
        let mut s = h.clone();
        cpu::math::sigmoid(&mut s);
        for (((d, h), u), s) in d.iter_mut().zip(&h).zip(&u).zip(&s) {
            *d = f(*d, *h, *u, *s);
        }
        cpu::round::round(&d, row);
    });
}
