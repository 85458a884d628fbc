//! Element types and tensor types.

use half::f16;
use std::fmt;

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

/// Highest rank of a constant: palettes have two axes more than what they decode to.
pub const MAX_CONSTANT_RANK: usize = MAX_RANK + 2;

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
