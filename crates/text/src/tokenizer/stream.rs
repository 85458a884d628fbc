//! Decoding token by token: what generation prints as it goes.

use super::{Kind, Tokenizer, TokenizerError, llama2c};

/// Tokens that may wait for the rest of a character. Four bytes make one; a model that emits bytes that never become UTF-8 must not
/// hold the output back for ever.
const LONGEST_WAIT: usize = 8;

/// Turns tokens into text one at a time. A character split over several tokens appears with its last one. All the pieces joined are
/// what [`Tokenizer::decode`] gives for all the tokens, as long as the tokens' bytes are UTF-8.
pub struct Decoder<'a> {
    state: State<'a>,
}

enum State<'a> {
    /// `ids[context..shown]` is text already given out, kept because a token's text may depend on the one before it.
    Hf {
        hf: &'a super::Hf,
        ids: Vec<u32>,
        context: usize,
        shown: usize,
    },
    Llama2c {
        llama: &'a super::Llama2c,
        previous: u32,
        bytes: Vec<u8>,
    },
}

impl<'a> Decoder<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer) -> Self {
        let state = match &tokenizer.0 {
            Kind::Hf(hf) => State::Hf { hf, ids: Vec::new(), context: 0, shown: 0 },
            Kind::Llama2c(llama) => State::Llama2c { llama, previous: llama2c::BOS, bytes: Vec::new() },
        };
        Self { state }
    }

    /// Takes one token; gives the text that is complete with it, often nothing or one word.
    pub fn push(&mut self, id: u32) -> Result<String, TokenizerError> {
        match &mut self.state {
            State::Hf { ids, .. } => {
                ids.push(id);
                self.new_text(false)
            }
            State::Llama2c { llama, previous, bytes } => {
                bytes.extend_from_slice(llama.piece(*previous, id));
                *previous = id;
                Ok(take_utf8(bytes))
            }
        }
    }

    /// Gives what is still held back, with U+FFFD for a character that never became complete.
    pub fn finish(mut self) -> Result<String, TokenizerError> {
        match &mut self.state {
            State::Hf { .. } => self.new_text(true),
            State::Llama2c { bytes, .. } => Ok(String::from_utf8_lossy(bytes).into_owned()),
        }
    }

    fn new_text(&mut self, all: bool) -> Result<String, TokenizerError> {
        let State::Hf { hf, ids, context, shown } = &mut self.state else { return Ok(String::new()) };
        let before = hf.decode(&ids[*context..*shown])?;
        let after = hf.decode(&ids[*context..])?;
        let complete = !after.ends_with('\u{FFFD}') || ids.len() - *shown > LONGEST_WAIT;
        if !all && !complete {
            return Ok(String::new());
        }
        let new = after.strip_prefix(before.as_str()).unwrap_or_default().to_owned();
        if !new.is_empty() {
            ids.drain(..*shown);
            (*context, *shown) = (0, ids.len());
        }
        Ok(new)
    }
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
