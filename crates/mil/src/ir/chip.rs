//! Chip generations, and what programs are checked against.

/// A chip generation. M(n) is H(n+12) (ane-facts 1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Chip {
    /// M1.
    H13,
    /// M2.
    H14,
    /// M3.
    H15,
    /// M4.
    H16,
    /// M5.
    H17,
}

impl Chip {
    /// Every generation, oldest first.
    pub const ALL: [Chip; 5] = [Chip::H13, Chip::H14, Chip::H15, Chip::H16, Chip::H17];

    /// Longest axis of any port or intermediate (ane-facts 5.3, ane-measurements 1.5).
    pub fn axis_limit(self) -> u64 {
        if self >= Chip::H16 { 65_536 } else { 16_384 }
    }
}

/// What a program was checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// MIL as the language has it.
    Language,
    /// The language and the rules of one chip.
    Chip(Chip),
}
