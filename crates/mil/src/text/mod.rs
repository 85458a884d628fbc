//! The text form of programs.

mod attribute;
mod format;
mod lexer;
mod literal;
mod number;
mod parser;
mod print;
mod spelling;

pub use format::fmt;
pub use parser::parse;
pub use print::print;
