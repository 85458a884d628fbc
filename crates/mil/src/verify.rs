//! The verifier: the only maker of [`Verified`].

use crate::ir::{Blobs, Profile, Program};

/// A program that was checked against a profile, with its weight files.
#[derive(Clone, Debug)]
pub struct Verified {
    program: Program,
    blobs: Blobs,
    profile: Profile,
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
}
