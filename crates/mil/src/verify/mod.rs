//! The verifier: the only maker of [`Verified`].
//!
//! Verified means that nothing downstream panics. Of every program it holds that
//!
//! * Form
//!     * there is at least one function; functions have distinct names; names of functions, values and ports are
//!       identifiers, and a function's values have distinct names;
//!     * every handle belongs to its function; every value is defined once, by a parameter or as a result of an op, and
//!       before it is used.
//! * Arguments
//!     * every op exists in the function's opset; its arguments are parameters of the op, none twice, all required ones given;
//!     * a tuple stands only where a list is wanted, a value known at compile time wherever a constant is;
//!     * `const` has an attribute `val`; there are no attributes that the op does not know.
//! * Values
//!     * every literal has as many elements as its type, each a value of the element type;
//!     * a constant in a weight file is there: the path is in [`Blobs`], the header is valid, type and size agree.
//! * Types
//!     * no axis is unknown; ranks are 5 or less, of constants 7; the bytes of all values together are bounded, so that no size overflows;
//!     * element types are in their parameters' domains and agree where they must;
//!     * declared result types are those that the op gives. Where the table has no rule for the op, or its shape is computed,
//!       they are trusted and the warning `not-checked` says so.
//! * Results
//!     * a function returns at least one value, none twice, and no constant, string or state; states are read and written by
//!       the ops for it and by no others.
//!
//! A chip adds its own rules: [`LINTS`].

mod device;
mod form;
mod values;

pub use device::{LINTS, Lint};

use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::ir::{Blobs, Literal, Op, Profile, Program};
use half::f16;
use std::borrow::Cow;

/// A program that was checked against a profile, with its weight files.
#[derive(Clone, Debug)]
pub struct Verified {
    program: Program,
    blobs: Blobs,
    profile: Profile,
    warnings: Diagnostics,
}

impl Verified {
    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Its weight files.
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// What it was checked against.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// What a chip may do otherwise than is meant.
    pub fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }

    /// The elements of a `const` of `fp16`, wherever they are written; `None` for other ops and element types.
    pub fn constant_data(&self, op: &Op) -> Option<Cow<'_, [f16]>> {
        op.attr("val").and_then(|literal: &Literal| self.blobs.f16s(literal).ok())
    }
}

/// Checks a program against a profile.
///
/// # Errors
/// All that is wrong, and the warnings found until then.
pub fn verify(program: Program, blobs: Blobs, profile: Profile) -> Result<Verified, Diagnostics> {
    let mut found = Vec::new();
    form::check(&program, &mut found);
    // What follows looks values up by handle and arguments by name: it needs the form to be right.
    if found.is_empty() {
        for function in &program.functions {
            values::check(function, &blobs, &mut found);
        }
    }
    let sound = found.iter().all(|d| d.severity == Severity::Warning);
    if let (true, Profile::Chip(chip)) = (sound, profile) {
        device::check(&program, &blobs, chip, &mut found);
    }
    let found = Diagnostics(found);
    if found.has_errors() { Err(found) } else { Ok(Verified { program, blobs, profile, warnings: found }) }
}

/// A list of remarks that grows.
type Found = Vec<Diagnostic>;

/// Adds a remark of a chip's rule.
fn remark(found: &mut Found, lint: &Lint, span: crate::ir::Span, message: String) {
    found.push(Diagnostic {
        severity: lint.severity,
        code: lint.code,
        span,
        message,
        help: lint.help.into(),
        notes: Vec::new(),
        source: lint.source,
    });
}

/// How messages call an op: by its first result.
fn title(function: &crate::ir::Function, op: &Op) -> String {
    match op.results.first().and_then(|v| function.values.get(*v)) {
        Some(value) => format!("`{}` ({})", value.name, op.kind.name()),
        None => op.kind.name().to_string(),
    }
}
