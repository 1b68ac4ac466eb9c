//! Reads what stands between the delimiters of an action.

use super::{Item, Kind, Lexer, RightDelimiter, is_space, trim_start};
use go_text::rune::{self, decode};

impl Lexer<'_> {
    /// Reads one item, which may be the right delimiter.
    pub(super) fn lex_action(&mut self) -> Item {
        if let Some(delimiter) = RightDelimiter::at(self.rest(), self.delimiters) {
            if self.open_parentheses > 0 {
                return self.fail("unclosed left paren");
            }
            return self.lex_right_delimiter(delimiter);
        }
        match *self.rest() {
            [] => self.fail("unclosed action"),
            [b' ' | b'\t' | b'\r' | b'\n', ..] => self.lex_space(),
            [b'=', ..] => self.single(Kind::Assign),
            [b':', b'=', ..] => {
                self.advance(2);
                self.item(Kind::Declare)
            }
            [b':', ..] => self.fail("expected :="),
            [b'|', ..] => self.single(Kind::Pipe),
            [b'"', ..] => self.lex_quoted(b'"', Kind::String, "unterminated quoted string"),
            [b'`', ..] => self.lex_raw_string(),
            [b'$', ..] => self.lex_field_or_variable(Kind::Variable, Kind::Variable),
            [b'\'', ..] => self.lex_quoted(b'\'', Kind::CharacterConstant, "unterminated character constant"),
            // A point behind which nothing follows is read as a number, and refused as one.
            [b'.', next, ..] if !next.is_ascii_digit() => self.lex_field_or_variable(Kind::Field, Kind::Dot),
            [b'.' | b'+' | b'-' | b'0'..=b'9', ..] => self.lex_number(),
            [b'(', ..] => {
                self.open_parentheses += 1;
                self.single(Kind::LeftParenthesis)
            }
            [b')', ..] if self.open_parentheses == 0 => self.fail("unexpected right paren"),
            [b')', ..] => {
                self.open_parentheses -= 1;
                self.single(Kind::RightParenthesis)
            }
            _ => self.lex_word_or_character(),
        }
    }

    fn single(&mut self, kind: Kind) -> Item {
        self.advance(1);
        self.item(kind)
    }

    /// Reads spaces, but not the one that belongs to a right delimiter with a trim marker.
    fn lex_space(&mut self) -> Item {
        let count = trim_start(self.rest());
        let last = RightDelimiter::at(&self.rest()[count - 1..], self.delimiters);
        match last {
            Some(delimiter) if count == 1 => return self.lex_right_delimiter(delimiter),
            Some(_) => self.advance(count - 1),
            None => self.advance(count),
        }
        self.item(Kind::Space)
    }

    fn lex_word_or_character(&mut self) -> Item {
        let (character, _) = decode(self.rest());
        if is_alphanumeric(character) {
            return self.lex_identifier();
        }
        if matches!(character, '!'..='~') {
            return self.single(Kind::Character);
        }
        self.fail(format!(
            "unrecognized character in action: {}",
            code_point(character)
        ))
    }

    fn lex_identifier(&mut self) -> Item {
        self.advance_word();
        if !self.is_at_terminator() {
            return self.fail_at_bad_character();
        }
        let word = &self.source[self.start..self.at];
        let kind = match Kind::of_word(word) {
            Some(Kind::Break) if !self.keywords.has_break => Kind::Identifier,
            Some(Kind::Continue) if !self.keywords.has_continue => Kind::Identifier,
            Some(keyword) => keyword,
            None if matches!(word, b"true" | b"false") => Kind::Bool,
            None => Kind::Identifier,
        };
        self.item(kind)
    }

    /// Reads `.name` or `$name`; `.` and `$` without a name are `bare`.
    fn lex_field_or_variable(&mut self, kind: Kind, bare: Kind) -> Item {
        self.advance(1);
        if self.is_at_terminator() {
            return self.item(bare);
        }
        self.advance_word();
        if !self.is_at_terminator() {
            return self.fail_at_bad_character();
        }
        self.item(kind)
    }

    fn advance_word(&mut self) {
        loop {
            let (character, width) = decode(self.rest());
            if width == 0 || !is_alphanumeric(character) {
                return;
            }
            self.at += width; // no newline is part of a word
        }
    }

    /// Returns whether a word may end here. A field does: `.X.Y` is two items.
    fn is_at_terminator(&self) -> bool {
        match self.rest() {
            [] => true,
            rest if rest.starts_with(&self.delimiters.right) => true,
            [next, ..] => is_space(*next) || matches!(next, b'.' | b',' | b'|' | b':' | b')' | b'('),
        }
    }

    fn fail_at_bad_character(&mut self) -> Item {
        let (character, _) = decode(self.rest());
        self.fail(format!("bad character {}", code_point(character)))
    }

    /// Reads a quoted string or character constant. The parser checks what is in it.
    fn lex_quoted(&mut self, mark: u8, kind: Kind, unterminated: &str) -> Item {
        let mut length = 1;
        loop {
            match self.rest()[length..] {
                [] | [b'\n', ..] | [b'\\'] | [b'\\', b'\n', ..] => return self.fail(unterminated),
                [b'\\', ..] => length += 2,
                [byte, ..] => {
                    length += 1;
                    if byte == mark {
                        break;
                    }
                }
            }
        }
        self.at += length; // it has no newlines
        self.item(kind)
    }

    fn lex_raw_string(&mut self) -> Item {
        let Some(length) = self.rest()[1..].iter().position(|byte| *byte == b'`') else {
            return self.fail("unterminated raw quoted string");
        };
        self.advance(length + 2);
        self.item(Kind::RawString)
    }
}

/// Returns whether a character may be part of a word.
pub(super) fn is_alphanumeric(character: char) -> bool {
    character == '_' || rune::is_letter(character) || rune::is_digit(character)
}

/// Prints a character as `%#U` does: `U+0040 '@'`.
fn code_point(character: char) -> String {
    let code = u32::from(character);
    if rune::is_printable(character) {
        format!("U+{code:04X} '{character}'")
    } else {
        format!("U+{code:04X}")
    }
}
