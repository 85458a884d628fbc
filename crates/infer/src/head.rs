//! From the residual stream to logits: the last norm and the classifier, slice by slice of the vocabulary.

use crate::assemble::{Assembly, Unit};
use crate::error::InferError;
use ane::{Queue, Read, Slot};
use cpu::View;
use model::Role;
use model::programs::{Act, ClassifierSlice, ProgramKind};

/// The classifier of a network.
pub struct Head {
    /// The gain of the last norm, among the parameters.
    pub norm: usize,
    /// Its input: the normed residual stream, `[D, T]`.
    pub x: Slot,
    /// Slices in order of tokens.
    pub slices: Vec<Slice>,
}

/// A slice of the vocabulary.
pub struct Slice {
    /// Logits, `[Vs, T]`; rows past [`Slice::len`] are padding.
    pub logits: Slot,
    /// Tokens in the slice.
    pub len: usize,
    fwd: Unit,
}

impl Head {
    /// Binds the classifier.
    ///
    /// # Errors
    /// When memory is short.
    pub fn build(a: &mut Assembly, slices: &[ClassifierSlice]) -> Result<Head, InferError> {
        let mut built: Vec<Slice> = Vec::new();
        let mut x: Option<Slot> = None;
        for (i, slice) in slices.iter().enumerate() {
            let given: Vec<_> = x.iter().map(|x| (Act::X, &x.surface)).collect();
            let fwd = a.unit(ProgramKind::ClsFwd, i, usize::MAX, &given)?;
            x.get_or_insert_with(|| fwd.input(Act::X));
            built.push(Slice { logits: fwd.output(Act::Logits), len: slice.len, fwd });
        }
        let x = x.unwrap_or_else(|| panic!("a classifier has at least one slice"));
        Ok(Head { norm: a.param(Role::FinalNorm, 0), x, slices: built })
    }

    /// From [`Head::x`] to all logits.
    ///
    /// # Errors
    /// When an evaluation failed.
    pub fn forward(&self, queue: &Queue) -> Result<(), InferError> {
        for slice in &self.slices {
            queue.run(&slice.fwd.binding)?;
        }
        Ok(())
    }

    /// Opens all logits for reading.
    ///
    /// # Errors
    /// When the last evaluation failed.
    pub fn read(&self) -> Result<Logits<'_>, InferError> {
        let guards = self.slices.iter().map(|s| Ok(s.logits.surface.read()?)).collect::<Result<_, InferError>>()?;
        Ok(Logits { head: self, guards })
    }
}

/// Logits opened for reading.
pub struct Logits<'a> {
    head: &'a Head,
    guards: Vec<Read>,
}

impl Logits<'_> {
    /// One view a slice, without padding rows: `[len, T]`.
    pub fn views(&self) -> Vec<View<'_>> {
        self.head.slices.iter().zip(&self.guards).map(|(s, guard)| guard.view(s.logits.field).sub_rows(0..s.len)).collect()
    }

    /// The logits of one column, over the whole vocabulary.
    pub fn column(&self, column: usize) -> Vec<f32> {
        let slices = self.views();
        slices.iter().flat_map(|v| (0..v.rows).map(|r| v.row(r)[column].to_f32())).collect()
    }
}
