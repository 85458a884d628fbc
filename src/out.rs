//! Results on stdout. `println!` panics when its reader has gone; a reader that has read enough is no failure.

use std::fmt::Display;
use std::io::{ErrorKind, Result, Write};

/// Writes a line.
pub(crate) fn line(text: impl Display) -> Result<()> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(e) if is_closed(&e) => Ok(()),
        done => done,
    }
}

/// Whether `error` says that nobody reads any more.
pub(crate) fn is_closed(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::BrokenPipe
}
