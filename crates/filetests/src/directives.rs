//! What a file says in its comments.

use crate::list::{Cursor, Numbers};
use ane::emulator::{Arithmetic, Mac};
use mil::blob::{BlobType, Writer};
use mil::{Blobs, Chip, Profile, Severity};
use std::collections::BTreeMap;
use std::fmt;

/// What is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Errors of the parser.
    Parse,
    /// Errors and warnings of parser and verifier.
    Verify,
    /// The canonical text.
    Print,
    /// What programs compute.
    Run,
}

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The emulator, under the rules of the language only or of a chip, and in one of its arithmetics.
    Emulator(Option<Chip>, Arithmetic),
    /// The Neural Engine.
    Ane,
}

/// A diagnostic that is expected.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) line: usize,
    pub(crate) severity: Severity,
    pub(crate) code: String,
    /// Part of the message.
    pub(crate) message: String,
}

/// One `run` line.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) line: usize,
    pub(crate) inputs: Vec<(String, Vec<f32>)>,
    pub(crate) outputs: Vec<Output>,
}

/// What an output shall be.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) values: Vec<f32>,
    /// `None`: equal.
    pub(crate) tolerance: Option<f32>,
}

/// A file with its directives.
#[derive(Debug)]
pub struct File<'a> {
    /// The whole text; directives are comments in it.
    pub text: &'a str,
    /// What is tested.
    pub tests: Vec<Test>,
    /// Where it runs.
    pub targets: Vec<Target>,
    pub(crate) profile: Profile,
    files: BTreeMap<String, Writer>,
    pub(crate) expected: Vec<Expected>,
    pub(crate) runs: Vec<Run>,
    pub(crate) printed: String,
}

impl<'a> File<'a> {
    /// Reads the directives.
    ///
    /// # Errors
    /// The line of a directive that is not understood.
    pub fn read(text: &'a str) -> Result<File<'a>, String> {
        let mut file = File {
            text,
            tests: Vec::new(),
            targets: Vec::new(),
            profile: Profile::Language,
            files: BTreeMap::new(),
            expected: Vec::new(),
            runs: Vec::new(),
            printed: String::new(),
        };
        for (i, line) in text.lines().enumerate() {
            file.line(i + 1, line).map_err(|e| format!("line {}: {e}", i + 1))?;
        }
        if file.tests.is_empty() {
            return Err("no `// test:` header".into());
        }
        if file.targets.is_empty() {
            file.targets.push(Target::Emulator(None, Arithmetic::Fast));
        }
        if file.tests.contains(&Test::Run) == file.runs.is_empty() {
            return Err("`// test: run` goes with `// run:` lines".into());
        }
        if !file.expected.is_empty() && !file.tests.iter().any(|t| matches!(t, Test::Parse | Test::Verify)) {
            return Err("`error` and `warning` go with `// test: parse` or `verify`".into());
        }
        Ok(file)
    }

    /// The weight files.
    pub(crate) fn blobs(&self) -> Blobs {
        Blobs(self.files.iter().map(|(path, writer)| (path.clone(), writer.clone().finish().into())).collect())
    }

    /// Codes of the errors and warnings that are expected.
    pub fn codes(&self) -> impl Iterator<Item = &str> {
        self.expected.iter().map(|e| e.code.as_str())
    }

    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        if let Some(printed) = line.strip_prefix("//|") {
            self.printed.push_str(printed.strip_prefix(' ').unwrap_or(printed));
            self.printed.push('\n');
            return Ok(());
        }
        // Comments follow each other on one line; `://` is none.
        for directive in line.split("// ").skip(1) {
            let Some((word, rest)) = directive.split_once(':') else { continue };
            let rest = rest.trim();
            match word {
                "test" => {
                    for word in rest.split_whitespace() {
                        self.tests.push(test(word)?);
                    }
                }
                "chip" => self.profile = Profile::Chip(chip(rest)?),
                "target" => self.targets.push(target(rest)?),
                "blob" => {
                    let (path, data) = rest.split_once(" = fp16 ").ok_or("write `// blob: path = fp16 [numbers]`")?;
                    let mut cursor = Cursor::new(data);
                    let Numbers(values) = cursor.numbers()?;
                    cursor.end()?;
                    let data: Vec<u8> = values.iter().flat_map(|&x| half::f16::from_f32(x).to_le_bytes()).collect();
                    let writer = self.files.entry(path.to_string()).or_default();
                    writer.push(BlobType::F16, values.len() as u64, &data).map_err(|e| e.to_string())?;
                }
                "error" | "warning" => {
                    let severity = if word == "error" { Severity::Error } else { Severity::Warning };
                    let (code, message) = rest.split_once(':').unwrap_or((rest, ""));
                    self.expected.push(Expected { line: number, severity, code: code.trim().into(), message: message.trim().into() });
                }
                "run" => self.runs.push(run(number, rest)?),
                _ => {}
            }
        }
        Ok(())
    }
}

fn test(word: &str) -> Result<Test, String> {
    Ok(match word {
        "parse" => Test::Parse,
        "verify" => Test::Verify,
        "print" => Test::Print,
        "run" => Test::Run,
        _ => return Err(format!("`{word}` is none of parse, verify, print, run")),
    })
}

fn chip(word: &str) -> Result<Chip, String> {
    let index = word.strip_prefix('m').and_then(|n| n.parse::<usize>().ok()).and_then(|n| n.checked_sub(1));
    index.and_then(|i| Chip::ALL.get(i).copied()).ok_or_else(|| format!("`{word}` is none of m1 to m5"))
}

/// The arithmetics but for the fast one, by the words of targets.
const ARITHMETICS: [(&str, Arithmetic); 3] =
    [("wide", Arithmetic::Fidelity(Mac::Wide)), ("grid", Arithmetic::Fidelity(Mac::Grid)), ("exact", Arithmetic::Exact)];

fn target(words: &str) -> Result<Target, String> {
    let refuse = || format!("`{words}` is no target: ane, or emulator, maybe m1 to m5, maybe wide, grid or exact");
    let mut words = words.split_whitespace().peekable();
    match words.next() {
        Some("ane") if words.peek().is_none() => Ok(Target::Ane),
        Some("emulator") => {
            let chip = words.next_if(|w| w.starts_with('m')).map(chip).transpose()?;
            let arithmetic = match words.next() {
                None => Arithmetic::Fast,
                Some(word) => ARITHMETICS.iter().find(|(w, _)| *w == word).ok_or_else(refuse)?.1,
            };
            if words.next().is_some() { Err(refuse()) } else { Ok(Target::Emulator(chip, arithmetic)) }
        }
        _ => Err(refuse()),
    }
}

fn run(line: usize, text: &str) -> Result<Run, String> {
    let mut run = Run { line, inputs: Vec::new(), outputs: Vec::new() };
    let mut cursor = Cursor::new(text);
    loop {
        let name = cursor.word()?.to_string();
        let sign = cursor.sign()?;
        let Numbers(values) = cursor.numbers()?;
        match sign {
            "=" => run.inputs.push((name, values)),
            "==" => run.outputs.push(Output { name, values, tolerance: None }),
            _ => {
                let tolerance = cursor.tolerance()?;
                run.outputs.push(Output { name, values, tolerance: Some(tolerance) });
            }
        }
        if !cursor.comma() {
            cursor.end()?;
            break;
        }
    }
    if run.outputs.is_empty() {
        return Err("a run expects nothing: write `y == […]` or `y ~ […] tol=…`".into());
    }
    Ok(run)
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target::Emulator(chip, arithmetic) = self else { return f.write_str("ane") };
        f.write_str("emulator")?;
        if let Some(i) = Chip::ALL.iter().position(|c| Some(*c) == *chip) {
            write!(f, " m{}", i + 1)?;
        }
        match ARITHMETICS.iter().find(|(_, a)| a == arithmetic) {
            Some((word, _)) => write!(f, " {word}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn runs_and_targets_are_read() {
        let text =
            "// test: run\n// target: emulator m1 grid\n// target: ane\n// run: a = [1, -2.5] * 2, y == [inf, nan], z ~ [1] tol=1e-2";
        let file = File::read(text).unwrap();
        assert_eq!(file.targets, [Target::Emulator(Some(Chip::H13), Arithmetic::Fidelity(Mac::Grid)), Target::Ane]);
        assert_eq!(file.targets[0].to_string(), "emulator m1 grid");
        let run = &file.runs[0];
        assert_eq!(run.inputs, [("a".to_string(), vec![1.0, -2.5, 1.0, -2.5])]);
        assert!(run.outputs[0].values[1].is_nan() && run.outputs[0].tolerance.is_none());
        assert_eq!((run.outputs[1].values.as_slice(), run.outputs[1].tolerance), (&[1.0][..], Some(0.01)));
    }

    #[test]
    fn what_is_not_understood_is_said_with_its_line() {
        for (text, message) in [
            ("", "no `// test:` header"),
            ("// test: compile", "line 1: `compile` is none of"),
            ("// test: run", "`// test: run` goes with"),
            ("// test: parse\n// run: x = [1], y == [1]", "`// test: run` goes with"),
            ("// test: print // error: syntax", "go with `// test: parse`"),
            ("// test: run\n// chip: m6", "line 2: `m6` is none of m1 to m5"),
            ("// test: run\n// target: emulator m1 slow", "`emulator m1 slow` is no target"),
            ("// test: run\n// run: x = [1]", "line 2: a run expects nothing"),
            ("// test: run\n// run: y ~ [1]", "`tol=` and a number is expected"),
            ("// test: run\n// run: y == [1, two]", "`two` is no number"),
            ("// test: run\n// run: y == [1] z", "the end of the line is expected"),
            ("// test: verify\n// blob: @model_path/w.bin", "write `// blob: path"),
        ] {
            let said = File::read(text).unwrap_err();
            assert!(said.contains(message), "{text:?}: {said}");
        }
    }
}
