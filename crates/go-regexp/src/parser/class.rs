//! Classes in brackets.

use regex_syntax::hir::ClassUnicode;

use super::escape::character_escape;
use super::{Parser, Rest, next_rune};
use crate::error::{Error, Problem};
use crate::node::Kind;
use crate::unicode;

impl<'a> Parser<'a> {
    pub(super) fn class(&mut self, whole: &'a [u8]) -> Rest<'a> {
        let mut class = ClassUnicode::empty();
        let text = &whole[1..];
        let negated = text.first() == Some(&b'^');
        let mut text = &text[usize::from(negated)..];
        // A closing bracket at the start is a character.
        let mut first = true;
        while first || text.first() != Some(&b']') {
            first = false;
            let part;
            (part, text) = self.class_part(text, whole)?;
            class.union(&part);
        }
        if negated {
            class.negate();
        }
        self.push(Kind::Class(class))?;
        Ok(&text[1..])
    }

    fn class_part(&self, text: &'a [u8], whole: &[u8]) -> Result<(ClassUnicode, &'a [u8]), Error> {
        if let Some(part) = self.posix_class(text)? {
            return Ok(part);
        }
        if !text.is_empty()
            && let Some(part) = self.class_escape(text)?
        {
            return Ok(part);
        }
        let (low, rest) = class_character(text, whole)?;
        let (high, rest) = match rest {
            [b'-', after @ ..] if after.first().is_some_and(|&b| b != b']') => class_character(after, whole)?,
            _ => (low, rest),
        };
        if high < low {
            let written = &text[..text.len() - rest.len()];
            return Err(Error::new(Problem::InvalidCharRange, written));
        }
        let class = self.folded(unicode::range(low, high), false);
        Ok((class, rest))
    }

    /// Reads `[:alpha:]` or `[:^alpha:]`.
    fn posix_class(&self, text: &'a [u8]) -> Result<Option<(ClassUnicode, &'a [u8])>, Error> {
        let Some(inner) = text.strip_prefix(b"[:") else {
            return Ok(None);
        };
        let Some(end) = inner.windows(2).position(|pair| pair == b":]") else {
            return Ok(None);
        };
        let (written, rest) = text.split_at(end + 4);
        let (name, negated) = match inner[..end].strip_prefix(b"^") {
            Some(name) => (name, true),
            None => (&inner[..end], false),
        };
        let class = unicode::posix_class(name);
        let class = class.ok_or_else(|| Error::new(Problem::InvalidCharRange, written))?;
        Ok(Some((self.folded(class, negated), rest)))
    }
}

fn class_character<'a>(text: &'a [u8], whole: &[u8]) -> Result<(u32, &'a [u8]), Error> {
    match text.first() {
        None => Err(Error::new(Problem::MissingBracket, whole)),
        Some(b'\\') => character_escape(text),
        Some(_) => next_rune(text),
    }
}
