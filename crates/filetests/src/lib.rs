//! Filetests: `.mil` files that say in comments what is expected of them.
//!
//! A file begins with header lines, each a comment. What is expected of a line stands in comments behind it or, for a whole
//! program, on lines of their own:
//!
//! ```text
//! // test: verify              one or several of parse, verify, print, run
//! // chip: m1                  verify with the rules of this chip; without it, those of the language
//! // target: emulator m4       run here; several lines, run on each; without one, `emulator`
//! // blob: @model_path/w.bin = fp16 [1, 2]      a weight file, a blob for each such line; `* n` repeats a list
//! … x = sigmod(x = x); // error: unknown-op: no op `sigmod`
//! … y = add(x = x, y = z); // warning: dead-result
//! // run: x = [1, 2] * 32, y ~ [0.5, 2] * 32 tol=0.01
//! // run: x = [nan, -1] * 32, y == [inf, 0] * 32
//! ```
//!
//! * `parse`: every error and nothing else is expected, each on its line: its code and, behind another colon, part of its message.
//! * `verify`: the same, of parser and verifier, and warnings too.
//! * `print`: what `print` makes of the program stands behind the program, each line behind `//| `; printed and parsed again it is
//!   the same program. With `ANNEAL_BLESS=1` the lines are rewritten.
//! * `run`: for each `run` line, inputs are given with `=` and outputs expected with `==` (equal values, no zero told from another) or
//!   with `~` (within `tol`, relative above 1 and absolute below).
//!
//! Targets: `emulator` takes any program of the language; `emulator m1` to `emulator m5` hold it to the rules of the chip; a further word
//! names an arithmetic other than the fast one (`wide`, `grid`, `exact`); `ane` is the chip itself. The caller of [`run_file`] has the devices; what it lacks is skipped and counted. `run` files are made by
//! `oracle/filetests.py`, which computes what they expect with numpy.
#![forbid(unsafe_code)]

mod diagnostics;
mod directives;
mod exec;
mod list;

pub use directives::{File, Target, Test};

use ane::Device;
use std::path::Path;
use std::sync::Arc;

/// How a file went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Expectations that were met: diagnostics, printed programs, runs on a target.
    pub met: usize,
    /// Runs left out for want of the target.
    pub skipped: usize,
}

/// Gives the device of a target, if there is one here.
pub type Devices<'a> = &'a dyn Fn(&Target) -> Option<Arc<dyn Device>>;

/// Runs one file; with `bless`, expectations of `print` are rewritten instead of compared.
///
/// # Errors
/// The first expectation that was not met, or what is wrong with the file.
pub fn run_file(path: &Path, devices: Devices<'_>, bless: bool) -> Result<Outcome, String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let file = File::read(&text)?;
    let mut outcome = Outcome::default();
    for test in &file.tests {
        match test {
            Test::Parse => outcome.met += diagnostics::parse(&file)?,
            Test::Verify => outcome.met += diagnostics::verify(&file)?,
            Test::Print => outcome.met += print(&file, path, bless)?,
            Test::Run => {
                for target in &file.targets {
                    match devices(target) {
                        Some(device) => outcome.met += exec::run(&file, target, &*device).map_err(|e| format!("{target}: {e}"))?,
                        None => outcome.skipped += file.runs.len(),
                    }
                }
            }
        }
    }
    Ok(outcome)
}

fn print(file: &File<'_>, path: &Path, bless: bool) -> Result<usize, String> {
    let program = mil::parse(file.text).map_err(|d| d.render("", file.text))?;
    let printed = mil::print(&program);
    let again = mil::parse(&printed).map_err(|d| format!("what was printed does not parse\n{}", d.render("", &printed)))?;
    if again != program {
        return Err("printed and parsed again it is another program".into());
    }
    if bless {
        let mut text: String = file.text.lines().filter(|l| !l.starts_with("//|")).flat_map(|l| [l, "\n"]).collect();
        for line in printed.lines() {
            text.push_str(format!("//| {line}").trim_end());
            text.push('\n');
        }
        std::fs::write(path, text).map_err(|e| e.to_string())?;
    } else if printed != file.printed {
        return Err(format!("prints as\n{printed}\ninstead of\n{}\n(ANNEAL_BLESS=1 rewrites the file)", file.printed));
    }
    Ok(1)
}
