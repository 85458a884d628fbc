//! Decoding token by token: what generation prints as it goes.

use super::{Kind, Tokenizer, TokenizerError, llama2c};

/// Tokens that may wait for the rest of a character where only whole texts can be decoded. A model that emits bytes that never become
/// UTF-8 must not hold the output back for ever.
const LONGEST_WAIT: usize = 32;

/// Turns tokens into text one at a time. A character split over several tokens appears with its last one. All the pieces joined are
/// what [`Tokenizer::decode`] gives for all the tokens.
pub struct Decoder<'a> {
    tokenizer: &'a Tokenizer,
    state: State,
}

enum State {
    /// Every token is some bytes: llama2.c's kind and byte-level BPE. `bytes` are the start of a character.
    Bytes { previous: u32, bytes: Vec<u8> },
    /// Other kinds are decoded a few tokens at a time; `ids[..shown]` is text given out already, kept for the next ones' sake.
    Window { ids: Vec<u32>, shown: usize },
}

impl<'a> Decoder<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer) -> Self {
        let state = match &tokenizer.0 {
            Kind::Hf(hf) if !hf.is_bytewise() => State::Window { ids: Vec::new(), shown: 0 },
            _ => State::Bytes { previous: llama2c::BOS, bytes: Vec::new() },
        };
        Self { tokenizer, state }
    }

    /// Takes one token; gives the text that is complete with it, often nothing or one word.
    pub fn push(&mut self, id: u32) -> Result<String, TokenizerError> {
        match (&mut self.state, &self.tokenizer.0) {
            (State::Bytes { previous, bytes }, Kind::Llama2c(llama)) => {
                bytes.extend_from_slice(llama.piece(*previous, id));
                *previous = id;
                Ok(take_utf8(bytes))
            }
            (State::Bytes { bytes, .. }, Kind::Hf(hf)) => {
                bytes.extend(hf.bytes(id));
                Ok(take_utf8(bytes))
            }
            (State::Window { ids, shown }, _) => {
                ids.push(id);
                let after = self.tokenizer.decode(ids)?;
                if after.ends_with('\u{FFFD}') && ids.len() - *shown < LONGEST_WAIT {
                    return Ok(String::new());
                }
                let new = new_text(self.tokenizer, ids, *shown, &after)?;
                if !new.is_empty() {
                    ids.drain(..*shown);
                    *shown = ids.len();
                }
                Ok(new)
            }
        }
    }

    /// Gives what is still held back, with U+FFFD for a character that never became complete.
    pub fn finish(self) -> Result<String, TokenizerError> {
        match self.state {
            State::Bytes { bytes, .. } => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            State::Window { ids, shown } => new_text(self.tokenizer, &ids, shown, &self.tokenizer.decode(&ids)?),
        }
    }
}

/// What `after`, the text of all of `ids`, adds to the text of the first `shown`.
fn new_text(tokenizer: &Tokenizer, ids: &[u32], shown: usize, after: &str) -> Result<String, TokenizerError> {
    let before = tokenizer.decode(&ids[..shown])?;
    Ok(after.strip_prefix(before.as_str()).unwrap_or_default().to_owned())
}

/// Takes the complete characters off the front of `bytes`, U+FFFD for what can be none, and leaves an unfinished one.
fn take_utf8(bytes: &mut Vec<u8>) -> String {
    let mut text = String::new();
    let mut rest = bytes.as_slice();
    loop {
        match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                rest = &[];
                break;
            }
            Err(e) => {
                text.push_str(&String::from_utf8_lossy(&rest[..e.valid_up_to()]));
                rest = &rest[e.valid_up_to()..];
                match e.error_len() {
                    Some(bad) => {
                        text.push(char::REPLACEMENT_CHARACTER);
                        rest = &rest[bad..];
                    }
                    None => break,
                }
            }
        }
    }
    *bytes = rest.to_vec();
    text
}
