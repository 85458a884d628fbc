//! `anneal mil check`: what is wrong with a program, and where.

use super::source::{Source, profile};
use crate::args::MilCheckArgs;
use crate::failure::{FAILED, Outcome};
use mil::{Diagnostics, Severity};
use serde::Serialize;

/// One remark, as `--json` prints it.
#[derive(Serialize)]
struct Remark<'a> {
    severity: &'static str,
    code: &'a str,
    line: usize,
    column: usize,
    message: &'a str,
    help: &'a str,
}

pub(super) fn run(args: &MilCheckArgs) -> Outcome {
    let source = Source::open(&args.file)?;
    let said = match mil::parse(&source.text) {
        Err(said) => said,
        Ok(program) => {
            let blobs = source.blobs(&program)?;
            match mil::verify(program, blobs, profile(args.chip)) {
                Ok(verified) => verified.warnings().clone(),
                Err(said) => said,
            }
        }
    };
    if args.json {
        super::say(&(serde_json::to_string_pretty(&remarks(&said, &source.text))? + "\n"))?;
    } else {
        let count = |severity| said.0.iter().filter(|d| d.severity == severity).count();
        let (errors, warnings) = (counted(count(Severity::Error), "error"), counted(count(Severity::Warning), "warning"));
        super::say(&format!("{}{}: {errors}, {warnings}\n", said.render(&source.name, &source.text), source.name))?;
    }
    Ok(if said.has_errors() { FAILED } else { 0 })
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// All remarks in the order found, lines and columns counted from 1.
fn remarks<'a>(said: &'a Diagnostics, text: &str) -> Vec<Remark<'a>> {
    let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
    let remark = |d: &'a mil::Diagnostic| {
        let at = d.span.start.min(text.len());
        let line = starts.partition_point(|&s| s <= at);
        let column = text.get(starts[line - 1]..at).map_or(0, |before| before.chars().count()) + 1;
        let severity = match d.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        Remark { severity, code: d.code, line, column, message: &d.message, help: &d.help }
    };
    said.0.iter().map(remark).collect()
}
