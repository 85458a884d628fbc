//! Words of the language: what names and paths may look like.

use crate::ir::DType;

/// Words that cannot name a value: where an argument may stand, they open a type or a value of another kind.
const RESERVED: &[&str] = &["BLOBFILE", "dict", "false", "func", "inf", "list", "nan", "program", "state", "tensor", "true", "tuple"];

/// Whether `name` is an identifier: a letter or `_`, then letters, digits and `_`.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_') && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether a value may be called `name`.
pub(crate) fn is_free_name(name: &str) -> bool {
    is_identifier(name) && !RESERVED.contains(&name) && DType::from_word(name).is_none()
}

/// Whether `path` names a file under the model's directory and nothing else: `@model_path/weights/wq.bin`.
pub(crate) fn is_blob_path(path: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty() && !part.starts_with('.') && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
    };
    path.strip_prefix("@model_path/").is_some_and(|rest| rest.split('/').all(plain))
}
