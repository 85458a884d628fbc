//! How much of a process's allowance of compiles and programs is used.

/// Compiles and programs of one device in this process, with their limits.
///
/// On the chip's compile service a process's compiles fail for good after about 119, released or not, and about 127 programs may be
/// alive at once (programs.md 4, ane-facts 6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Compiles so far, failed ones included.
    pub compiles: u32,
    /// Compiles a process has; `None` is unlimited.
    pub compile_limit: Option<u32>,
    /// Programs alive now.
    pub live: u32,
    /// Programs that may be alive at once; `None` is unlimited.
    pub live_limit: Option<u32>,
}

impl Budget {
    /// Whether `n` more compiles fit.
    pub fn allows(&self, n: u32) -> bool {
        self.compile_limit.is_none_or(|limit| self.compiles.saturating_add(n) <= limit)
    }
}
