//! What parser and verifier have to say, and how it is shown.

use crate::ir::Span;
use std::fmt::{self, Write};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The program cannot be used.
    Error,
    /// The program can be used; a chip may do something else than is meant.
    Warning,
}

/// One remark on a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// A name for this kind of remark, such as `axis-cap`.
    pub code: &'static str,
    /// Where in the text; `0..0` in built programs.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// What to do; empty when there is nothing to add.
    pub help: String,
    /// What else is to be seen, and where: the definition that was meant.
    pub notes: Vec<(Span, String)>,
    /// Where the rule comes from, such as `ane-facts 5.2`; empty for rules of the language.
    pub source: &'static str,
}

/// Remarks in the order found. As an error, at least one of them is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostic {
    pub(crate) fn error(code: &'static str, span: Span, message: impl Into<String>, help: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Error, code, span, message: message.into(), help: help.into(), notes: Vec::new(), source: "" }
    }
}

impl Diagnostics {
    /// Whether one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|d| d.severity == Severity::Error)
    }

    /// Every remark with its line, a caret and what to do. `file` is what the text is called.
    pub fn render(&self, file: &str, text: &str) -> String {
        let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        let mut out = String::new();
        // Writing to a String cannot fail.
        for d in self.0.iter().take(RENDERED) {
            let _ = render_one(&mut out, d, file, text, &starts);
        }
        if self.0.len() > RENDERED {
            let _ = writeln!(out, "… and {} more", self.0.len() - RENDERED);
        }
        out
    }
}

/// Line and column of a byte, from 1; columns count characters.
pub(crate) fn place(text: &str, starts: &[usize], at: usize) -> (usize, usize) {
    let line = starts.partition_point(|&s| s <= at).max(1);
    let start = starts.get(line - 1).copied().unwrap_or(0);
    let before = text.get(start..at).map_or(0, |s| s.chars().count());
    (line, before + 1)
}

/// Remarks that are shown; more help nobody.
const RENDERED: usize = 200;
/// Characters of a line that are shown; constants make lines of megabytes.
const SHOWN: usize = 120;

fn render_one(out: &mut String, d: &Diagnostic, file: &str, text: &str, starts: &[usize]) -> fmt::Result {
    writeln!(out, "{}", Headline(d))?;
    render_place(out, d.span, file, text, starts)?;
    for (span, note) in &d.notes {
        writeln!(out, "note: {note}")?;
        render_place(out, *span, file, text, starts)?;
    }
    if !d.help.is_empty() {
        writeln!(out, "  = help: {}", d.help)?;
    }
    if !d.source.is_empty() {
        writeln!(out, "  = source: {}", d.source)?;
    }
    writeln!(out)
}

/// The line of a span with a caret below; nothing for built programs, which have no text.
fn render_place(out: &mut String, span: Span, file: &str, text: &str, starts: &[usize]) -> fmt::Result {
    if span.end <= span.start && span.start == 0 {
        return Ok(());
    }
    let (line, column) = place(text, starts, span.start);
    let start = starts[line - 1];
    let whole = text[start..].lines().next().unwrap_or("");
    let width = text.get(span.start..span.end.min(start + whole.len())).map_or(1, |s| s.chars().count()).max(1);
    let skipped = column.saturating_sub(SHOWN / 2);
    let shown: String = whole.chars().skip(skipped).take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let gutter = line.to_string();
    let pad = " ".repeat(gutter.len());
    writeln!(out, "{pad}--> {file}:{line}:{column}")?;
    writeln!(out, "{pad} |")?;
    writeln!(out, "{gutter} | {shown}")?;
    let caret = column - 1 - skipped;
    writeln!(out, "{pad} | {}{}", " ".repeat(caret), "^".repeat(width.min(SHOWN - caret)))
}

struct Headline<'a>(&'a Diagnostic);

impl fmt::Display for Headline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.0.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{word}[{}]: {}", self.0.code, self.0.message)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Headline(self))?;
        if self.help.is_empty() { Ok(()) } else { write!(f, "; {}", self.help) }
    }
}

impl fmt::Display for Diagnostics {
    /// One line each, without the text; [`Diagnostics::render`] shows more.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            d.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
