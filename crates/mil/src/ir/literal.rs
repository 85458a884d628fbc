//! Values of constants.

use super::{DType, Type};
use half::f16;

/// A constant's value as written or computed.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// Numbers or booleans of a scalar or tensor, row-major.
    Ints(Type, Vec<i64>),
    /// Floating-point numbers (`fp16`, `fp32`, …), row-major; each is exactly a value of the type.
    Floats(Type, Vec<f64>),
    /// A string.
    Text(String),
    /// A tensor of strings, row-major.
    Texts(Type, Vec<String>),
    /// A value in a weight file.
    Blob {
        /// Its type.
        ty: Type,
        /// Path as written, such as `@model_path/weights/wq.bin`; the key into [`crate::Blobs`](super::Blobs).
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
            Literal::Ints(ty, _) | Literal::Floats(ty, _) | Literal::Texts(ty, _) | Literal::Blob { ty, .. } => ty.clone(),
            Literal::Text(_) => Type::scalar(DType::String),
        }
    }
}
