//! Escapes: assertions, quoted text, classes, and characters by their code.

use regex_syntax::hir::{ClassUnicode, Look};

use super::{Parser, Rest, check_utf8, next_rune};
use crate::error::{Error, Problem};
use crate::node::Kind;
use crate::unicode;

impl<'a> Parser<'a> {
    /// Reads an escape outside of brackets.
    pub(super) fn escaped(&mut self, text: &'a [u8]) -> Rest<'a> {
        let look = match text.get(1) {
            Some(b'A') => Look::Start,
            Some(b'z') => Look::End,
            Some(b'b') => Look::WordAscii,
            Some(b'B') => Look::WordAsciiNegate,
            Some(b'C') => return Err(Error::new(Problem::InvalidEscape, &text[..2])),
            Some(b'Q') => return self.quoted(&text[2..]),
            _ => return self.class_or_character(text),
        };
        self.push(Kind::Look(look))?;
        Ok(&text[2..])
    }

    fn class_or_character(&mut self, text: &'a [u8]) -> Rest<'a> {
        if let Some((class, rest)) = self.class_escape(text)? {
            self.push(Kind::Class(class))?;
            return Ok(rest);
        }
        let (c, rest) = character_escape(text)?;
        self.push_literal(c)?;
        Ok(rest)
    }

    /// Reads `\Q...\E`, in which all is meant literally; the end may be missing.
    fn quoted(&mut self, text: &'a [u8]) -> Rest<'a> {
        let end = text.windows(2).position(|pair| pair == br"\E");
        let (mut quoted, rest) = match end {
            Some(end) => (&text[..end], &text[end + 2..]),
            None => (text, &text[text.len()..]),
        };
        while !quoted.is_empty() {
            let c;
            (c, quoted) = next_rune(quoted)?;
            self.push_literal(c)?;
        }
        Ok(rest)
    }

    /// Reads `\pN`, `\p{Name}`, `\d`, `\s`, `\w` and what they exclude; None when it is another escape.
    pub(super) fn class_escape(&self, text: &'a [u8]) -> Result<Option<(ClassUnicode, &'a [u8])>, Error> {
        let Some(&letter) = text.get(1).filter(|_| text[0] == b'\\') else {
            return Ok(None);
        };
        if letter.eq_ignore_ascii_case(&b'p') {
            return self.unicode_escape(text).map(Some);
        }
        let Some(class) = unicode::perl_class(letter.to_ascii_lowercase()) else {
            return Ok(None);
        };
        let class = self.folded(class, letter.is_ascii_uppercase());
        Ok(Some((class, &text[2..])))
    }

    /// Folds case where the flag says so, then negates.
    pub(super) fn folded(&self, mut class: ClassUnicode, negated: bool) -> ClassUnicode {
        if self.flags.fold_case {
            unicode::fold_case(&mut class);
        }
        if negated {
            class.negate();
        }
        class
    }

    fn unicode_escape(&self, text: &'a [u8]) -> Result<(ClassUnicode, &'a [u8]), Error> {
        let (first, after_first) = next_rune(&text[2..])?;
        let (written, name) = if first == u32::from(b'{') {
            let Some(end) = text.iter().position(|&b| b == b'}') else {
                check_utf8(text)?;
                return Err(Error::new(Problem::InvalidCharRange, text));
            };
            let name = &text[3..end];
            check_utf8(name)?;
            (&text[..=end], name)
        } else {
            let written = &text[..text.len() - after_first.len()];
            (written, &written[2..])
        };
        let (name, inverted) = match name.strip_prefix(b"^") {
            Some(name) => (name, true),
            None => (name, false),
        };
        let class = unicode::named_class(name);
        let class = class.ok_or_else(|| Error::new(Problem::InvalidCharRange, written))?;
        let negated = inverted != (text[1] == b'P');
        Ok((self.folded(class, negated), &text[written.len()..]))
    }
}

/// Reads an escape that stands for one character.
pub(super) fn character_escape(text: &[u8]) -> Result<(u32, &[u8]), Error> {
    let after_backslash = &text[1..];
    if after_backslash.is_empty() {
        return Err(Error::new(Problem::TrailingBackslash, b""));
    }
    let (c, rest) = next_rune(after_backslash)?;
    let is_octal = |text: &[u8]| matches!(text.first(), Some(b'0'..=b'7'));
    let letter = u8::try_from(c).ok().filter(u8::is_ascii);
    let invalid = |rest: &[u8]| {
        Err(Error::new(
            Problem::InvalidEscape,
            &text[..text.len() - rest.len()],
        ))
    };
    match letter {
        // A single digit would refer back to a group, which RE2 cannot.
        Some(b'1'..=b'7') if !is_octal(rest) => invalid(rest),
        Some(b'0'..=b'7') => Ok(octal(after_backslash)),
        Some(b'x') => match hexadecimal(rest)? {
            Ok(read) => Ok(read),
            Err(rest) => invalid(rest),
        },
        Some(b'a') => Ok((7, rest)),
        Some(b'f') => Ok((12, rest)),
        Some(b'n') => Ok((10, rest)),
        Some(b'r') => Ok((13, rest)),
        Some(b't') => Ok((9, rest)),
        Some(b'v') => Ok((11, rest)),
        Some(mark) if !mark.is_ascii_alphanumeric() => Ok((c, rest)),
        _ => invalid(rest),
    }
}

/// Up to three octal digits.
fn octal(digits: &[u8]) -> (u32, &[u8]) {
    let is_octal = |b: &&u8| matches!(b, b'0'..=b'7');
    let length = digits.iter().take(3).take_while(is_octal).count();
    let (digits, rest) = digits.split_at(length);
    let value = digits
        .iter()
        .fold(0, |value, digit| value * 8 + u32::from(digit - b'0'));
    (value, rest)
}

/// Reads the digits after `\x`. The inner error is the text after the part that was read.
#[allow(clippy::type_complexity)]
fn hexadecimal(text: &[u8]) -> Result<Result<(u32, &[u8]), &[u8]>, Error> {
    if text.is_empty() {
        return Ok(Err(text));
    }
    let (first, mut rest) = next_rune(text)?;
    if first != u32::from(b'{') {
        let (second, rest) = next_rune(rest)?;
        let value = hex_digit(first).zip(hex_digit(second)).map(|(x, y)| x * 16 + y);
        return Ok(value.map(|value| (value, rest)).ok_or(rest));
    }
    let mut value = None;
    while !rest.is_empty() {
        let c;
        (c, rest) = next_rune(rest)?;
        if c == u32::from(b'}') {
            return Ok(value.map(|value| (value, rest)).ok_or(rest));
        }
        let longer = hex_digit(c).map(|digit| value.unwrap_or(0) * 16 + digit);
        value = longer.filter(|&value| value <= u32::from(char::MAX));
        if value.is_none() {
            return Ok(Err(rest));
        }
    }
    Ok(Err(rest))
}

fn hex_digit(c: u32) -> Option<u32> {
    char::from_u32(c)?.to_digit(16)
}
