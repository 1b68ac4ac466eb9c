//! Plain scalars: text without quotes, over one or several lines.

use super::line_fold::{Breaks, Folded};
use super::token::{Token, TokenKind};
use super::{Result, Scanner};
use crate::yaml::node::Style;

impl<'a> Scanner<'a> {
    pub(super) fn scan_plain(&mut self) -> Result<Token<'a>> {
        let line = self.cursor.line;
        let from = self.cursor.at;
        let indent = usize::try_from(self.indent + 1).unwrap_or(0);
        let mut value = Folded::default();
        // Where the blanks behind the last piece start: they belong to the value when another piece follows in the line.
        let mut blanks_from = self.cursor.at;
        let mut breaks = Breaks::default();
        while !self.cursor.is_at_document_indicator() && self.cursor.peek(0) != b'#' {
            let length = self.plain_length();
            if length > 0 {
                let start = if breaks.is_empty() {
                    blanks_from
                } else {
                    breaks.fold_into(value.whole());
                    breaks = Breaks::default();
                    self.cursor.at
                };
                self.cursor.skip_characters(length);
                blanks_from = self.cursor.at;
                value.push(&self.cursor.text[start..blanks_from]);
            }
            if !self.cursor.is_blank(0) && !self.cursor.is_break(0) {
                break;
            }
            self.take_plain_blanks(&mut breaks, indent, line)?;
            if self.flow_level == 0 && self.cursor.column < indent {
                break;
            }
        }
        if !breaks.is_empty() {
            self.simple_key_allowed = true;
        }
        self.cursor.note_scalar(from..blanks_from);
        Ok(Token {
            kind: TokenKind::Scalar(value.finish(), Style::Plain),
            line,
        })
    }

    fn take_plain_blanks(&mut self, breaks: &mut Breaks, indent: usize, start: u32) -> Result<()> {
        loop {
            if self.cursor.is_blank(0) {
                let is_tab = self.cursor.peek(0) == b'\t';
                if is_tab && !breaks.is_empty() && self.cursor.column < indent {
                    return Err(self.failure(start, "found a tab character that violates indentation"));
                }
                self.cursor.skip(1);
            } else if self.cursor.is_break(0) {
                breaks.push(self.cursor.take_break());
            } else {
                return Ok(());
            }
        }
    }

    /// Tells how far the scalar goes without a blank.
    fn plain_length(&self) -> usize {
        let rest = self.cursor.rest();
        let stops = if self.flow_level > 0 {
            STOPS_IN_FLOW
        } else {
            STOPS_IN_BLOCK
        };
        let mut length = 0;
        while let Some(found) = rest[length..]
            .iter()
            .position(|byte| STOPS[*byte as usize] & stops != 0)
        {
            length += found;
            let stopped = match rest[length] {
                b':' => self.cursor.is_blank_or_end(length + 1),
                0xc2 | 0xe2 => self.cursor.is_break(length),
                _ => true,
            };
            if stopped {
                return length;
            }
            length += 1;
        }
        rest.len()
    }
}

const STOPS_IN_BLOCK: u8 = 1;
const STOPS_IN_FLOW: u8 = 2;

/// Bytes at which a plain scalar may end, by context.
const STOPS: [u8; 256] = {
    let mut table = [0; 256];
    let both = [b' ', b'\t', b'\n', b'\r', b':', 0xc2, 0xe2];
    let mut index = 0;
    while index < both.len() {
        table[both[index] as usize] = STOPS_IN_BLOCK | STOPS_IN_FLOW;
        index += 1;
    }
    let flow = *b",?[]{}";
    index = 0;
    while index < flow.len() {
        table[flow[index] as usize] = STOPS_IN_FLOW;
        index += 1;
    }
    table
};
