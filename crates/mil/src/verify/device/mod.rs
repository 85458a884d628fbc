//! The rules of chips: what the language allows and the Neural Engine refuses, or does otherwise than is meant.

mod attention;
mod bounds;
mod constants;
mod forms;
mod numbers;
mod ports;
mod refused;
mod scope;
mod size;
mod width;

use super::{Found, remark};
use crate::diagnostic::Severity;
use crate::ir::{Blobs, Chip, Program, Span};
use scope::Scope;
use std::sync::LazyLock;

/// One rule of some chips.
#[derive(Debug)]
pub struct Lint {
    /// Its name.
    pub code: &'static str,
    /// Whether breaking it is an error.
    pub severity: Severity,
    /// First and last chip that has it.
    pub chips: (Chip, Chip),
    /// What it is about, in one line.
    pub doc: &'static str,
    /// What to do.
    pub help: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    check: fn(&Scope<'_>, &mut Report<'_>),
}

/// Takes what a rule finds.
type Report<'r> = dyn FnMut(Span, String) + 'r;
type Check = fn(&Scope<'_>, &mut Report<'_>);

const ALL: (Chip, Chip) = (Chip::H13, Chip::H17);

const fn error(code: &'static str, doc: &'static str, help: &'static str, source: &'static str, check: Check) -> Lint {
    Lint { code, severity: Severity::Error, chips: ALL, doc, help, source, check }
}

const fn warning(code: &'static str, doc: &'static str, help: &'static str, source: &'static str, check: Check) -> Lint {
    Lint { code, severity: Severity::Warning, chips: ALL, doc, help, source, check }
}

/// The rules of all chips, family by family.
pub static LINTS: LazyLock<Vec<&Lint>> = LazyLock::new(|| {
    [size::LINTS, ports::LINTS, constants::LINTS, refused::LINTS, forms::LINTS, numbers::LINTS, width::LINTS, attention::LINTS]
        .into_iter()
        .flatten()
        .collect()
});

pub(super) fn check(program: &Program, blobs: &Blobs, chip: Chip, found: &mut Found) {
    for function in &program.functions {
        let scope = Scope::new(program, function, blobs, chip);
        for lint in LINTS.iter().filter(|l| l.chips.0 <= chip && chip <= l.chips.1) {
            (lint.check)(&scope, &mut |span, message| remark(found, lint, span, message));
        }
    }
}
