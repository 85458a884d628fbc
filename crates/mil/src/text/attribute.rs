//! Attributes of functions: types and values that nest.

use super::lexer::Kind;
use super::number;
use super::parser::{Parser, Stop};
use crate::ir::{Attribute, AttributeType, AttributeValue};

/// Deepest nesting that is read; `FlexibleShapeInformation` takes six levels.
const MAX_DEPTH: usize = 32;

impl Parser<'_> {
    /// `name = type(value)`
    pub(super) fn attribute(&mut self) -> Result<Attribute, Stop> {
        let name = self.expect_word("the name of an attribute")?;
        self.expect(b'=', "`=` and a value")?;
        let ty = self.attribute_type(0)?;
        self.expect(b'(', "`(` and the value")?;
        let value = self.attribute_value(0)?;
        self.expect(b')', "`)` after the value")?;
        Ok(Attribute { name: self.text_of(name).into(), ty, value })
    }

    fn attribute_type(&mut self, depth: usize) -> Result<AttributeType, Stop> {
        self.nested(depth)?;
        let word = self.peek();
        match self.text_of(word) {
            "dict" => {
                self.advance();
                self.expect(b'<', "`<` and the type of keys")?;
                let key = self.attribute_type(depth + 1)?;
                self.expect(b',', "`,` and the type of values")?;
                let value = self.attribute_type(depth + 1)?;
                self.expect(b'>', "`>` after the type")?;
                Ok(AttributeType::Dict(Box::new([key, value])))
            }
            "list" => {
                self.advance();
                self.expect(b'<', "`<` and the type of elements")?;
                let element = self.attribute_type(depth + 1)?;
                self.expect(b',', "`,` and the length")?;
                let length = self.length()?;
                self.expect(b'>', "`>` after the type")?;
                Ok(AttributeType::List(Box::new(element), length))
            }
            "tuple" => {
                self.advance();
                self.expect(b'<', "`<` and types")?;
                Ok(AttributeType::Tuple(self.list(b'>', |p| p.attribute_type(depth + 1))?))
            }
            _ => self.ty().map(AttributeType::Tensor),
        }
    }

    fn attribute_value(&mut self, depth: usize) -> Result<AttributeValue, Stop> {
        self.nested(depth)?;
        let token = self.advance();
        let text = self.text_of(token);
        match (token.kind, text) {
            (Kind::Text, _) => self.string_of(token).map(AttributeValue::Text),
            (Kind::Word, "true" | "false") => Ok(AttributeValue::Bool(text == "true")),
            (Kind::Mark(b'['), _) => Ok(AttributeValue::List(self.list(b']', |p| p.attribute_value(depth + 1))?)),
            (Kind::Mark(b'('), _) => Ok(AttributeValue::Tuple(self.list(b')', |p| p.attribute_value(depth + 1))?)),
            (Kind::Mark(b'{'), _) => {
                let pairs = self.list(b'}', |p| {
                    p.expect(b'{', "`{` and a pair")?;
                    let key = p.attribute_value(depth + 1)?;
                    p.expect(b',', "`,` and the value")?;
                    let value = p.attribute_value(depth + 1)?;
                    p.expect(b'}', "`}` after the pair")?;
                    Ok([key, value])
                })?;
                Ok(AttributeValue::Dict(pairs))
            }
            (Kind::Number | Kind::Word, _) => match (text.parse(), number::float(text)) {
                (Ok(n), _) => Ok(AttributeValue::Int(n)),
                (_, Some(x)) => Ok(AttributeValue::Float(x)),
                _ => Err(self.unexpected(token, "a value")),
            },
            _ => Err(self.unexpected(token, "a value")),
        }
    }

    fn nested(&mut self, depth: usize) -> Result<(), Stop> {
        if depth < MAX_DEPTH {
            return Ok(());
        }
        let span = self.peek().span;
        Err(self.fail(span, "syntax", format!("this is nested more than {MAX_DEPTH} deep"), "MIL nests a few levels only"))
    }
}
