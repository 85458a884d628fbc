//! Writes one program and its port table side by side, so that the two cannot disagree.

use super::projection::{Matrix, stack};
use super::{Act, BlobContent, BlobSpec, Context, Dir, FieldSpec, PortSpec, ProgramError, ProgramKind, ProgramSpec, Sharing, Weights};
use super::sharing;
use mil::Handle;

/// A value of the program.
pub(super) type Val = Handle<mil::Value>;

/// Longest channel axis of any chip (programs.md rule 1).
pub(super) const CHANNEL_LIMIT: u64 = 65_536;
/// Longest other axis that every chip takes (programs.md rule 1).
const AXIS_LIMIT: u64 = 16_384;

/// A program in the making.
pub(super) struct Emit<'a> {
    cx: &'a Context,
    kind: ProgramKind,
    builder: mil::Builder,
    inputs: Vec<PortSpec>,
    blobs: Vec<BlobSpec>,
}
