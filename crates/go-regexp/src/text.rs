//! A text that is searched: as it is when it is UTF-8, else as Go reads it.
//!
//! To Go, each byte that is not part of UTF-8 is a U+FFFD of its own. The engine gets just that, and what it finds is
//! brought back to places in the original.

use std::borrow::Cow;
use std::ops::Range;

use crate::rune;

pub(crate) struct Text<'t> {
    original: &'t [u8],
    searched: Cow<'t, str>,
    /// Where the characters U+FFFD end that were written for single bytes.
    replaced: Vec<usize>,
}

/// How much longer the replacement of a byte is than the byte.
const GROWTH: usize = '\u{FFFD}'.len_utf8() - 1;

impl<'t> Text<'t> {
    pub(crate) fn new(original: &'t [u8]) -> Self {
        if let Ok(text) = str::from_utf8(original) {
            return Self {
                original,
                searched: Cow::Borrowed(text),
                replaced: Vec::new(),
            };
        }
        let mut searched = String::with_capacity(original.len());
        let mut replaced = Vec::new();
        let mut rest = original;
        while !rest.is_empty() {
            let (c, length) = rune::decode(rest);
            searched.push(char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER));
            if (c, length) == (rune::ERROR, 1) {
                replaced.push(searched.len());
            }
            rest = &rest[length..];
        }
        Self {
            original,
            searched: Cow::Owned(searched),
            replaced,
        }
    }

    /// Returns the text that the engine searches.
    pub(crate) fn searched(&self) -> &str {
        &self.searched
    }

    /// The length of the character that starts at this place of the searched text; 0 at the end.
    pub(crate) fn width_at(&self, at: usize) -> usize {
        self.searched[at..].chars().next().map_or(0, char::len_utf8)
    }

    /// The same range of the original.
    pub(crate) fn range_of(&self, searched: Range<usize>) -> Range<usize> {
        self.place_of(searched.start)..self.place_of(searched.end)
    }

    /// The bytes of the original at a range of the searched text.
    pub(crate) fn slice(&self, searched: Range<usize>) -> &'t [u8] {
        &self.original[self.range_of(searched)]
    }

    fn place_of(&self, searched: usize) -> usize {
        let replaced_before = self.replaced.partition_point(|&end| end <= searched);
        searched - replaced_before * GROWTH
    }
}
