//! Tokens into programs: a hand-written parser that goes on after an error.
//!
//! Only the elements of a literal recurse, as deep as its type has axes, and those are bounded. After an error the parser skips to the end of the statement and goes on, so that one run finds several.

use super::lexer::{Kind, Lexer, Token};
use super::spelling::nearest;
use crate::arena::Handle;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::{Arg, DType, Def, Function, Op, Opset, Program, Span, Type, Value};
use crate::ops::{OPS, OpKind};
use std::collections::HashMap;

/// Longest text that is read: handles and spans stay far from their limits.
const MAX_TEXT: usize = 1 << 30;
/// Errors after which reading stops.
const MAX_ERRORS: usize = 50;

/// Reads the text of a program, in the dialect of `program(1.0)` or of `program(1.3)`: either may be written under either
/// version.
///
/// Only the form is checked here, and that names and ops exist; [`verify`](crate::verify()) checks the rest. Floating-point
/// numbers are rounded to their type.
///
/// # Errors
/// All errors found, with spans into `text`.
pub fn parse(text: &str) -> Result<Program, Diagnostics> {
    if text.len() > MAX_TEXT {
        let message = format!("the text has {} bytes, more than {MAX_TEXT}", text.len());
        return Err(Diagnostics(vec![Diagnostic::error("size", Span::default(), message, "put constants into weight files")]));
    }
    let mut lexer = Lexer::new(text);
    let next = lexer.next();
    let mut parser = Parser { text, lexer, next, last: Span::default(), errors: Vec::new() };
    match parser.program() {
        Ok(program) if parser.errors.is_empty() => Ok(program),
        _ => Err(Diagnostics(parser.errors)),
    }
}

/// An error was reported; whoever can go on after it takes this.
pub(super) struct Stop;

pub(super) struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    next: Token,
    /// The token before `next`.
    last: Span,
    errors: Vec<Diagnostic>,
}

/// A function in the making.
struct Body<'a> {
    function: Function,
    names: HashMap<&'a str, Handle<Value>>,
    /// A statement was lost with the names it defines: what is not found may have been there.
    lost: bool,
}

impl<'a> Parser<'a> {
    fn program(&mut self) -> Result<Program, Stop> {
        self.expect_keyword("program", "`program(1.3)`")?;
        self.expect(b'(', "`(` and the version")?;
        let version = self.advance();
        let Some(number) = self.text_of(version).split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?))) else {
            return Err(self.unexpected(version, "a version such as 1.3"));
        };
        self.expect(b')', "`)` after the version")?;
        let mut program = Program { version: number, build_info: Vec::new(), functions: Vec::new() };
        if self.take(b'[') {
            let mut info = Vec::new();
            self.list(b']', |p| {
                p.expect_keyword("buildInfo", "`buildInfo`, the only attribute of a program")?;
                p.expect(b'=', "`=`")?;
                info.extend(p.dictionary()?);
                Ok(())
            })?;
            program.build_info = info;
        }
        self.expect(b'{', "`{` and functions")?;
        while !self.take(b'}') {
            let function = self.function()?;
            program.functions.push(function);
        }
        match self.peek().kind {
            Kind::End => Ok(program),
            _ => {
                let token = self.advance();
                Err(self.unexpected(token, "the end of the text"))
            }
        }
    }

    /// `dict<string, string>({{"k", "v"}, …})`, or with `tensor<string, []>` in place of `string`.
    fn dictionary(&mut self) -> Result<Vec<(String, String)>, Stop> {
        self.expect_keyword("dict", "`dict<string, string>`")?;
        self.expect(b'<', "`<string, string>`")?;
        self.string_type()?;
        self.expect(b',', "`,`")?;
        self.string_type()?;
        self.expect(b'>', "`>`")?;
        self.expect(b'(', "`(` and pairs")?;
        self.expect(b'{', "`{` and pairs in braces")?;
        let pairs = self.list(b'}', |p| {
            p.expect(b'{', "`{` and a pair of strings")?;
            let key = p.string()?;
            p.expect(b',', "`,` and the value")?;
            let value = p.string()?;
            p.expect(b'}', "`}` after the pair")?;
            Ok((key, value))
        })?;
        self.expect(b')', "`)` after the dictionary")?;
        Ok(pairs)
    }

    fn string_type(&mut self) -> Result<(), Stop> {
        let token = self.peek();
        match self.ty()? {
            ty if ty == Type::scalar(DType::String) => Ok(()),
            _ => Err(self.unexpected(token, "`string`")),
        }
    }

    fn function(&mut self) -> Result<Function, Stop> {
        self.expect_keyword("func", "`func` or the closing `}` of the program")?;
        let name = self.expect_word("the function's name")?;
        self.expect(b'<', "`<` and the opset")?;
        let opset = self.expect_word("an opset")?;
        let Some(opset) = Opset::from_word(self.text_of(opset)) else {
            let message = format!("`{}` is no opset", self.text_of(opset));
            return Err(self.fail(opset.span, "opset", message, "one of ios15, ios16, ios17, ios18"));
        };
        self.expect(b'>', "`>` after the opset")?;
        let function = Function {
            name: self.text_of(name).into(),
            opset,
            params: Vec::new(),
            values: Default::default(),
            ops: Default::default(),
            attrs: Vec::new(),
            results: Vec::new(),
            span: name.span,
        };
        let mut body = Body { function, names: HashMap::new(), lost: false };
        self.expect(b'(', "`(` and parameters")?;
        self.list(b')', |p| {
            let state = p.text_of(p.peek()) == "state";
            let ty = if state { p.state()? } else { p.ty()? };
            let name = p.expect_word("the parameter's name")?;
            let def = Def::Param(body.function.params.len());
            let handle = body.define(p.text_of(name), ty, def, name.span);
            body.function.values[handle].state = state;
            body.function.params.push(handle);
            Ok(())
        })?;
        if self.take(b'[') {
            body.function.attrs = self.list(b']', |p| p.attribute())?;
        }
        self.expect(b'{', "`{` and statements")?;
        loop {
            if self.take(b'}') {
                break;
            }
            if self.peek().kind == Kind::End {
                let token = self.advance();
                return Err(self.unexpected(token, "a statement or the closing `}` of the function"));
            }
            if self.statement(&mut body).is_err() {
                self.skip_statement();
            }
            if self.errors.len() >= MAX_ERRORS {
                return Err(Stop);
            }
        }
        let arrow = self.advance();
        if arrow.kind != Kind::Arrow {
            return Err(self.unexpected(arrow, "`->` and the results"));
        }
        self.expect(b'(', "`(` and the results")?;
        body.function.results = self.list(b')', |p| p.reference(&body))?.into_iter().flatten().collect();
        self.expect(b';', "`;` after the results")?;
        Ok(body.function)
    }

    /// `state<tensor<fp16, [1, 64]>>`
    fn state(&mut self) -> Result<Type, Stop> {
        self.advance();
        self.expect(b'<', "`<` and the type of the state")?;
        let ty = self.ty()?;
        self.expect(b'>', "`>` after the type")?;
        Ok(ty)
    }

    /// `type name, type name = op(name = value, …)[name = literal, …];`
    fn statement(&mut self, body: &mut Body<'a>) -> Result<(), Stop> {
        // An op that gives nothing stands alone.
        let alone = !self.starts_statement() && OpKind::from_name(self.text_of(self.peek())).is_some();
        let results = if alone { Vec::new() } else { self.declarations(body)? };
        let op = if alone { self.operation(body) } else { self.expect(b'=', "`=` and an op").and_then(|_| self.operation(body)) };
        let Ok(mut op) = op else {
            // Names are defined even if the rest was not understood, so that their uses are no errors too.
            for (ty, name) in results {
                body.define(self.text_of(name), ty, Def::Op(Handle::new(0), 0), name.span);
            }
            return Err(Stop);
        };
        let handle = Handle::new(body.function.ops.len());
        for (i, (ty, name)) in results.into_iter().enumerate() {
            op.results.push(body.define(self.text_of(name), ty, Def::Op(handle, i), name.span));
        }
        body.function.ops.push(op);
        if self.peek().kind != Kind::Mark(b';') {
            let message = format!("`;` is missing after the statement, before {}", self.show(self.peek()));
            self.report(Span { start: self.last.end.saturating_sub(1), end: self.last.end }, "syntax", message, "end statements with `;`");
            return if self.starts_statement() { Ok(()) } else { Err(Stop) };
        }
        self.advance();
        Ok(())
    }

    /// `type name, type name`
    fn declarations(&mut self, body: &mut Body<'a>) -> Result<Vec<(Type, Token)>, Stop> {
        let mut results = Vec::new();
        loop {
            let declared = self.ty().and_then(|ty| Ok((ty, self.expect_word("the value's name")?)));
            let Ok(declared) = declared else {
                body.lost = true;
                return Err(Stop);
            };
            results.push(declared);
            if !self.take(b',') {
                return Ok(results);
            }
        }
    }

    /// All of a statement after its results, which the caller fills in.
    fn operation(&mut self, body: &Body<'a>) -> Result<Op, Stop> {
        let name = self.expect_word("the name of an op")?;
        let kind = OpKind::from_name(self.text_of(name));
        if kind.is_none() {
            let word = self.text_of(name);
            let near = nearest(word, OPS.iter().map(|(kind, _)| kind.name()));
            let help = near.map_or("see the op table".to_string(), |n| format!("did you mean `{n}`?"));
            self.report(name.span, "unknown-op", format!("there is no op `{word}`"), help);
        }
        self.expect(b'(', "`(` and arguments")?;
        let args = self.list(b')', |p| {
            let param = p.expect_word("the name of a parameter")?;
            p.expect(b'=', "`=` and the argument")?;
            Ok((p.text_of(param).to_string(), p.argument(body)?))
        })?;
        let span = Span { start: name.span.start, end: self.last.end };
        let mut attrs = Vec::new();
        if self.take(b'[') {
            attrs = self.list(b']', |p| {
                let name = p.expect_word("the name of an attribute")?;
                p.expect(b'=', "`=` and a literal")?;
                Ok((p.text_of(name).to_string(), p.literal()?))
            })?;
        }
        // What names nothing was reported already.
        let mut args: Vec<(String, Arg)> = args.into_iter().filter_map(|(name, arg)| arg.map(|arg| (name, arg))).collect();
        if kind.is_some_and(|kind| kind != OpKind::Const && kind.makes_constant()) {
            let (own, given): (Vec<_>, Vec<_>) = attrs.into_iter().partition(|(name, _)| name == "name");
            args.extend(given.into_iter().map(|(name, literal)| (name, Arg::Literal(literal))));
            attrs = own;
        }
        kind.map(|kind| Op { kind, args, attrs, results: Vec::new(), span }).ok_or(Stop)
    }

    /// A value, a tuple of values, or a literal. `None`: a name that was reported as undefined.
    fn argument(&mut self, body: &Body<'a>) -> Result<Option<Arg>, Stop> {
        if self.take(b'(') {
            let values = self.list(b')', |p| p.reference(body))?;
            return Ok(Some(Arg::List(values.into_iter().flatten().collect())));
        }
        if self.starts_statement() {
            return self.literal().map(|l| Some(Arg::Literal(l)));
        }
        Ok(self.reference(body)?.map(Arg::Value))
    }

    fn reference(&mut self, body: &Body<'a>) -> Result<Option<Handle<Value>>, Stop> {
        let token = self.expect_word("the name of a value")?;
        let name = self.text_of(token);
        let known = body.names.get(name).copied();
        if known.is_none() && !body.lost {
            let near = nearest(name, body.names.keys().copied());
            let help = near.map_or("values are defined before they are used".to_string(), |n| format!("did you mean `{n}`?"));
            let notes = near.map(|n| (body.function.values[body.names[n]].span, format!("`{n}` is defined here")));
            self.report(token.span, "undefined", format!("`{name}` is not defined"), help);
            if let Some(last) = self.errors.last_mut() {
                last.notes.extend(notes);
            }
        }
        Ok(known)
    }

    /// Items between commas up to the closing mark, the opening one already read.
    pub(super) fn list<T>(&mut self, close: u8, mut item: impl FnMut(&mut Self) -> Result<T, Stop>) -> Result<Vec<T>, Stop> {
        let mut items = Vec::new();
        if self.take(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.take(close) {
                return Ok(items);
            }
            self.expect(b',', &format!("`,` or `{}`", char::from(close)))?;
        }
    }

    pub(super) fn peek(&self) -> Token {
        self.next
    }

    pub(super) fn advance(&mut self) -> Token {
        let token = self.next;
        self.last = token.span;
        self.next = self.lexer.next();
        token
    }

    /// The token's text.
    pub(super) fn text_of(&self, token: Token) -> &'a str {
        &self.text[token.span.start..token.span.end]
    }

    /// Takes a mark if it is next.
    fn take(&mut self, mark: u8) -> bool {
        let there = self.next.kind == Kind::Mark(mark);
        if there {
            self.advance();
        }
        there
    }

    pub(super) fn expect(&mut self, mark: u8, wanted: &str) -> Result<Token, Stop> {
        if self.next.kind == Kind::Mark(mark) { Ok(self.advance()) } else { Err(self.unexpected(self.next, wanted)) }
    }

    pub(super) fn expect_word(&mut self, wanted: &str) -> Result<Token, Stop> {
        if self.next.kind == Kind::Word { Ok(self.advance()) } else { Err(self.unexpected(self.next, wanted)) }
    }

    fn expect_keyword(&mut self, word: &str, wanted: &str) -> Result<(), Stop> {
        if self.next.kind == Kind::Word && self.text_of(self.next) == word {
            self.advance();
            return Ok(());
        }
        Err(self.unexpected(self.next, wanted))
    }

    pub(super) fn unexpected(&mut self, token: Token, wanted: &str) -> Stop {
        match token.kind {
            Kind::Bad(why) => self.fail(token.span, "syntax", why, format!("{wanted} is expected here")),
            _ => self.fail(token.span, "syntax", format!("{wanted} is expected, not {}", self.show(token)), ""),
        }
    }

    fn show(&self, token: Token) -> String {
        let text = self.text_of(token);
        match token.kind {
            Kind::End => "the end of the text".into(),
            _ if text.len() > 40 => format!("`{}…`", text.chars().take(30).collect::<String>()),
            _ => format!("`{text}`"),
        }
    }

    pub(super) fn report(&mut self, span: Span, code: &'static str, message: impl Into<String>, help: impl Into<String>) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(Diagnostic::error(code, span, message, help));
        }
    }

    pub(super) fn fail(&mut self, span: Span, code: &'static str, message: impl Into<String>, help: impl Into<String>) -> Stop {
        self.report(span, code, message, help);
        Stop
    }

    /// Whether a type is next: that of a statement, or of a literal.
    fn starts_statement(&self) -> bool {
        let text = self.text_of(self.next);
        self.next.kind == Kind::Word && (text == "tensor" || DType::from_word(text).is_some())
    }

    /// Goes past the next `;`, or up to the end of the function.
    fn skip_statement(&mut self) {
        loop {
            match self.next.kind {
                Kind::End | Kind::Mark(b'}') => return,
                Kind::Mark(b';') => {
                    self.advance();
                    return;
                }
                _ => self.advance(),
            };
        }
    }
}

impl<'a> Body<'a> {
    fn define(&mut self, name: &'a str, ty: Type, def: Def, span: Span) -> Handle<Value> {
        let handle = self.function.values.push(Value { name: name.into(), ty, state: false, def, span });
        self.names.insert(name, handle);
        handle
    }
}
