//! The commands.

pub(crate) mod bench;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod export;
pub(crate) mod generate;
pub(crate) mod import;
pub(crate) mod mil;
pub(crate) mod train;
