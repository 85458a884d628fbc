//! Programs as data.

mod attribute;
mod chip;
mod literal;
mod types;

pub use attribute::{Attribute, AttributeType, AttributeValue};
pub use chip::{Chip, Profile};
pub use literal::Literal;
pub use types::{DType, MAX_CONSTANT_RANK, MAX_RANK, Type};

use crate::arena::{Arena, Handle};
use crate::ops::OpKind;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Language version of a function, `main<ios18>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Opset {
    Ios15,
    Ios16,
    Ios17,
    Ios18,
}

impl Opset {
    /// Every opset, oldest first, with MIL's word for it.
    pub const WORDS: &'static [(Opset, &'static str)] =
        &[(Opset::Ios15, "ios15"), (Opset::Ios16, "ios16"), (Opset::Ios17, "ios17"), (Opset::Ios18, "ios18")];

    /// The opset called `word`.
    pub fn from_word(word: &str) -> Option<Opset> {
        Self::WORDS.iter().find(|(_, w)| *w == word).map(|(o, _)| *o)
    }
}

impl fmt::Display for Opset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::WORDS.iter().find(|(o, _)| o == self).map_or("?", |(_, w)| w))
    }
}

/// A range of bytes of the source text; `0..0` in built programs.
#[derive(Clone, Copy, Debug, Default, Eq)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// Spans say where something was written, not what it is: programs that differ in spans alone are equal.
impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

/// What an op is given for one parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// A value of the function.
    Value(Handle<Value>),
    /// A tuple of values, `values = (a, b)`.
    List(Vec<Handle<Value>>),
    /// A literal written in place of a value. The language allows it, the chip mostly does not (ane-facts 5.1).
    Literal(Literal),
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Def {
    /// The n-th parameter of the function.
    Param(usize),
    /// A result of an op: the op and which of its results.
    Op(Handle<Op>, usize),
}

/// A value: named, typed, assigned once.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Unique in the function.
    pub name: String,
    /// Declared type.
    pub ty: Type,
    /// It is a state, `state<tensor<…>>`, which calls of the function keep: a parameter that `read_state` and `write_state` take.
    pub state: bool,
    /// Where it comes from.
    pub def: Def,
    /// Where it was declared.
    pub span: Span,
}

/// One statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Op {
    /// Which op.
    pub kind: OpKind,
    /// Arguments by parameter name, in the order written. `const` has none; its value is the attribute `val`. Arguments of
    /// `constexpr_*` ops that are written in the trailing brackets, as `program(1.0)` does, stand here too.
    pub args: Vec<(String, Arg)>,
    /// Attributes in the trailing brackets, in the order written: `name` and `val`.
    pub attrs: Vec<(String, Literal)>,
    /// Values it makes.
    pub results: Vec<Handle<Value>>,
    /// Where it was written.
    pub span: Span,
}

impl Op {
    /// The argument named `name`.
    pub fn arg(&self, name: &str) -> Option<&Arg> {
        self.args.iter().find(|(n, _)| n == name).map(|(_, a)| a)
    }

    /// The attribute named `name`.
    pub fn attr(&self, name: &str) -> Option<&Literal> {
        self.attrs.iter().find(|(n, _)| n == name).map(|(_, l)| l)
    }
}

/// One procedure of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// `main` in single-function programs.
    pub name: String,
    /// Language version.
    pub opset: Opset,
    /// Parameters, in order of declaration.
    pub params: Vec<Handle<Value>>,
    /// All values: parameters and results of ops.
    pub values: Arena<Value>,
    /// Statements in order of execution.
    pub ops: Arena<Op>,
    /// Attributes behind the parameters, in the order written.
    pub attrs: Vec<Attribute>,
    /// Values returned, in order.
    pub results: Vec<Handle<Value>>,
    /// Where it was written.
    pub span: Span,
}

impl Function {
    /// Whether `value` is known when the program is compiled: made by `const`, or by an op that decodes a constant.
    pub fn is_constant(&self, value: Handle<Value>) -> bool {
        matches!(self.values[value].def, Def::Op(op, _) if self.ops[op].kind.makes_constant())
    }

    /// The constant that `value` is, if a `const` op made it.
    pub fn constant(&self, value: Handle<Value>) -> Option<&Literal> {
        match self.values[value].def {
            Def::Op(op, 0) if self.ops[op].kind == OpKind::Const => self.ops[op].attr("val"),
            _ => None,
        }
    }
}

/// A whole program.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// `program(1.3)` is `(1, 3)`; `(1, 0)` is printed in the dialect of its own.
    pub version: (u32, u32),
    /// The `buildInfo` dictionary: pairs in the order written.
    pub build_info: Vec<(String, String)>,
    /// Procedures, in order; procedure `n` is the n-th.
    pub functions: Vec<Function>,
}

/// Weight files by the path that the program's `BLOBFILE`s name.
#[derive(Clone, Debug, Default)]
pub struct Blobs(pub BTreeMap<String, Arc<[u8]>>);
