//! What an entry of the table is.

use super::{Call, Cost};
use crate::ir::{DType, Opset, Type};

/// One op in a range of opsets.
#[derive(Debug)]
pub struct OpDef {
    /// MIL's name.
    pub name: &'static str,
    /// One line: what it computes.
    pub doc: &'static str,
    /// First and last opset of this form.
    pub opsets: (Opset, Opset),
    /// Parameters; the position is the index that [`Call`]'s accessors take.
    pub params: &'static [Param],
    /// Result types from arguments. `None`: the declared type is trusted.
    pub infer: Option<Infer>,
    /// Cost from arguments and result types.
    pub cost: fn(&Call<'_>, &[Type]) -> Cost,
}

/// A type rule: result types from a call's arguments.
pub type Infer = fn(&Call<'_>) -> Result<Vec<Type>, Reject>;

/// One parameter.
#[derive(Debug)]
pub struct Param {
    /// Name, as written before `=`.
    pub name: &'static str,
    /// Whether it takes any value, one that decides the shape, only a constant, or a list.
    pub kind: Kind,
    /// Element types.
    pub domain: Domain,
    /// Whether it may be left out.
    pub need: Need,
}

/// What may stand for a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any value.
    Tensor,
    /// Any value; a constant lets the shape of the result be worked out.
    Size,
    /// A value known when the program is compiled.
    Const,
    /// A tuple of values.
    List,
}

/// Element types of a parameter. Parameters with the same letter must agree.
#[derive(Clone, Copy, Debug)]
pub enum Domain {
    /// One of these, the same for all `T` of the op.
    T(&'static [DType]),
    /// One of these, the same for all `U` of the op.
    U(&'static [DType]),
    /// One of these.
    Free(&'static [DType]),
}

impl Domain {
    /// The element types, whatever the letter.
    pub fn dtypes(self) -> &'static [DType] {
        match self {
            Domain::T(list) | Domain::U(list) | Domain::Free(list) => list,
        }
    }
}

/// Whether a parameter may be left out, and what then.
#[derive(Clone, Copy, Debug)]
pub enum Need {
    /// Must be given.
    Required,
    /// May be absent.
    Optional,
    /// Absent means this.
    Default(Lit),
}

/// A default value.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Lit {
    False,
    True,
    Int(i64),
    /// A scalar of the first parameter's element type, rounded to it.
    Float(f64),
    /// As many ones (or `false`s) as the first parameter has axes.
    Ones,
    Falses,
    Text(&'static str),
}

/// Why an op's arguments do not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// The parameter at fault; empty when it is the op as a whole.
    pub param: &'static str,
    /// What is wrong, as a predicate of the parameter: "has rank 1".
    pub message: String,
    /// What to do.
    pub help: &'static str,
}

pub(super) const fn op(
    name: &'static str,
    doc: &'static str,
    opsets: (Opset, Opset),
    params: &'static [Param],
    infer: Option<Infer>,
    cost: fn(&Call<'_>, &[Type]) -> Cost,
) -> OpDef {
    OpDef { name, doc, opsets, params, infer, cost }
}

pub(super) const fn tensor(name: &'static str, domain: Domain) -> Param {
    Param { name, kind: Kind::Tensor, domain, need: Need::Required }
}

pub(super) const fn optional(name: &'static str, domain: Domain) -> Param {
    Param { name, kind: Kind::Tensor, domain, need: Need::Optional }
}

pub(super) const fn sizes(name: &'static str, domain: Domain) -> Param {
    Param { name, kind: Kind::Size, domain, need: Need::Required }
}

pub(super) const fn list(name: &'static str, domain: Domain) -> Param {
    Param { name, kind: Kind::List, domain, need: Need::Required }
}

pub(super) const fn constant(name: &'static str, domain: Domain, need: Need) -> Param {
    Param { name, kind: Kind::Const, domain, need }
}
