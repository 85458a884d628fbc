//! The op table: one entry per op and range of opsets, and the only list of ops.
//!
//! An entry says what the op is called, what it takes (names, kinds, element types, what is optional), what it gives
//! (a rule from arguments to result types), what it costs, and which chips have a word to say about it. Parser,
//! verifier, builder, emulator and docs read it; nothing else in the workspace knows an op by name.

use crate::Handle;
use crate::ir::{Arg, DType, Function, Literal, Op, Opset, Type, Value};

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
    pub infer: Option<fn(&Call<'_>) -> Result<Vec<Type>, Reject>>,
    /// Cost from arguments and result types.
    pub cost: fn(&Call<'_>, &[Type]) -> Cost,
}

/// One parameter.
#[derive(Debug)]
pub struct Param {
    /// Name, as written before `=`.
    pub name: &'static str,
    /// Whether it takes any value, only a constant, or a list.
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
    /// As many ones (or `false`s) as the first parameter has axes.
    Ones,
    Falses,
    Text(&'static str),
}

/// What an op costs: arithmetic and bytes moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Floating-point operations; a multiply-add is two.
    pub flops: u64,
    /// Bytes read and written.
    pub bytes: u64,
}

/// Why an op's arguments do not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// The parameter at fault.
    pub param: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: &'static str,
}

/// An op with its arguments resolved: what shape rules, costs and executors look at.
///
/// Parameters are addressed by their index in [`OpDef::params`]. On a verified program every accessor that fits the
/// parameter's kind succeeds.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The function around it.
    pub function: &'a Function,
    /// The op.
    pub op: &'a Op,
    /// Its table entry.
    pub def: &'static OpDef,
}

impl<'a> Call<'a> {
    /// The op with its table entry for the function's opset.
    ///
    /// # Errors
    /// When the opset has no form of this op.
    pub fn new(function: &'a Function, op: &'a Op) -> Result<Call<'a>, Reject> {
        match op.kind.def(function.opset) {
            Some(def) => Ok(Call { function, op, def }),
            None => Err(Reject {
                param: "",
                message: format!("{} does not exist in {:?}", op.kind.name(), function.opset),
                help: "raise the function's opset",
            }),
        }
    }

    /// What was given for parameter `i`.
    pub fn arg(&self, i: usize) -> Option<&'a Arg> {
        self.op.arg(self.def.params[i].name)
    }

    /// The value given for parameter `i`, if it was a value.
    pub fn value(&self, i: usize) -> Option<Handle<Value>> {
        match self.arg(i) {
            Some(Arg::Value(v)) => Some(*v),
            _ => None,
        }
    }

    /// The values given for list parameter `i`; a single value counts as a list of one.
    pub fn list(&self, i: usize) -> &'a [Handle<Value>] {
        match self.arg(i) {
            Some(Arg::List(vs)) => vs,
            Some(Arg::Value(v)) => std::slice::from_ref(v),
            _ => &[],
        }
    }

    /// The type of what was given for parameter `i`; the type of a default where nothing was.
    ///
    /// # Errors
    /// When nothing was given and there is no default, or a list was given.
    pub fn ty(&self, i: usize) -> Result<Type, Reject> {
        match self.arg(i) {
            Some(Arg::Value(v)) => Ok(self.function.values[*v].ty.clone()),
            Some(Arg::Literal(l)) => Ok(l.ty()),
            _ => self.literal(i).map(|l| l.ty()),
        }
    }

    /// The constant given for parameter `i`, or its default.
    ///
    /// # Errors
    /// When it is no constant, or absent without default.
    pub fn literal(&self, i: usize) -> Result<Literal, Reject> {
        let param = &self.def.params[i];
        let refuse = |message: String, help| Err(Reject { param: param.name, message, help });
        match self.arg(i) {
            Some(Arg::Literal(l)) => Ok(l.clone()),
            Some(Arg::Value(v)) => match self.function.constant(*v) {
                Some(l) => Ok(l.clone()),
                None => refuse(format!("`{}` is not a constant", self.function.values[*v].name), "give a value made by `const`"),
            },
            Some(Arg::List(_)) => refuse("a tuple stands where one value is wanted".into(), "give one value"),
            None => {
                let rank = || self.ty(0).map_or(0, |t| t.shape.len());
                match param.need {
                    Need::Default(Lit::False) => Ok(Literal::bool(false)),
                    Need::Default(Lit::True) => Ok(Literal::bool(true)),
                    Need::Default(Lit::Int(n)) => Ok(Literal::int(n)),
                    Need::Default(Lit::Ones) => Ok(Literal::ints(&vec![1; rank()])),
                    Need::Default(Lit::Falses) => {
                        Ok(Literal::Ints(Type { dtype: DType::Bool, shape: vec![rank() as u64] }, vec![0; rank()]))
                    }
                    Need::Default(Lit::Text(s)) => Ok(Literal::Text(s.into())),
                    Need::Required | Need::Optional => refuse("is missing".into(), "give it"),
                }
            }
        }
    }

    /// Whether parameter `i` was given.
    pub fn has(&self, i: usize) -> bool {
        self.arg(i).is_some()
    }

    /// Integers (or booleans as 0 and 1) of constant parameter `i`.
    ///
    /// # Errors
    /// When it is not a constant of integers.
    pub fn ints(&self, i: usize) -> Result<Vec<i64>, Reject> {
        match self.literal(i)? {
            Literal::Ints(_, values) => Ok(values),
            _ => Err(Reject { param: self.def.params[i].name, message: "integers are wanted".into(), help: "give an integer constant" }),
        }
    }

    /// The one integer of constant parameter `i`.
    ///
    /// # Errors
    /// When it is not a constant of one integer.
    pub fn int(&self, i: usize) -> Result<i64, Reject> {
        match self.ints(i)?.as_slice() {
            [one] => Ok(*one),
            many => Err(Reject {
                param: self.def.params[i].name,
                message: format!("one integer is wanted, not {}", many.len()),
                help: "give a scalar",
            }),
        }
    }

    /// The boolean of constant parameter `i`.
    ///
    /// # Errors
    /// When it is not a constant boolean.
    pub fn flag(&self, i: usize) -> Result<bool, Reject> {
        Ok(self.int(i)? != 0)
    }

    /// The string of constant parameter `i`.
    ///
    /// # Errors
    /// When it is not a constant string.
    pub fn text(&self, i: usize) -> Result<String, Reject> {
        match self.literal(i)? {
            Literal::Text(s) => Ok(s),
            _ => Err(Reject { param: self.def.params[i].name, message: "a string is wanted".into(), help: "give a string constant" }),
        }
    }
}

impl OpKind {
    /// MIL's name.
    pub fn name(self) -> &'static str {
        OPS[self as usize].1[0].name
    }

    /// The op called `name`.
    pub fn from_name(name: &str) -> Option<OpKind> {
        OPS.iter().find(|(_, defs)| defs[0].name == name).map(|(kind, _)| *kind)
    }

    /// The form that `opset` has of this op.
    pub fn def(self, opset: Opset) -> Option<&'static OpDef> {
        OPS[self as usize].1.iter().copied().find(|d| d.opsets.0 <= opset && opset <= d.opsets.1)
    }
}

/// The only list of ops: a kind without an entry, or an executor's `match` without an arm, does not compile.
macro_rules! ops { ($($kind:ident = [$($def:path),+]),* $(,)?) => {
    /// Every op of the table.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(u16)]
    #[allow(missing_docs)]
    pub enum OpKind { $($kind),* }
    /// Every op with its forms, oldest opset first.
    pub static OPS: &[(OpKind, &[&OpDef])] = &[$((OpKind::$kind, &[$(&$def),+])),*];
} }

ops! {
    Const = [constant::CONST],
    Matmul = [matmul::MATMUL],
}

mod constant;
mod matmul;

impl Cost {
    /// The bytes of all arguments and results, and no arithmetic.
    pub fn moves(call: &Call<'_>, results: &[Type]) -> Cost {
        let size = |t: &Type| t.numel() as u64 * 2;
        let args = (0..call.def.params.len()).filter(|&i| call.def.params[i].kind == Kind::Tensor).filter_map(|i| call.ty(i).ok());
        Cost { flops: 0, bytes: args.map(|t| size(&t)).sum::<u64>() + results.iter().map(size).sum::<u64>() }
    }
}

/// The shape that `a` and `b` broadcast to, if they do: axes aligned at the last, each equal or 1.
pub fn broadcast(a: &[u64], b: &[u64]) -> Option<Vec<u64>> {
    let rank = a.len().max(b.len());
    let axis = |s: &[u64], i: usize| if i + s.len() < rank { 1 } else { s[i + s.len() - rank] };
    (0..rank)
        .map(|i| match (axis(a, i), axis(b, i)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}
