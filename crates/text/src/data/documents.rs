//! Texts before they are tokens: a UTF-8 file, a JSONL file, or stories of the built-in corpus.

use super::DataError;
use crate::corpus::Corpus;
use serde::Deserialize;
use std::ops::Range;
use std::path::Path;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// A list of texts and where they are from.
#[derive(Clone, Debug)]
pub struct Documents {
    texts: Vec<String>,
    source: String,
    /// Whether the texts are documents of their own, which an end token closes; a plain file is one text of unknown inner order.
    closed: bool,
}

impl Documents {
    /// Reads a file: JSONL with a `text` on each line if its name ends in `.jsonl` or `.ndjson`, else one UTF-8 text.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let bytes = super::read_file(path)?;
        let json = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("jsonl") || e.eq_ignore_ascii_case("ndjson"));
        if json { Self::from_jsonl(&file, &bytes) } else { Self::from_text(&file, bytes) }
    }

    /// One text. A byte order mark at its start is dropped; `file` is the name that errors show.
    pub fn from_text(file: &str, mut bytes: Vec<u8>) -> Result<Self, DataError> {
        let mark = if bytes.starts_with(BOM) { BOM.len() } else { 0 };
        bytes.drain(..mark);
        let text = String::from_utf8(bytes)
            .map_err(|e| DataError::NotUtf8 { file: file.to_owned(), offset: mark + e.utf8_error().valid_up_to() })?;
        Self::new(vec![text], file, false)
    }

    /// One document a line, the string under `"text"`; other keys are ignored, so are blank lines, line ends may be CRLF.
    pub fn from_jsonl(file: &str, bytes: &[u8]) -> Result<Self, DataError> {
        #[derive(Deserialize)]
        struct Line {
            text: String,
        }
        let mark = if bytes.starts_with(BOM) { BOM.len() } else { 0 };
        let mut texts = Vec::new();
        let mut offset = mark;
        for (index, line) in bytes[mark..].split(|b| *b == b'\n').enumerate() {
            let text =
                std::str::from_utf8(line).map_err(|e| DataError::NotUtf8 { file: file.to_owned(), offset: offset + e.valid_up_to() })?;
            offset += line.len() + 1;
            if text.trim_ascii().is_empty() {
                continue;
            }
            let line: Line = serde_json::from_str(text).map_err(|e| {
                // serde_json ends its message with a place of its own, counted within this one line.
                let reason = e.to_string();
                let reason = reason.split(" at line ").next().unwrap_or_default().to_owned();
                DataError::Json { file: file.to_owned(), line: index + 1, column: e.column().max(1), reason }
            })?;
            texts.push(line.text);
        }
        Self::new(texts, file, true)
    }

    /// The stories of the built-in corpus with these numbers.
    pub fn from_corpus(corpus: &Corpus, stories: Range<u64>) -> Self {
        let source = format!("the built-in corpus (seed {}, stories {} to {})", corpus.seed(), stories.start, stories.end);
        Self { texts: stories.map(|index| corpus.story(index)).collect(), source, closed: true }
    }

    fn new(texts: Vec<String>, file: &str, closed: bool) -> Result<Self, DataError> {
        if texts.iter().all(String::is_empty) {
            return Err(DataError::Empty { file: file.to_owned() });
        }
        Ok(Self { texts, source: file.to_owned(), closed })
    }

    /// The texts, for training a tokenizer on them.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Where they are from, in words.
    pub fn source(&self) -> &str {
        &self.source
    }

    pub(super) fn closed(&self) -> bool {
        self.closed
    }
}
