//! Scalars in single and double quotes.

use super::line_fold::{Breaks, Folded};
use super::token::{Token, TokenKind};
use super::{Result, Scanner};
use crate::yaml::node::Style;

impl<'a> Scanner<'a> {
    pub(super) fn scan_quoted(&mut self, quote: u8) -> Result<Token<'a>> {
        let line = self.cursor.line;
        let from = self.cursor.at;
        let style = if quote == b'\'' {
            Style::SingleQuoted
        } else {
            Style::DoubleQuoted
        };
        self.cursor.skip(1);
        let mut value = Folded::default();
        loop {
            if self.cursor.is_at_document_indicator() {
                return Err(self.failure(line, "found unexpected document indicator"));
            }
            if self.cursor.is_at_end() {
                return Err(self.failure(line, "found unexpected end of stream"));
            }
            let escaped_break = self.take_quoted_words(quote, &mut value, line)?;
            if self.cursor.peek(0) == quote {
                break;
            }
            self.take_quoted_blanks(&mut value, escaped_break);
        }
        self.cursor.skip(1);
        self.cursor.note_scalar(from..self.cursor.at);
        Ok(Token {
            kind: TokenKind::Scalar(value.finish(), style),
            line,
        })
    }

    /// Takes text up to a blank, a line break or the closing quote; tells whether it ended in an escaped line break.
    fn take_quoted_words(&mut self, quote: u8, value: &mut Folded<'a>, start: u32) -> Result<bool> {
        loop {
            let length = self.quoted_length(quote);
            if length > 0 {
                let from = self.cursor.at;
                self.cursor.skip_characters(length);
                value.push(&self.cursor.text[from..self.cursor.at]);
            }
            match self.cursor.peek(0) {
                b'\'' if quote == b'\'' && self.cursor.peek(1) == b'\'' => {
                    value.whole().push('\'');
                    self.cursor.skip(2);
                }
                b'\\' if quote == b'"' && self.cursor.is_break(1) => {
                    self.cursor.skip(1);
                    self.cursor.take_break();
                    return Ok(true);
                }
                b'\\' if quote == b'"' => {
                    let character = self.take_escape(start)?;
                    value.whole().push(character);
                }
                _ => return Ok(false),
            }
        }
    }

    /// Tells how far the text goes without anything special; blanks inside a line are not special.
    fn quoted_length(&self, quote: u8) -> usize {
        let rest = self.cursor.rest();
        let mut length = 0;
        let mut end = 0;
        while let Some(&byte) = rest.get(length) {
            let stopped = match byte {
                b' ' | b'\t' => {
                    length += 1;
                    continue;
                }
                b'\n' | b'\r' => return end,
                b'\\' => quote == b'"',
                0xc2 | 0xe2 => {
                    if self.cursor.is_break(length) {
                        return end;
                    }
                    false
                }
                byte => byte == quote,
            };
            if stopped {
                // Blanks before a quote or an escape belong to the text.
                return length;
            }
            length += 1;
            end = length;
        }
        end
    }

    /// Takes blanks and line breaks, and appends what they mean.
    fn take_quoted_blanks(&mut self, value: &mut Folded<'a>, escaped_break: bool) {
        let from = self.cursor.at;
        let mut blanks_end = from;
        let mut breaks = Breaks::default();
        loop {
            if self.cursor.is_blank(0) {
                self.cursor.skip(1);
                if breaks.is_empty() {
                    blanks_end = self.cursor.at;
                }
            } else if self.cursor.is_break(0) {
                // Behind an escaped break there is no first break to fold: all of them are kept.
                let line_break = self.cursor.take_break();
                if escaped_break {
                    value.whole().push_str(line_break);
                } else {
                    breaks.push(line_break);
                }
            } else {
                break;
            }
        }
        if escaped_break {
            return;
        }
        if breaks.is_empty() {
            value.push(&self.cursor.text[from..blanks_end]);
        } else {
            breaks.fold_into(value.whole());
        }
    }

    fn take_escape(&mut self, start: u32) -> Result<char> {
        let character = match self.cursor.peek(1) {
            b'0' => '\0',
            b'a' => '\u{7}',
            b'b' => '\u{8}',
            b't' | b'\t' => '\t',
            b'n' => '\n',
            b'v' => '\u{b}',
            b'f' => '\u{c}',
            b'r' => '\r',
            b'e' => '\u{1b}',
            b' ' => ' ',
            b'"' => '"',
            b'\'' => '\'',
            b'\\' => '\\',
            b'N' => '\u{85}',
            b'_' => '\u{a0}',
            b'L' => '\u{2028}',
            b'P' => '\u{2029}',
            b'x' => return self.take_code(2, start),
            b'u' => return self.take_code(4, start),
            b'U' => return self.take_code(8, start),
            _ => return Err(self.failure(start, "found unknown escape character")),
        };
        self.cursor.skip(2);
        Ok(character)
    }

    fn take_code(&mut self, digits: usize, start: u32) -> Result<char> {
        self.cursor.skip(2);
        let mut value = 0u32;
        for ahead in 0..digits {
            let digit = char::from(self.cursor.peek(ahead)).to_digit(16);
            let digit =
                digit.ok_or_else(|| self.failure(start, "did not find expected hexdecimal number"))?;
            value = value << 4 | digit;
        }
        let character = char::from_u32(value)
            .ok_or_else(|| self.failure(start, "found invalid Unicode character escape code"))?;
        self.cursor.skip(digits);
        Ok(character)
    }
}
