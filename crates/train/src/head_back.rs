//! The loss, and the backward pass of the classifier, slice by slice of the vocabulary.

use crate::dw::{DwPiece, DwSource};
use ane::Slot;
use cpu::Pool;
use cpu::loss::{IGNORE, Slice, cross_entropy};
use infer::{Head, InferError, Network, Unit};
use model::programs::{Act, ProgramKind};

/// The backward pass of the classifier.
pub(crate) struct HeadBack {
    /// Slices in order of tokens.
    pub(crate) slices: Vec<SliceBack>,
    /// The classifier's weight gradient.
    pub(crate) dw: DwSource,
}

/// The backward pass of one slice.
pub(crate) struct SliceBack {
    /// Gradient of the slice's logits, `[Vs, T]`.
    pub(crate) dlogits: Slot,
    /// The slice's part of the gradient of the classifier's input, `[D, T]`.
    pub(crate) dx: Slot,
    /// The program.
    pub(crate) unit: Unit,
}

impl HeadBack {
    /// Binds the dx programs.
    ///
    /// # Errors
    /// When memory is short.
    pub(crate) fn build(net: &mut Network) -> Result<HeadBack, InferError> {
        let (mut slices, mut pieces, mut param) = (Vec::new(), Vec::new(), 0);
        for (i, slice) in net.programs.classifier.iter().enumerate() {
            let unit = net.assembly.unit(ProgramKind::ClsDx, i, usize::MAX, &[])?;
            let dlogits = unit.input(Act::DLogits);
            let (rows, cols) = (slice.grad.rows.clone(), slice.grad.cols.clone());
            pieces.push(DwPiece { dy: dlogits.clone(), x: net.head.x.clone(), rows, cols });
            param = net.assembly.param(slice.grad.role, 0);
            slices.push(SliceBack { dlogits, dx: unit.output(Act::Dx), unit });
        }
        Ok(HeadBack { slices, dw: DwSource { param, width: net.assembly.width(param), pieces } })
    }

    /// The summed loss in nats; writes the gradient of `scale` · mean loss into the slices.
    ///
    /// # Errors
    /// When a surface is in use or holds a failed evaluation's output.
    pub(crate) fn loss(&self, head: &Head, pool: &Pool, targets: &[u32], scale: f32) -> Result<f64, InferError> {
        let logits = head.read()?;
        let logits = logits.views().into_iter().map(|v| Slice { valid: v.rows, logits: v });
        let count = targets.iter().filter(|&&t| t != IGNORE).count().max(1);
        let mut guards = self.slices.iter().map(|s| Ok(s.dlogits.write()?)).collect::<Result<Vec<_>, InferError>>()?;
        let logits: Vec<_> = logits.collect();
        // Rows past a slice's tokens are zero from the start and stay so.
        let dlogits = guards.iter_mut().zip(&logits).map(|(g, l)| g.view_mut().sub_rows(0..l.valid)).collect();
        Ok(cross_entropy(pool, &logits, targets, scale / count as f32, dlogits).nll)
    }
}
