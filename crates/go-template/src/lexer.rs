//! Cuts the source of a template into items, as `text/template/parse`'s lexer does.
//!
//! The parser asks for one item after the other. Comments are skipped here and trim markers have their effect here: the
//! parser sees neither. An item is a place in the source, so nothing is copied; the text of an error item is kept by the
//! lexer. Every byte is looked at a bounded number of times.

mod action;
mod item;
mod number;

pub(crate) use item::{Item, Kind};

/// Reads items from a source.
pub(crate) struct Lexer<'s> {
    source: &'s [u8],
    /// How far it has read.
    at: usize,
    /// Where the current item starts, and in which line.
    start: usize,
    start_line: u32,
    line: u32,
    is_inside_action: bool,
    open_parentheses: u32,
    delimiters: Delimiters,
    /// Whether `break` and `continue` are keywords: not where functions have these names.
    keywords: LoopKeywords,
    error: String,
}

/// What actions stand between: Go's `Delims`, of two bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delimiters {
    /// Begins an action.
    pub left: [u8; 2],
    /// Ends it.
    pub right: [u8; 2],
}

impl Default for Delimiters {
    /// `{{` and `}}`.
    fn default() -> Self {
        Self {
            left: *b"{{",
            right: *b"}}",
        }
    }
}

/// Which words of loops are keywords.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopKeywords {
    pub(crate) has_break: bool,
    pub(crate) has_continue: bool,
}

impl<'s> Lexer<'s> {
    pub(crate) fn new(source: &'s [u8], delimiters: Delimiters, keywords: LoopKeywords) -> Self {
        Self {
            source,
            at: 0,
            start: 0,
            start_line: 1,
            line: 1,
            is_inside_action: false,
            open_parentheses: 0,
            delimiters,
            keywords,
            error: String::new(),
        }
    }

    /// Returns the next item. Behind the end there are only ends; behind an error, only what follows from the source being
    /// gone.
    pub(crate) fn next_item(&mut self) -> Item {
        if self.is_inside_action {
            self.lex_action()
        } else {
            self.lex_text()
        }
    }

    /// Returns the words of the error item that was last returned.
    pub(crate) fn error(&self) -> &str {
        &self.error
    }

    /// Reads text up to an action, or the left delimiter of one.
    fn lex_text(&mut self) -> Item {
        loop {
            let Some(length) = find(self.rest(), &self.delimiters.left) else {
                self.advance(self.rest().len());
                let kind = if self.at > self.start {
                    Kind::Text
                } else {
                    Kind::EndOfSource
                };
                return self.item(kind);
            };
            let trimmed = if has_left_trim_marker(&self.rest()[length + 2..]) {
                length - trim_end(&self.rest()[..length])
            } else {
                0
            };
            self.advance(length - trimmed);
            let text = self.item(Kind::Text);
            self.skip(trimmed);
            if text.start < text.end {
                return text;
            }
            if let Some(item) = self.lex_left_delimiter() {
                return item;
            }
        }
    }

    /// Reads the left delimiter; none where a comment follows, which is skipped with its delimiters.
    fn lex_left_delimiter(&mut self) -> Option<Item> {
        let marker = if has_left_trim_marker(&self.rest()[2..]) {
            TRIM_MARKER_LENGTH
        } else {
            0
        };
        if self.rest()[2 + marker..].starts_with(b"/*") {
            self.skip(2 + marker);
            return self.lex_comment();
        }
        self.advance(2);
        let item = self.item(Kind::LeftDelimiter);
        self.is_inside_action = true;
        self.skip(marker);
        self.open_parentheses = 0;
        Some(item)
    }

    fn lex_comment(&mut self) -> Option<Item> {
        let Some(length) = find(&self.rest()[2..], b"*/") else {
            return Some(self.fail("unclosed comment"));
        };
        let behind = &self.rest()[length + 4..];
        let Some(delimiter) = RightDelimiter::at(behind, self.delimiters) else {
            return Some(self.fail("comment ends before closing delimiter"));
        };
        let trimmed = if delimiter.trims {
            trim_start(&behind[delimiter.length()..])
        } else {
            0
        };
        self.skip(length + 4 + delimiter.length() + trimmed);
        None
    }

    /// Reads the right delimiter, which is there.
    fn lex_right_delimiter(&mut self, delimiter: RightDelimiter) -> Item {
        self.skip(delimiter.length() - 2);
        self.advance(2);
        let item = self.item(Kind::RightDelimiter);
        if delimiter.trims {
            self.skip(trim_start(self.rest()));
        }
        self.is_inside_action = false;
        item
    }

    fn rest(&self) -> &'s [u8] {
        &self.source[self.at..]
    }

    /// Makes `length` bytes part of the current item.
    fn advance(&mut self, length: usize) {
        let newlines = self.rest()[..length]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        self.line += newlines as u32;
        self.at += length;
    }

    /// Leaves out what the current item has so far and `length` more bytes.
    fn skip(&mut self, length: usize) {
        self.advance(length);
        self.start = self.at;
        self.start_line = self.line;
    }

    /// Ends the current item and starts the next.
    fn item(&mut self, kind: Kind) -> Item {
        let item = Item {
            kind,
            start: self.start as u32,
            end: self.at as u32,
            line: self.start_line,
        };
        self.skip(0);
        item
    }

    /// Makes an item of an error. Go's lexer forgets the source then.
    fn fail(&mut self, error: impl Into<String>) -> Item {
        let item = Item {
            kind: Kind::Error,
            start: self.start as u32,
            end: self.start as u32,
            line: self.start_line,
        };
        self.error = error.into();
        self.source = b"";
        self.start = 0;
        self.at = 0;
        item
    }
}

/// A trim marker is a minus and a space.
const TRIM_MARKER_LENGTH: usize = 2;

/// `}}` or ` -}}`, or what stands for them.
#[derive(Clone, Copy)]
struct RightDelimiter {
    trims: bool,
}

impl RightDelimiter {
    /// Returns the delimiter that `source` starts with.
    fn at(source: &[u8], delimiters: Delimiters) -> Option<Self> {
        if source.starts_with(&delimiters.right) {
            return Some(Self { trims: false });
        }
        match source {
            [space, b'-', rest @ ..] if is_space(*space) && rest.starts_with(&delimiters.right) => {
                Some(Self { trims: true })
            }
            _ => None,
        }
    }

    fn length(self) -> usize {
        if self.trims { TRIM_MARKER_LENGTH + 2 } else { 2 }
    }
}

fn has_left_trim_marker(source: &[u8]) -> bool {
    matches!(source, [b'-', space, ..] if is_space(*space))
}

/// Returns the length of `source` without the spaces at its end.
fn trim_end(source: &[u8]) -> usize {
    source
        .iter()
        .rposition(|byte| !is_space(*byte))
        .map_or(0, |last| last + 1)
}

/// Returns how many spaces `source` starts with.
fn trim_start(source: &[u8]) -> usize {
    source
        .iter()
        .position(|byte| !is_space(*byte))
        .unwrap_or(source.len())
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn find(source: &[u8], pair: &[u8; 2]) -> Option<usize> {
    let mut at = 0;
    while let Some(first) = source[at..].iter().position(|byte| *byte == pair[0]) {
        at += first;
        if source.get(at + 1) == Some(&pair[1]) {
            return Some(at);
        }
        at += 1;
    }
    None
}
