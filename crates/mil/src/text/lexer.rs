//! Text into tokens.

use crate::ir::Span;

/// What a token is; its text is what its span covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or a word of the language.
    Word,
    /// A number as written, sign included; also `-inf`.
    Number,
    /// A string in quotes.
    Text,
    /// One of `( ) [ ] { } < > , ; = ?`.
    Mark(u8),
    /// `->`
    Arrow,
    /// What cannot be a token, and why.
    Bad(&'static str),
    /// The end of the text.
    End,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Span,
    /// Where the blanks and comments before the token begin: the end of the token before.
    pub(super) trivia: usize,
}

/// Tokens one by one, so that a parser holds no more than it looks at. Blanks and `//` comments are trivia: they belong to
/// the token behind them.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    pub(super) fn next(&mut self) -> Token {
        let trivia = self.at;
        self.skip();
        let start = self.at;
        let bytes = self.text.as_bytes();
        let rest = &bytes[start..];
        let (kind, length) = match *rest {
            [] => (Kind::End, 0),
            [b'-', b'>', ..] => (Kind::Arrow, 2),
            [b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'<' | b'>' | b',' | b';' | b'=' | b'?', ..] => (Kind::Mark(rest[0]), 1),
            [b'"', ..] => string(rest),
            [b'0'..=b'9', ..] | [b'-', b'0'..=b'9' | b'i', ..] => (Kind::Number, number(rest)),
            [c, ..] if is_word(c) => (Kind::Word, rest.iter().take_while(|c| is_word(**c)).count()),
            _ => {
                let length = self.text[start..].chars().next().map_or(1, char::len_utf8);
                (Kind::Bad("this character has no meaning in MIL"), length)
            }
        };
        self.at = start + length;
        Token { kind, span: Span { start, end: self.at }, trivia }
    }

    fn skip(&mut self) {
        let bytes = self.text.as_bytes();
        loop {
            match &bytes[self.at..] {
                [b' ' | b'\t' | b'\n' | b'\r', ..] => self.at += 1,
                [b'/', b'/', rest @ ..] => self.at += 2 + rest.iter().take_while(|b| **b != b'\n').count(),
                _ => return,
            }
        }
    }
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_'
}

/// Up to the closing quote; a backslash hides the next byte.
fn string(rest: &[u8]) -> (Kind, usize) {
    let mut at = 1;
    while let Some(&c) = rest.get(at) {
        match c {
            b'"' => return (Kind::Text, at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    (Kind::Bad("this string has no closing quote"), rest.len())
}

/// Letters, digits and dots, and a sign after the exponent's letter.
fn number(rest: &[u8]) -> usize {
    let digits = rest.strip_prefix(b"-").unwrap_or(rest);
    let hex = digits.starts_with(b"0x") || digits.starts_with(b"0X");
    let mut at = rest.len() - digits.len();
    while let Some(&c) = rest.get(at) {
        let exponent = matches!(rest[at.saturating_sub(1)], b'p' | b'P') || (!hex && matches!(rest[at.saturating_sub(1)], b'e' | b'E'));
        if !(is_word(c) || c == b'.' || (matches!(c, b'+' | b'-') && exponent && at > 0)) {
            break;
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<(Kind, &str)> {
        let mut lexer = Lexer::new(text);
        std::iter::from_fn(|| {
            let token = lexer.next();
            (token.kind != Kind::End).then(|| (token.kind, &text[token.span.start..token.span.end]))
        })
        .collect()
    }

    #[test]
    fn numbers_words_strings_and_marks() {
        use Kind::{Arrow, Mark, Number, Text, Word};
        assert_eq!(
            tokens("x0=-0x1.8p-3,1e-5 -inf->\"a\\\"b\"?// c\n0x1e"),
            [
                (Word, "x0"),
                (Mark(b'='), "="),
                (Number, "-0x1.8p-3"),
                (Mark(b','), ","),
                (Number, "1e-5"),
                (Number, "-inf"),
                (Arrow, "->"),
                (Text, "\"a\\\"b\""),
                (Mark(b'?'), "?"),
                (Number, "0x1e"),
            ]
        );
    }

    #[test]
    fn what_is_no_token_is_said_and_passed() {
        assert!(matches!(tokens("a § \"b")[..], [(Kind::Word, "a"), (Kind::Bad(_), "§"), (Kind::Bad(_), "\"b")]));
        assert!(matches!(tokens("\"\\")[..], [(Kind::Bad(_), "\"\\")]));
    }
}
