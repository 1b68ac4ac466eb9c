//! Literal and folded block scalars.

use std::borrow::Cow;

use super::token::{Token, TokenKind};
use super::{Result, Scanner};
use crate::yaml::node::Style;

/// Header behind `|` or `>`.
#[derive(Default)]
struct Header {
    keep: bool,
    strip: bool,
    indentation: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn scan_block(&mut self, style: Style) -> Result<Token<'a>> {
        let line = self.cursor.line;
        let from = self.cursor.at;
        self.cursor.skip(1);
        let header = self.take_block_header(line)?;
        let mut indent = match (header.indentation, usize::try_from(self.indent)) {
            (0, _) => 0,
            (more, Ok(parent)) => parent + more,
            (more, Err(_)) => more,
        };
        let mut value = String::new();
        let mut line_break = "";
        let mut empty_lines = String::new();
        self.take_empty_lines(&mut indent, &mut empty_lines, line)?;
        let mut was_indented = false;
        while self.cursor.column == indent && !self.cursor.is_at_end() {
            let is_indented = self.cursor.is_blank(0);
            let folds = style == Style::Folded && !was_indented && !is_indented && line_break == "\n";
            if !folds {
                value.push_str(line_break);
            } else if empty_lines.is_empty() {
                value.push(' ');
            }
            value.push_str(&empty_lines);
            empty_lines.clear();
            was_indented = is_indented;
            let length = self.cursor.line_length();
            value.push_str(&self.cursor.text[self.cursor.at..self.cursor.at + length]);
            self.cursor.skip_characters(length);
            line_break = self.cursor.take_break();
            self.take_empty_lines(&mut indent, &mut empty_lines, line)?;
        }
        if !header.strip {
            value.push_str(line_break);
        }
        if header.keep {
            value.push_str(&empty_lines);
        }
        self.cursor.note_scalar(from..self.cursor.at);
        Ok(Token {
            kind: TokenKind::Scalar(Cow::Owned(value), style),
            line,
        })
    }

    /// Takes the rest of the first line: chomping and indentation in either order, then a comment.
    fn take_block_header(&mut self, start: u32) -> Result<Header> {
        let mut header = Header::default();
        if self.take_chomping(&mut header) {
            self.take_indentation(&mut header, start)?;
        } else if self.take_indentation(&mut header, start)? {
            self.take_chomping(&mut header);
        }
        self.cursor.skip_blanks();
        self.cursor.skip_comment();
        if !self.cursor.is_break_or_end(0) {
            return Err(self.failure(start, "did not find expected comment or line break"));
        }
        self.cursor.take_break();
        Ok(header)
    }

    fn take_chomping(&mut self, header: &mut Header) -> bool {
        match self.cursor.peek(0) {
            b'+' => header.keep = true,
            b'-' => header.strip = true,
            _ => return false,
        }
        self.cursor.skip(1);
        true
    }

    fn take_indentation(&mut self, header: &mut Header, start: u32) -> Result<bool> {
        match self.cursor.peek(0) {
            b'0' => Err(self.failure(start, "found an indentation indicator equal to 0")),
            digit @ b'1'..=b'9' => {
                header.indentation = usize::from(digit - b'0');
                self.cursor.skip(1);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Takes indentation and empty lines; without an indentation yet, it becomes that of the deepest of these lines.
    fn take_empty_lines(&mut self, indent: &mut usize, breaks: &mut String, start: u32) -> Result<()> {
        let limit = if *indent == 0 { usize::MAX } else { *indent };
        let mut deepest = 0;
        loop {
            self.cursor.skip_spaces_to(limit);
            deepest = deepest.max(self.cursor.column);
            if self.cursor.column < limit && self.cursor.peek(0) == b'\t' {
                return Err(self.failure(
                    start,
                    "found a tab character where an indentation space is expected",
                ));
            }
            if !self.cursor.is_break(0) {
                break;
            }
            breaks.push_str(self.cursor.take_break());
        }
        if *indent == 0 {
            *indent = deepest.max(usize::try_from(self.indent + 1).unwrap_or(0)).max(1);
        }
        Ok(())
    }
}
