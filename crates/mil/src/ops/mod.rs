//! The op table: one entry per op and range of opsets, and the only list of ops.
//!
//! An entry says what the op is called, what it takes (names, kinds, element types, what is optional), what it gives
//! (a rule from arguments to result types) and what it costs. Parser, verifier, builder, emulator and docs read it;
//! nothing else in the workspace knows an op by name. Entries lie in files by family.
//!
//! Names, parameters, what is optional and element types are those of coremltools for `ios18`. Earlier opsets differ
//! only in that they take fewer element types, unless an entry's range says otherwise. Parameters that coremltools lets
//! be computed, but that decide a shape (`begin`, `size`, `shape`, `reps`), must be constants here: shapes are known
//! when a program is compiled, on the chip too (ane-facts 5.2).

mod attention;
mod call;
mod constant;
mod conv;
mod cost;
mod elementwise;
mod join;
mod markdown;
mod matmul;
mod reduce;
mod shape;
mod slice;

pub use call::Call;
pub use conv::Window;
pub use cost::{Cost, program_cost};
pub use markdown::markdown;
pub use slice::Cut;

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
    Conv = [conv::CONV],
    Add = [elementwise::ADD],
    Sub = [elementwise::SUB],
    Mul = [elementwise::MUL],
    RealDiv = [elementwise::REAL_DIV],
    Maximum = [elementwise::MAXIMUM],
    Minimum = [elementwise::MINIMUM],
    Pow = [elementwise::POW],
    Sigmoid = [elementwise::SIGMOID],
    Tanh = [elementwise::TANH],
    Relu = [elementwise::RELU],
    Silu = [elementwise::SILU],
    Exp = [elementwise::EXP],
    Sqrt = [elementwise::SQRT],
    Rsqrt = [elementwise::RSQRT],
    Log = [elementwise::LOG],
    Cast = [elementwise::CAST],
    Softmax = [reduce::SOFTMAX],
    ReduceSum = [reduce::REDUCE_SUM],
    ReduceMean = [reduce::REDUCE_MEAN],
    ReduceMax = [reduce::REDUCE_MAX],
    Reshape = [shape::RESHAPE],
    Transpose = [shape::TRANSPOSE],
    ExpandDims = [shape::EXPAND_DIMS],
    Squeeze = [shape::SQUEEZE],
    SliceBySize = [slice::SLICE_BY_SIZE],
    SliceByIndex = [slice::SLICE_BY_INDEX],
    Concat = [join::CONCAT],
    Split = [join::SPLIT],
    Tile = [join::TILE],
    ScaledDotProductAttention = [attention::SCALED_DOT_PRODUCT_ATTENTION],
}

/// Checks the element types of all arguments against the table: in their domains, and equal where a letter is shared.
///
/// # Errors
/// Names the first parameter that does not fit.
pub fn check_domains(call: &Call<'_>) -> Result<(), Reject> {
    let (mut t, mut u): (Option<DType>, Option<DType>) = (None, None);
    for (i, param) in call.def.params.iter().enumerate().filter(|(i, _)| call.has(*i)) {
        let types = match param.kind {
            Kind::List => call.list(i).iter().map(|v| call.function.values[*v].ty.dtype).collect(),
            Kind::Tensor | Kind::Const => vec![call.ty(i)?.dtype],
        };
        for dtype in types {
            if !param.domain.dtypes().contains(&dtype) {
                let known: Vec<&str> = param.domain.dtypes().iter().map(|d| d.word()).collect();
                return Err(call.reject(i, format!("has elements of {dtype}, not of {}", known.join(", ")), "cast it, or use another op"));
            }
            let bound = match param.domain {
                Domain::T(_) => t.get_or_insert(dtype),
                Domain::U(_) => u.get_or_insert(dtype),
                Domain::Free(_) => continue,
            };
            if *bound != dtype {
                return Err(call.reject(i, format!("has elements of {dtype} where another argument has {bound}"), "cast one of them"));
            }
        }
    }
    Ok(())
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

/// Every opset.
const ALL: (Opset, Opset) = (Opset::Ios15, Opset::Ios18);
/// What arithmetic takes.
const NUMBERS: &[DType] = &[DType::F16, DType::F32, DType::I32];
/// What functions of real numbers take.
const FLOATS: &[DType] = &[DType::F16, DType::F32];
/// What ops that only move data take.
const MOVABLE: &[DType] = &[DType::Bool, DType::F16, DType::F32, DType::I16, DType::I32, DType::I8, DType::U16, DType::U8];
/// What older ops that only move data take.
const MOVABLE_15: &[DType] = &[DType::Bool, DType::F16, DType::F32, DType::I32];
/// What shapes and offsets are written in.
const INDICES: &[DType] = &[DType::I16, DType::I32, DType::I8];
const I32: Domain = Domain::Free(&[DType::I32]);
const BOOL: Domain = Domain::Free(&[DType::Bool]);
const STRING: Domain = Domain::Free(&[DType::String]);

const fn tensor(name: &'static str, domain: Domain) -> Param {
    Param { name, kind: Kind::Tensor, domain, need: Need::Required }
}

const fn constant(name: &'static str, domain: Domain, need: Need) -> Param {
    Param { name, kind: Kind::Const, domain, need }
}
