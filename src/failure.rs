//! Errors of the program, and the exit codes they end it with.

use std::fmt;

/// Refused before anything was computed.
pub(crate) const REFUSED: u8 = 2;
/// Failed while computing.
pub(crate) const FAILED: u8 = 1;

/// An error with its exit code.
pub(crate) struct Failure {
    /// The code.
    pub(crate) code: u8,
    error: anyhow::Error,
}

/// What a command ends with: an exit code of its own, mostly 0.
pub(crate) type Outcome = Result<u8, Failure>;

impl Failure {
    /// An error that came up while computing.
    pub(crate) fn running(error: impl Into<anyhow::Error>) -> Failure {
        Failure { code: FAILED, error: error.into() }
    }
}

/// Unless said otherwise, an error is a refusal: of flags, files or data.
impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure { code: REFUSED, error: error.into() }
    }
}

impl fmt::Display for Failure {
    /// The message with its causes. Many of our errors say their cause themselves; what was said is not said again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = String::new();
        for cause in self.error.chain().map(ToString::to_string) {
            if said.contains(&cause) {
                continue;
            }
            if !said.is_empty() {
                said.push_str(": ");
            }
            said.push_str(&cause);
        }
        f.write_str(&said)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anyhow::Context;

    #[test]
    fn causes_are_said_once() {
        let inner = std::io::Error::other("no room");
        let error = Err::<(), _>(inner).context("cannot write x: no room").context("saving").unwrap_err();
        assert_eq!(Failure::from(error).to_string(), "saving: cannot write x: no room");
    }
}
