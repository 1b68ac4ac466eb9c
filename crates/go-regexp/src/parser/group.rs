//! Groups with a question mark: named captures, flags, groups that capture nothing.

use super::{Flags, Parser, Rest, check_utf8, next_rune};
use crate::error::{Error, Problem};

impl<'a> Parser<'a> {
    /// Reads `(?P<name>`, `(?<name>`, `(?flags)`, `(?flags:` or `(?:`.
    pub(super) fn special_group(&mut self, text: &'a [u8]) -> Rest<'a> {
        let name_start = match text {
            [_, _, b'P', b'<', _, ..] => 4,
            [_, _, b'<', _, ..] => 3,
            _ => return self.flags(text),
        };
        let Some(end) = text.iter().position(|&b| b == b'>') else {
            check_utf8(text)?;
            return Err(Error::new(Problem::InvalidNamedCapture, text));
        };
        let name = &text[name_start..end];
        check_utf8(name)?;
        let is_valid = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        if name.is_empty() || !name.iter().all(is_valid) {
            return Err(Error::new(Problem::InvalidNamedCapture, &text[..=end]));
        }
        self.open_capture(name.to_vec());
        Ok(&text[end + 1..])
    }

    fn flags(&mut self, text: &'a [u8]) -> Rest<'a> {
        let mut rest = &text[2..];
        let mut flags = self.flags;
        let mut on = true;
        let mut saw_flag = false;
        while !rest.is_empty() {
            let c;
            (c, rest) = next_rune(rest)?;
            match u8::try_from(c) {
                Ok(flag @ (b'i' | b'm' | b's' | b'U')) => {
                    set(&mut flags, flag, on);
                    saw_flag = true;
                }
                Ok(b'-') if on => {
                    on = false;
                    saw_flag = false;
                }
                Ok(end @ (b':' | b')')) if on || saw_flag => {
                    if end == b':' {
                        self.stack.open(None, self.flags);
                    }
                    self.flags = flags;
                    return Ok(rest);
                }
                _ => break,
            }
        }
        let read = &text[..text.len() - rest.len()];
        Err(Error::new(Problem::InvalidPerlOp, read))
    }
}

fn set(flags: &mut Flags, flag: u8, on: bool) {
    match flag {
        b'i' => flags.fold_case = on,
        b'm' => flags.multi_line = on,
        b's' => flags.dot_matches_newline = on,
        _ => flags.non_greedy = on,
    }
}
