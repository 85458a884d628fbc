//! Attributes of functions.

use super::Type;

/// An attribute of a function, such as `FlexibleShapeInformation`: read, kept and printed; nothing else looks at it.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its type as written.
    pub ty: AttributeType,
    /// Its value.
    pub value: AttributeValue,
}

/// The type of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeType {
    /// A tensor or scalar.
    Tensor(Type),
    /// `dict<key, value>`
    Dict(Box<[AttributeType; 2]>),
    /// `list<element, length>`; a length of 0 stands for `?`.
    List(Box<AttributeType>, u64),
    /// `tuple<…>`
    Tuple(Vec<AttributeType>),
}

/// The value of an attribute. Brackets, braces and parentheses say what it is; the type is not needed to read it.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// `true` or `false`
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Another number.
    Float(f64),
    /// A string in quotes.
    Text(String),
    /// `[a, b]`: a tensor or a list.
    List(Vec<AttributeValue>),
    /// `{{key, value}, …}`
    Dict(Vec<[AttributeValue; 2]>),
    /// `(a, b)`
    Tuple(Vec<AttributeValue>),
}
