//! The memory leaf: surfaces, constants and scratch as one address space of fp16 elements, lent as slices that never overlap a
//! written one.
#![allow(unsafe_code)]

use crate::{Io, Memory};
use cpu::f16;
use std::marker::PhantomData;
use std::sync::Arc;

/// A buffer of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Buf {
    /// Memory of the n-th input port.
    Input(usize),
    /// Memory of the n-th output port.
    Output(usize),
    /// The n-th constant.
    Const(usize),
    /// The n-th temporary; only while planning.
    Temp(usize),
    /// The scratch memory that all temporaries were placed in.
    Arena,
}

/// A run of elements in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) buf: Buf,
    /// First element.
    pub(super) low: usize,
    /// Number of elements.
    pub(super) len: usize,
}

impl Span {
    /// Whether both hold some element.
    pub(super) fn overlaps(&self, other: &Span) -> bool {
        self.buf == other.buf && self.low < other.low + other.len && other.low < self.low + self.len
    }
}

/// The buffers of one evaluation.
pub(super) struct Space<'a> {
    inputs: Vec<Raw>,
    outputs: Vec<Raw>,
    arena: Raw,
    consts: &'a [Arc<[f16]>],
    life: PhantomData<(&'a Io, &'a mut Memory)>,
}

/// First element and number of elements.
#[derive(Clone, Copy)]
struct Raw(*mut f16, usize);

impl Raw {
    fn of(memory: &Memory) -> Raw {
        Raw(memory.base().as_ptr().cast(), memory.len() / 2)
    }

    fn overlaps(self, other: Raw) -> bool {
        let (a, b) = (self.0 as usize, other.0 as usize);
        a < b + other.1 * 2 && b < a + self.1 * 2
    }
}

/// Whether no output of a call shares memory with another of its surfaces, which every evaluation relies on.
pub(super) fn outputs_are_distinct(io: &Io) -> bool {
    let outputs: Vec<Raw> = io.outputs.iter().map(|s| Raw::of(s.memory())).collect();
    let inputs = io.inputs.iter().map(|s| Raw::of(s.memory()));
    outputs.iter().enumerate().all(|(i, a)| !outputs[..i].iter().any(|b| a.overlaps(*b)))
        && inputs.into_iter().all(|a| !outputs.iter().any(|b| a.overlaps(*b)))
}

impl<'a> Space<'a> {
    /// The buffers of a call whose outputs are distinct, for use in `Call::run` only: there the queue holds the surfaces for the
    /// device (`Binding::claim`), so that nobody writes the inputs and nobody touches the outputs.
    ///
    /// # Panics
    /// When an output shares memory with another surface.
    pub(super) fn new(io: &'a Io, consts: &'a [Arc<[f16]>], arena: Option<&'a mut Memory>) -> Space<'a> {
        assert!(outputs_are_distinct(io), "an output surface shares memory with another surface of the call");
        let raw = |surfaces: &[crate::Surface]| surfaces.iter().map(|s| Raw::of(s.memory())).collect();
        Space {
            inputs: raw(&io.inputs),
            outputs: raw(&io.outputs),
            arena: arena.map_or(Raw(std::ptr::null_mut(), 0), |m| Raw::of(m)),
            consts,
            life: PhantomData,
        }
    }

    /// The elements of `reads` and `writes`.
    ///
    /// # Panics
    /// When a span lies outside its buffer, or a written one overlaps any other.
    pub(super) fn lend(&mut self, reads: &[Span], writes: &[Span]) -> (Vec<&[f16]>, Vec<&mut [f16]>) {
        for (i, w) in writes.iter().enumerate() {
            let clash = reads.iter().chain(&writes[..i]).any(|s| s.overlaps(w));
            assert!(!clash && !matches!(w.buf, Buf::Input(_) | Buf::Const(_)), "{w:?} may not be written beside {reads:?}");
        }
        let place = |s: &Span| {
            let Raw(base, len) = match s.buf {
                Buf::Input(i) => self.inputs[i],
                Buf::Output(i) => self.outputs[i],
                Buf::Const(i) => Raw(self.consts[i].as_ptr().cast_mut(), self.consts[i].len()),
                Buf::Temp(_) | Buf::Arena => self.arena,
            };
            assert!(s.low + s.len <= len, "{s:?} ends past {len} elements");
            // SAFETY: inside the buffer, as just checked.
            unsafe { base.add(s.low) }
        };
        let read = |s: &Span| {
            // SAFETY: the bounds are checked; surfaces and arena are aligned to 64, initialised, and ours by the contract of `new` or by
            // `life`; constants live for `'a`. Buffers are distinct memory (inputs may be each other's, and are only read), and within
            // a buffer no written span overlaps this one. The result borrows `self`, so that no other step lends meanwhile.
            unsafe { std::slice::from_raw_parts(place(s), s.len) }
        };
        let write = |s: &Span| {
            // SAFETY: as above; outputs and arena are distinct from all other memory, and no other span of this step overlaps this one.
            unsafe { std::slice::from_raw_parts_mut(place(s), s.len) }
        };
        (reads.iter().map(read).collect(), writes.iter().map(write).collect())
    }
}
