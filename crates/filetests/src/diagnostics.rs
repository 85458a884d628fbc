//! Comparing diagnostics with the expected ones, line by line.

use crate::directives::{Expected, File};
use mil::{Diagnostic, Diagnostics, Severity};

/// What the parser says.
pub(crate) fn parse(file: &File<'_>) -> Result<usize, String> {
    compare(file, mil::parse(file.text).err().unwrap_or_default())
}

/// What parser and verifier say.
pub(crate) fn verify(file: &File<'_>) -> Result<usize, String> {
    let said = match mil::parse(file.text).and_then(|program| mil::verify(program, file.blobs(), file.profile)) {
        Ok(verified) => verified.warnings().clone(),
        Err(diagnostics) => diagnostics,
    };
    compare(file, said)
}

/// Line of a diagnostic, from 1: the first of one without a place, the last of one at the end of the text.
fn line(text: &str, d: &Diagnostic) -> usize {
    let before = text.as_bytes()[..d.span.start.min(text.len())].iter().filter(|&&b| b == b'\n').count();
    (before + 1).min(text.lines().count())
}

fn compare(file: &File<'_>, said: Diagnostics) -> Result<usize, String> {
    let mut open: Vec<&Expected> = file.expected.iter().collect();
    let mut unexpected = Diagnostics::default();
    for d in said.0 {
        let line = line(file.text, &d);
        let fits = |e: &&Expected| e.line == line && e.severity == d.severity && e.code == d.code && d.message.contains(&e.message);
        match open.iter().position(fits) {
            Some(i) => drop(open.remove(i)),
            None => unexpected.0.push(d),
        }
    }
    if open.is_empty() && unexpected.0.is_empty() {
        return Ok(file.expected.len().max(1));
    }
    let mut out = String::new();
    for e in open {
        let word = if e.severity == Severity::Error { "error" } else { "warning" };
        out += &format!("line {}: expected and not said: {word}: {}: {}\n", e.line, e.code, e.message);
    }
    if !unexpected.0.is_empty() {
        out += &format!("said and not expected:\n{}", unexpected.render("", file.text));
    }
    Err(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn said(directive: &str) -> Result<usize, String> {
        let head =
            "// test: parse\nprogram(1.3)\n{\n    func main<ios18>(tensor<fp16, [2]> x) {\n        tensor<fp16, [2]> y = relo(x = x);";
        parse(&File::read(&format!("{head} {directive}\n    }} -> (y);\n}}\n")).unwrap())
    }

    #[test]
    fn what_is_expected_must_be_said_there_and_nothing_else() {
        assert_eq!(said("// error: unknown-op"), Ok(1));
        assert_eq!(said("// error: unknown-op: no op `relo`"), Ok(1));
        for directive in ["", "// error: syntax", "// warning: unknown-op", "// error: unknown-op: no op `relu`", "\n// error: unknown-op"]
        {
            assert!(said(directive).unwrap_err().contains("said and not expected"), "{directive}");
        }
        assert!(said("// error: unknown-op // error: unknown-op").unwrap_err().contains("line 5: expected and not said"));
    }
}
