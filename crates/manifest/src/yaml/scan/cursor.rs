//! A place in the text: what stands there, and how to move on from it.

use std::ops::Range;

use super::super::node::Comment;

/// Reads a text from its start to its end; behind the end stand NUL characters, which no text may hold.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    pub(super) text: &'a str,
    /// Position in bytes.
    pub(super) at: usize,
    /// Line, counted from 0.
    pub(super) line: u32,
    /// Characters of the line that stand before the position.
    pub(super) column: usize,
    /// Line breaks since the last character that is neither blank nor a break; go-yaml v3 counts them for comments.
    pub(super) newlines: u32,
    /// What is noted of the text so far; None when no one wants it.
    pub(super) notes: Option<Box<Notes>>,
}

/// Comments and places of scalars, in the order of the text.
#[derive(Debug, Default)]
pub(in super::super) struct Notes {
    pub(in super::super) comments: Vec<Comment>,
    /// In bytes; of the scalar as written, with its quotes.
    pub(in super::super) scalars: Vec<Range<usize>>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            line: 0,
            column: 0,
            newlines: 0,
            notes: None,
        }
    }

    /// Notes that a scalar stands there.
    pub(super) fn note_scalar(&mut self, place: Range<usize>) {
        if let Some(notes) = &mut self.notes {
            notes.scalars.push(place);
        }
    }

    pub(super) fn peek(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Tells how many bytes the line break takes that stands `ahead` bytes from here; 0 when there is none.
    pub(super) fn break_length(&self, ahead: usize) -> usize {
        match self.peek(ahead) {
            b'\n' => 1,
            b'\r' => 1 + usize::from(self.peek(ahead + 1) == b'\n'),
            0xc2 if self.peek(ahead + 1) == 0x85 => 2,
            0xe2 if self.peek(ahead + 1) == 0x80 && matches!(self.peek(ahead + 2), 0xa8 | 0xa9) => 3,
            _ => 0,
        }
    }

    pub(super) fn is_break(&self, ahead: usize) -> bool {
        self.break_length(ahead) > 0
    }

    pub(super) fn is_blank(&self, ahead: usize) -> bool {
        matches!(self.peek(ahead), b' ' | b'\t')
    }

    pub(super) fn is_break_or_end(&self, ahead: usize) -> bool {
        self.peek(ahead) == 0 || self.is_break(ahead)
    }

    pub(super) fn is_blank_or_end(&self, ahead: usize) -> bool {
        self.is_blank(ahead) || self.is_break_or_end(ahead)
    }

    /// Returns whether a letter, a digit, `_` or `-` stands here.
    pub(super) fn is_word(&self) -> bool {
        matches!(self.peek(0), b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-')
    }

    /// Returns whether `---` or `...` stands here, at the start of a line and alone.
    pub(super) fn is_at_document_indicator(&self) -> bool {
        self.column == 0
            && matches!(self.rest(), [b'-', b'-', b'-', ..] | [b'.', b'.', b'.', ..])
            && self.is_blank_or_end(3)
    }

    /// Moves over ASCII characters that are no line breaks.
    pub(super) fn skip(&mut self, bytes: usize) {
        if !self.is_blank(0) {
            self.newlines = 0;
        }
        self.at += bytes;
        self.column += bytes;
    }

    /// Moves over whole characters that are no line breaks, the last of which is no blank.
    pub(super) fn skip_characters(&mut self, bytes: usize) {
        let skipped = &self.text.as_bytes()[self.at..self.at + bytes];
        // Every byte but those that continue a character.
        self.column += skipped.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        self.at += bytes;
        self.newlines = 0;
    }

    /// Moves over spaces and tabs.
    pub(super) fn skip_blanks(&mut self) {
        while self.is_blank(0) {
            self.skip(1);
        }
    }

    /// Moves to the end of the line when a comment starts here.
    pub(super) fn skip_comment(&mut self) {
        if self.peek(0) == b'#' {
            let length = self.line_length();
            if let Some(notes) = &mut self.notes {
                notes.comments.push(Comment {
                    line: self.line.saturating_add(1),
                    column: self.column,
                    text: self.text[self.at + 1..self.at + length].to_owned(),
                });
            }
            self.skip_characters(length);
        }
    }

    /// Tells how many bytes stand before the end of the line.
    pub(super) fn line_length(&self) -> usize {
        let rest = self.rest();
        let mut length = 0;
        while let Some(found) = rest[length..].iter().position(|byte| MAY_BREAK[*byte as usize]) {
            length += found;
            if self.is_break(length) {
                return length;
            }
            length += 1;
        }
        rest.len()
    }

    /// Moves over the line break that stands here, and returns what it means in a scalar.
    pub(super) fn take_break(&mut self) -> &'static str {
        let length = self.break_length(0);
        let text = match (length, self.peek(2)) {
            (0, _) => return "",
            (3, 0xa8) => "\u{2028}",
            (3, _) => "\u{2029}",
            _ => "\n",
        };
        self.at += length;
        self.column = 0;
        self.line = self.line.saturating_add(1);
        self.newlines += 1;
        text
    }

    /// Moves over spaces only, as far as `column`.
    pub(super) fn skip_spaces_to(&mut self, column: usize) {
        while self.column < column && self.peek(0) == b' ' {
            self.at += 1;
            self.column += 1;
        }
    }
}

/// Bytes that start a line break.
const MAY_BREAK: [bool; 256] = {
    let mut table = [false; 256];
    table[b'\n' as usize] = true;
    table[b'\r' as usize] = true;
    table[0xc2] = true;
    table[0xe2] = true;
    table
};
