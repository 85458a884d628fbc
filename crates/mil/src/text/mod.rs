//! The text form of programs.

mod lexer;
mod literal;
mod number;
mod parser;
mod print;

pub use parser::parse;
pub use print::print;
