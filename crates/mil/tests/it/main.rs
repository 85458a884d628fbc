//! Tests of the language through its public face.
#![allow(clippy::unwrap_used, missing_docs)]

mod build;
mod chip;
mod chip_forms;
mod diagnostics;
mod dialect;
mod fuzz;
mod language;
mod layout;
mod mutations;
mod op_table;
mod ops;
mod ops_more;
mod text;

use mil::{Blobs, Diagnostics, Profile, Verified};

/// A program of one function: parameters, statements, results.
fn program(params: &str, body: &str, results: &str) -> String {
    format!(
        "program(1.3)\n[buildInfo = dict<string, string>({{{{\"k\", \"v\"}}}})]\n{{\nfunc main<ios18>({params}) {{\n{body}\n}} -> ({results});\n}}\n"
    )
}

/// Parses and verifies as the language has it.
fn check(text: &str) -> Result<Verified, Diagnostics> {
    mil::verify(mil::parse(text)?, Blobs::default(), Profile::Language)
}

/// Codes of all remarks.
fn codes(diagnostics: &Diagnostics) -> Vec<&'static str> {
    diagnostics.0.iter().map(|d| d.code).collect()
}
