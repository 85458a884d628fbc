//! Types and literals.

use super::lexer::{Kind, Token};
use super::number;
use super::parser::{Parser, Stop};
use crate::ir::{DType, Literal, Span, Type};

/// Most axes that are read; the verifier knows how many there may be.
const MAX_RANK: usize = 16;

impl Parser<'_> {
    /// `tensor<fp16, [1, 64]>`, or the element type alone for a scalar.
    pub(super) fn ty(&mut self) -> Result<Type, Stop> {
        let word = self.expect_word("a type")?;
        match self.text_of(word) {
            "tensor" => {
                self.expect(b'<', "`<` and an element type")?;
                let token = self.expect_word("an element type")?;
                let dtype = self.dtype(token)?;
                self.expect(b',', "`,` and the shape")?;
                self.expect(b'[', "`[` and the lengths of the axes")?;
                let shape = self.list(b']', |p| p.length())?;
                if shape.len() > MAX_RANK {
                    let message = format!("a type with {} axes", shape.len());
                    return Err(self.fail(token.span, "rank", message, "MIL has 5 at most"));
                }
                self.expect(b'>', "`>` after the type")?;
                Ok(Type { dtype, shape })
            }
            _ => self.dtype(word).map(Type::scalar),
        }
    }

    fn dtype(&mut self, word: Token) -> Result<DType, Stop> {
        let text = self.text_of(word);
        DType::from_word(text).ok_or_else(|| {
            let known: Vec<&str> = DType::WORDS.iter().map(|(_, w)| *w).collect();
            self.fail(word.span, "syntax", format!("`{text}` is no element type"), format!("one of {}", known.join(", ")))
        })
    }

    /// Length of an axis; `?` is 0.
    pub(super) fn length(&mut self) -> Result<u64, Stop> {
        let token = self.advance();
        match (token.kind, self.text_of(token).parse::<u64>()) {
            (Kind::Mark(b'?'), _) => Ok(0),
            (Kind::Number, Ok(n)) if n > 0 => Ok(n),
            _ => Err(self.unexpected(token, "the length of an axis, a positive number or `?`")),
        }
    }

    /// `type(payload)`.
    pub(super) fn literal(&mut self) -> Result<Literal, Stop> {
        let ty = self.ty()?;
        self.expect(b'(', "`(` and the value")?;
        let literal = match self.peek().kind {
            Kind::Word if self.text_of(self.peek()) == "BLOBFILE" => self.blob(ty)?,
            _ if ty.dtype == DType::String => {
                if ty.shape.is_empty() {
                    Literal::Text(self.string()?)
                } else {
                    let mut values = Vec::new();
                    self.numbers(&ty, &mut |p, token| {
                        values.push(p.string_of(token)?);
                        Ok(())
                    })?;
                    Literal::Texts(ty, values)
                }
            }
            _ if ty.dtype.is_float() => {
                let mut values = Vec::new();
                self.numbers(&ty, &mut |p, token| {
                    values.push(p.float(token, ty.dtype)?);
                    Ok(())
                })?;
                Literal::Floats(ty, values)
            }
            _ => {
                let mut values = Vec::new();
                self.numbers(&ty, &mut |p, token| {
                    values.push(p.int(token, ty.dtype)?);
                    Ok(())
                })?;
                Literal::Ints(ty, values)
            }
        };
        self.expect(b')', "`)` after the value")?;
        Ok(literal)
    }

    /// `BLOBFILE(path = string("…"), offset = uint64(64))`.
    fn blob(&mut self, ty: Type) -> Result<Literal, Stop> {
        let start = self.advance().span;
        self.expect(b'(', "`(` after BLOBFILE")?;
        let (mut path, mut offset) = (None, None);
        self.list(b')', |p| {
            let name = p.expect_word("`path` or `offset`")?;
            p.expect(b'=', "`=`")?;
            match (p.text_of(name), p.literal()?) {
                ("path", Literal::Text(text)) => path = Some(text),
                ("offset", Literal::Ints(ty, values)) if ty.shape.is_empty() => {
                    offset = values.first().and_then(|n| u64::try_from(*n).ok())
                }
                (other, _) => {
                    let message = format!("`{other}` of BLOBFILE is not understood");
                    return Err(p.fail(name.span, "syntax", message, "write BLOBFILE(path = string(\"…\"), offset = uint64(64))"));
                }
            }
            Ok(())
        })?;
        match (path, offset) {
            (Some(path), Some(offset)) => Ok(Literal::Blob { ty, path, offset }),
            _ => Err(self.fail(
                start,
                "syntax",
                "BLOBFILE lacks its path or offset",
                "write BLOBFILE(path = string(\"…\"), offset = uint64(64))",
            )),
        }
    }

    /// The numbers of a literal: one for a scalar, else lists nested as the type has axes, or one flat list.
    fn numbers(&mut self, ty: &Type, take: &mut dyn FnMut(&mut Self, Token) -> Result<(), Stop>) -> Result<(), Stop> {
        if ty.shape.is_empty() {
            let token = self.advance();
            return take(self, token);
        }
        let open = self.expect(b'[', "`[` and the elements")?;
        if self.peek().kind == Kind::Mark(b'[') {
            return self.rows(&ty.shape, open.span, take);
        }
        let mut count = 0;
        self.list(b']', |p| {
            count += 1;
            let token = p.advance();
            take(p, token)
        })?;
        if ty.shape.len() > 1 || ty.shape[0] != count {
            return self.counted(open.span, ty.numel() as u64, count);
        }
        Ok(())
    }

    /// Lists in a list, the outer one's bracket already read. Depth is that of the type, whatever the text says.
    fn rows(&mut self, shape: &[u64], open: Span, take: &mut dyn FnMut(&mut Self, Token) -> Result<(), Stop>) -> Result<(), Stop> {
        let mut count = 0;
        self.list(b']', |p| {
            count += 1;
            match shape {
                [_, inner @ ..] if !inner.is_empty() => {
                    let open = p.expect(b'[', "`[`: one pair of brackets for each axis")?;
                    p.rows(inner, open.span, take)
                }
                _ => {
                    let token = p.advance();
                    take(p, token)
                }
            }
        })?;
        self.counted(open, shape.first().copied().unwrap_or(0), count)
    }

    /// A list of a wrong length is an error that nothing needs to be skipped for.
    fn counted(&mut self, open: Span, wanted: u64, count: u64) -> Result<(), Stop> {
        if wanted != count && wanted != 0 {
            self.report(open, "literal", format!("this list has {count} elements, its type says {wanted}"), "write one for each");
        }
        Ok(())
    }

    pub(super) fn float(&mut self, token: Token, dtype: DType) -> Result<f64, Stop> {
        let text = self.text_of(token);
        let number = match token.kind {
            Kind::Number | Kind::Word => number::float(text),
            _ => None,
        };
        let Some(x) = number else { return Err(self.unexpected(token, "a number")) };
        let rounded = dtype.round(x);
        if rounded.is_infinite() && !text.ends_with("inf") {
            return Err(self.fail(token.span, "number", format!("{text} is too large for {dtype}"), "use a smaller number"));
        }
        Ok(rounded)
    }

    fn int(&mut self, token: Token, dtype: DType) -> Result<i64, Stop> {
        let text = self.text_of(token);
        let value = match (dtype, token.kind, text) {
            (DType::Bool, Kind::Word, "true") => 1,
            (DType::Bool, Kind::Word, "false") => 0,
            (DType::Bool, ..) => return Err(self.unexpected(token, "`true` or `false`")),
            (_, Kind::Number, _) => match text.parse::<i64>() {
                Ok(n) => n,
                Err(_) => return Err(self.fail(token.span, "number", format!("{text} is no integer of 64 bits"), "write a whole number")),
            },
            _ => return Err(self.unexpected(token, "a whole number")),
        };
        if !dtype.holds(value) {
            return Err(self.fail(
                token.span,
                "number",
                format!("{value} is out of range of {dtype}"),
                "use a value in range or a wider type",
            ));
        }
        Ok(value)
    }

    /// A string in quotes, its escapes resolved.
    pub(super) fn string(&mut self) -> Result<String, Stop> {
        let token = self.advance();
        self.string_of(token)
    }

    pub(super) fn string_of(&mut self, token: Token) -> Result<String, Stop> {
        if token.kind != Kind::Text {
            return Err(self.unexpected(token, "a string in quotes"));
        }
        let quoted = self.text_of(token);
        let mut text = String::with_capacity(quoted.len() - 2);
        let mut chars = quoted[1..quoted.len() - 1].chars();
        while let Some(c) = chars.next() {
            let resolved = match c {
                '\\' => match chars.next() {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some('r') => '\r',
                    Some(c @ ('"' | '\\')) => c,
                    _ => return Err(self.fail(token.span, "syntax", "this string has an unknown escape", "MIL has \\\" \\\\ \\n \\t \\r")),
                },
                c => c,
            };
            text.push(resolved);
        }
        Ok(text)
    }
}
