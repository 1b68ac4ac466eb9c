//! The characters of a TOML text, and the lines that its errors name.

use go_text::rune::{ERROR, decode};

/// Problem and its line.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) line: usize,
    pub(super) message: String,
}

/// The character that stands for the end of the text; as a character of the text it is refused.
pub(super) const END: char = '\0';

/// Reads forwards, and a few characters back.
pub(super) struct Reader<'a> {
    text: &'a [u8],
    start: usize,
    place: usize,
    /// The line that is read, from 1 on.
    pub(super) line: usize,
    widths: Vec<usize>,
    at_end: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            start: 0,
            place: 0,
            line: 1,
            widths: Vec::new(),
            at_end: false,
        }
    }

    pub(super) fn next(&mut self) -> Result<char, Problem> {
        let Some(first) = self.text.get(self.place) else {
            self.at_end = true;
            return Ok(END);
        };
        if *first == b'\n' {
            self.line += 1;
        }
        let (character, width) = decode(&self.text[self.place..]);
        if character == ERROR && width == 1 {
            return self.problem(format!("invalid UTF-8 byte: 0x{first:02x}"));
        }
        let lone_return = character == '\r' && self.text.get(self.place + 1) != Some(&b'\n');
        if lone_return || (character.is_ascii_control() && !matches!(character, '\t' | '\r' | '\n')) {
            let code = u32::from(character);
            return self.problem(format!(
                "TOML files cannot contain control characters: '0x{code:02x}'"
            ));
        }
        self.widths.push(width);
        self.place += width;
        Ok(character)
    }

    /// Goes back by a character.
    pub(super) fn back(&mut self) {
        if self.at_end {
            self.at_end = false;
            return;
        }
        self.place -= self.widths.pop().unwrap_or(0);
        if self.text.get(self.place) == Some(&b'\n') {
            self.line -= 1;
        }
    }

    pub(super) fn peek(&mut self) -> Result<char, Problem> {
        let character = self.next()?;
        self.back();
        Ok(character)
    }

    pub(super) fn accept(&mut self, wanted: char) -> Result<bool, Problem> {
        let accepted = self.next()? == wanted;
        if !accepted {
            self.back();
        }
        Ok(accepted)
    }

    /// Skips characters, and lets a token start behind them.
    pub(super) fn skip(&mut self, is_skipped: fn(char) -> bool) -> Result<(), Problem> {
        while is_skipped(self.next()?) {}
        self.back();
        self.begin();
        Ok(())
    }

    /// Skips the rest of a line that holds a comment.
    pub(super) fn skip_comment(&mut self) -> Result<(), Problem> {
        self.skip(|character| !is_break(character) && character != END)
    }

    /// Lets a token start here.
    pub(super) fn begin(&mut self) {
        self.start = self.place;
    }

    /// The token that is read.
    pub(super) fn token(&self) -> &'a [u8] {
        &self.text[self.start..self.place]
    }

    pub(super) fn token_text(&self) -> String {
        String::from_utf8_lossy(self.token()).into_owned()
    }

    /// An error here; at the end of the text it stands in the last line.
    pub(super) fn problem<T>(&self, message: impl Into<String>) -> Result<T, Problem> {
        let behind_break = self.place > 0 && self.text[self.place - 1] == b'\n';
        Err(Problem {
            line: self.line - usize::from(self.at_end && behind_break),
            message: message.into(),
        })
    }

    /// An error in the line before.
    pub(super) fn problem_above<T>(&self, message: impl Into<String>) -> Result<T, Problem> {
        Err(Problem {
            line: self.line.saturating_sub(1),
            message: message.into(),
        })
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at_end
    }
}

pub(super) fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

pub(super) fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r')
}

pub(super) fn is_blank_or_break(character: char) -> bool {
    is_blank(character) || is_break(character)
}
