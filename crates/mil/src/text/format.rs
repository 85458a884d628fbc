//! A text laid out anew: one statement a line, its comments kept.

use super::lexer::{Kind, Lexer, Token};
use super::parser::parse;
use crate::diagnostic::Diagnostics;

/// The text laid out as [`print`](crate::print) lays programs out: blanks are normalized, everything else stays as it is
/// written, down to the form of numbers. Comments stay with what they stand at; of several blank lines one is left.
///
/// # Errors
/// What [`parse`](crate::parse) says of a text that it does not read.
pub fn fmt(text: &str) -> Result<String, Diagnostics> {
    parse(text)?;
    let mut lexer = Lexer::new(text);
    let mut layout = Layout { text, out: String::with_capacity(text.len()), depth: 0, inside: 0, last: None, fresh: true };
    loop {
        let token = lexer.next();
        layout.trivia(&text[token.trivia..token.span.start], token);
        if token.kind == Kind::End {
            layout.end_line();
            return Ok(layout.out);
        }
        layout.token(token);
    }
}

struct Layout<'a> {
    text: &'a str,
    out: String,
    /// Blocks that are open: the program's and the function's.
    depth: usize,
    /// Parentheses, brackets, angles and the braces of dictionaries that are open.
    inside: usize,
    /// The token before.
    last: Option<Token>,
    /// The line is empty so far.
    fresh: bool,
}

impl Layout<'_> {
    fn end_line(&mut self) {
        if !self.fresh {
            self.out.push('\n');
            self.fresh = true;
        }
    }

    /// Starts the line, if nothing stands on it: deeper by a level inside a statement.
    fn start_line(&mut self, closing: bool) {
        if self.fresh {
            let statement =
                self.last.is_some_and(|t| !matches!(t.kind, Kind::Mark(b';' | b'{' | b'}'))) && self.depth > 0 || self.inside > 0;
            let levels = if closing { self.depth - self.depth.min(1) } else { self.depth + usize::from(statement) };
            (0..levels).for_each(|_| self.out.push_str("    "));
            self.fresh = false;
        }
    }

    /// Blank lines and comments before a token.
    fn trivia(&mut self, trivia: &str, next: Token) {
        let says_something = trivia.contains("//") || (self.fresh && trivia.contains('\n'));
        if !says_something {
            return;
        }
        let closing = self.inside == 0 && next.kind == Kind::Mark(b'}');
        let (mut lines, mut blank) = (trivia.split('\n').enumerate().peekable(), false);
        while let Some((i, line)) = lines.next() {
            let line = line.trim();
            if line.is_empty() {
                // The first piece ends the line before, the last one begins the token's own.
                blank |= i > 0 && lines.peek().is_some() && self.fresh;
                continue;
            }
            if i == 0 && self.last.is_some() {
                // A comment behind a token stays on its line.
                if self.fresh {
                    self.out.pop();
                }
                self.out.push(' ');
            } else {
                self.end_line();
                self.blank_line(blank);
                self.start_line(false);
            }
            blank = false;
            self.out.push_str(line);
            self.fresh = false;
            self.end_line();
        }
        if self.fresh && !closing && next.kind != Kind::End {
            self.blank_line(blank);
        }
    }

    /// None at the beginning of the text or of a block.
    fn blank_line(&mut self, wanted: bool) {
        if wanted && !self.out.is_empty() && !self.out.ends_with("{\n") && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn token(&mut self, token: Token) {
        let block = self.inside == 0;
        match token.kind {
            // The program's own block, and its attributes, stand at the head of a line.
            Kind::Mark(b'{' | b'[') if block && self.depth == 0 => self.end_line(),
            Kind::Mark(b'}') if block => self.end_line(),
            _ => {}
        }
        let closing = block && token.kind == Kind::Mark(b'}');
        if self.fresh {
            self.start_line(closing);
        } else if self.spaced(token) {
            self.out.push(' ');
        }
        self.out.push_str(&self.text[token.span.start..token.span.end]);
        match token.kind {
            Kind::Mark(b'{') if block => self.depth += 1,
            Kind::Mark(b'}') if block => self.depth -= self.depth.min(1),
            Kind::Mark(b'(' | b'[' | b'{' | b'<') => self.inside += 1,
            Kind::Mark(b')' | b']' | b'}' | b'>') => self.inside -= self.inside.min(1),
            _ => {}
        }
        self.last = Some(token);
        if self.inside == 0 && matches!(token.kind, Kind::Mark(b'{' | b';')) {
            self.end_line();
        }
    }

    /// Whether a blank stands between the token before and this one.
    fn spaced(&self, token: Token) -> bool {
        let Some(last) = self.last else { return false };
        let word = |t: Token| matches!(t.kind, Kind::Word | Kind::Number | Kind::Text);
        match (last.kind, token.kind) {
            (Kind::Mark(b',' | b'='), _) | (Kind::Arrow, _) | (_, Kind::Mark(b'=') | Kind::Arrow) => true,
            (Kind::Mark(b'>'), _) if word(token) => true,
            (_, Kind::Mark(b'{')) => self.inside == 0,
            // The attributes of a function stand behind its parameters; those of an op close up.
            (Kind::Mark(b')'), Kind::Mark(b'[')) => self.depth == 1,
            _ => word(last) && word(token),
        }
    }
}
