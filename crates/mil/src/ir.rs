//! Programs as data.

use crate::arena::{Arena, Handle};
use crate::ops::OpKind;
use half::f16;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Element types. `Display` prints MIL's own word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum DType {
    F16,
    F32,
    F64,
    BF16,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    I4,
    U1,
    U2,
    U3,
    U4,
    U6,
    Bool,
    String,
}

impl DType {
    /// Every element type with MIL's word for it.
    pub const WORDS: &'static [(DType, &'static str)] = &[
        (DType::F16, "fp16"),
        (DType::F32, "fp32"),
        (DType::F64, "fp64"),
        (DType::BF16, "bf16"),
        (DType::I8, "int8"),
        (DType::I16, "int16"),
        (DType::I32, "int32"),
        (DType::I64, "int64"),
        (DType::U8, "uint8"),
        (DType::U16, "uint16"),
        (DType::U32, "uint32"),
        (DType::U64, "uint64"),
        (DType::I4, "int4"),
        (DType::U1, "uint1"),
        (DType::U2, "uint2"),
        (DType::U3, "uint3"),
        (DType::U4, "uint4"),
        (DType::U6, "uint6"),
        (DType::Bool, "bool"),
        (DType::String, "string"),
    ];

    /// MIL's word, such as `fp16`.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(d, _)| *d == self).map_or("?", |(_, w)| w)
    }

    /// The type called `word`.
    pub fn from_word(word: &str) -> Option<DType> {
        Self::WORDS.iter().find(|(_, w)| *w == word).map(|(d, _)| *d)
    }

    /// Bits of one element; `bool` takes a byte, and a string, which is no tensor element, nothing.
    pub fn bits(self) -> u64 {
        match self {
            DType::F64 | DType::I64 | DType::U64 => 64,
            DType::F32 | DType::I32 | DType::U32 => 32,
            DType::F16 | DType::BF16 | DType::I16 | DType::U16 => 16,
            DType::I8 | DType::U8 | DType::Bool => 8,
            DType::U6 => 6,
            DType::I4 | DType::U4 => 4,
            DType::U3 => 3,
            DType::U2 => 2,
            DType::U1 => 1,
            DType::String => 0,
        }
    }

    /// Whether elements are floating-point numbers.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::F32 | DType::F64 | DType::BF16)
    }

    /// The nearest value of a floating-point type, ties to even; `x` itself for others.
    pub fn round(self, x: f64) -> f64 {
        match self {
            DType::F16 => f16::from_f64(x).to_f64(),
            DType::BF16 => half::bf16::from_f64(x).to_f64(),
            DType::F32 => f64::from(x as f32),
            _ => x,
        }
    }

    /// Whether an integer or boolean type holds `n`. `uint64` above `i64::MAX` cannot be written.
    pub fn holds(self, n: i64) -> bool {
        let signed = |bits: u32| (-(1i64 << (bits - 1))..1i64 << (bits - 1)).contains(&n);
        let unsigned = |bits: u32| (0..1i64 << bits).contains(&n);
        match self {
            DType::I4 => signed(4),
            DType::I8 => signed(8),
            DType::I16 => signed(16),
            DType::I32 => signed(32),
            DType::I64 => true,
            DType::Bool | DType::U1 => unsigned(1),
            DType::U2 => unsigned(2),
            DType::U3 => unsigned(3),
            DType::U4 => unsigned(4),
            DType::U6 => unsigned(6),
            DType::U8 => unsigned(8),
            DType::U16 => unsigned(16),
            DType::U32 => unsigned(32),
            DType::U64 => n >= 0,
            DType::F16 | DType::F32 | DType::F64 | DType::BF16 | DType::String => false,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Highest rank that the language has (ane-facts 5.1).
pub const MAX_RANK: usize = 5;

/// A tensor type. Rank 0 is a scalar. A dimension of 0 stands for `?`: MIL has no empty axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// Element type.
    pub dtype: DType,
    /// Extent of each axis, outermost first.
    pub shape: Vec<u64>,
}

impl Type {
    /// `tensor<fp16, shape>`.
    pub fn f16(shape: &[usize]) -> Type {
        Type { dtype: DType::F16, shape: shape.iter().map(|&n| n as u64).collect() }
    }

    /// A scalar.
    pub fn scalar(dtype: DType) -> Type {
        Type { dtype, shape: Vec::new() }
    }

    /// Extents as `usize`, for verified programs.
    pub fn dims(&self) -> Vec<usize> {
        self.shape.iter().map(|&n| n as usize).collect()
    }

    /// Number of elements; 1 for a scalar. Stops at `usize::MAX` on types that no verified program has.
    pub fn numel(&self) -> usize {
        self.shape.iter().fold(1, |n: usize, &d| n.saturating_mul(usize::try_from(d).unwrap_or(usize::MAX)))
    }

    /// Bytes of all elements, packed; stops at `u64::MAX`.
    pub fn bytes(&self) -> u64 {
        (self.numel() as u64).saturating_mul(self.dtype.bits()).div_ceil(8)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tensor<{}, [", self.dtype)?;
        for (i, n) in self.shape.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            if *n == 0 { write!(f, "{comma}?")? } else { write!(f, "{comma}{n}")? }
        }
        f.write_str("]>")
    }
}

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

/// A constant's value as written or computed.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// Numbers or booleans of a scalar or tensor, row-major.
    Ints(Type, Vec<i64>),
    /// Floating-point numbers (`fp16`, `fp32`, …), row-major; each is exactly a value of the type.
    Floats(Type, Vec<f64>),
    /// A string.
    Text(String),
    /// A value in a weight file.
    Blob {
        /// Its type.
        ty: Type,
        /// Path as written, such as `@model_path/weights/wq.bin`; the key into [`Blobs`].
        path: String,
        /// Offset of the blob's metadata in the file.
        offset: u64,
    },
}

impl Literal {
    /// A boolean scalar.
    pub fn bool(value: bool) -> Literal {
        Literal::Ints(Type::scalar(DType::Bool), vec![value as i64])
    }

    /// An `int32` scalar.
    pub fn int(value: i64) -> Literal {
        Literal::Ints(Type::scalar(DType::I32), vec![value])
    }

    /// An `int32` vector.
    pub fn ints(values: &[i64]) -> Literal {
        Literal::Ints(Type { dtype: DType::I32, shape: vec![values.len() as u64] }, values.to_vec())
    }

    /// An `fp16` scalar, rounded to nearest even.
    pub fn f16(value: f32) -> Literal {
        Literal::Floats(Type::scalar(DType::F16), vec![f16::from_f32(value).to_f64()])
    }

    /// The type of the value.
    pub fn ty(&self) -> Type {
        match self {
            Literal::Ints(ty, _) | Literal::Floats(ty, _) | Literal::Blob { ty, .. } => ty.clone(),
            Literal::Text(_) => Type::scalar(DType::String),
        }
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
    /// Arguments by parameter name, in the order written. `const` has none; its value is the attribute `val`.
    pub args: Vec<(String, Arg)>,
    /// Attributes in the trailing brackets, in the order written: `name`, `val`, and those of `constexpr_*`.
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
    /// `program(1.3)` is `(1, 3)`.
    pub version: (u32, u32),
    /// The `buildInfo` dictionary: pairs in the order written.
    pub build_info: Vec<(String, String)>,
    /// Procedures, in order; procedure `n` is the n-th.
    pub functions: Vec<Function>,
}

/// Weight files by the path that the program's `BLOBFILE`s name.
#[derive(Clone, Debug, Default)]
pub struct Blobs(pub BTreeMap<String, Arc<[u8]>>);

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
