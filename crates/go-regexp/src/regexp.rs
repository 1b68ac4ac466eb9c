//! A compiled pattern, and what can be done with it: the methods of Go's Regexp that templates reach.

use std::ops::Range;

use regex_automata::meta;
use regex_automata::util::captures::Captures;
use regex_automata::{Input, MatchKind};

use crate::error::{Error, Problem};
use crate::parser;
use crate::template::{self, Part};
use crate::text::Text;
use crate::translate::translate;

/// Memory that a compiled pattern may take; Go allows itself 128 MiB too.
const SIZE_LIMIT: usize = 128 << 20;

/// A compiled pattern. It is shared between threads; compiling is the costly part, so callers keep what they reuse.
#[derive(Debug, Clone)]
pub struct Regexp {
    engine: meta::Regex,
    /// The names of the capturing groups from the first; empty for those without.
    names: Vec<Vec<u8>>,
    is_empty: bool,
}

impl Regexp {
    /// Reads a pattern in Go's syntax (regexp.Compile).
    pub fn compile(pattern: &[u8]) -> Result<Self, Error> {
        let parsed = parser::parse(pattern)?;
        let config = meta::Config::new()
            .match_kind(MatchKind::LeftmostFirst)
            .utf8_empty(true)
            .nfa_size_limit(Some(SIZE_LIMIT));
        let engine = meta::Builder::new()
            .configure(config)
            .build_from_hir(&translate(parsed.node))
            .map_err(|_| Error::new(Problem::Large, pattern))?;
        Ok(Self {
            engine,
            names: parsed.names,
            is_empty: pattern.is_empty(),
        })
    }

    /// The number of capturing groups.
    #[must_use]
    pub fn group_count(&self) -> usize {
        self.names.len()
    }

    /// The memory that the compiled pattern takes, in bytes.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        self.engine.memory_usage()
    }

    /// Returns whether the text has a match.
    #[must_use]
    pub fn is_match(&self, text: &[u8]) -> bool {
        let text = Text::new(text);
        self.engine.is_match(text.searched())
    }

    /// The leftmost match.
    #[must_use]
    pub fn find<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        self.find_index(text).map(|range| &text[range])
    }

    /// Where the leftmost match is.
    #[must_use]
    pub fn find_index(&self, text: &[u8]) -> Option<Range<usize>> {
        let text = Text::new(text);
        let found = self.engine.find(text.searched())?;
        Some(text.range_of(found.range()))
    }

    /// The leftmost match and those of its groups; None for a group that took no part.
    #[must_use]
    pub fn find_submatch<'t>(&self, text: &'t [u8]) -> Option<Vec<Option<&'t [u8]>>> {
        let text = Text::new(text);
        let mut captures = self.engine.create_captures();
        self.engine.captures(text.searched(), &mut captures);
        if !captures.is_match() {
            return None;
        }
        let group = |index| captures.get_group(index).map(|span| text.slice(span.into()));
        Some((0..=self.names.len()).map(group).collect())
    }

    /// Successive matches, at most `n` where it is not negative. None without any, which is Go's nil slice.
    #[must_use]
    pub fn find_all<'t>(&self, text: &'t [u8], n: i64) -> Option<Vec<&'t [u8]>> {
        let ranges = self.find_all_index(text, n)?;
        Some(ranges.into_iter().map(|range| &text[range]).collect())
    }

    /// Where successive matches are, as [`Regexp::find_all`] finds them.
    #[must_use]
    pub fn find_all_index(&self, text: &[u8], n: i64) -> Option<Vec<Range<usize>>> {
        let text = Text::new(text);
        let end = text.searched().len();
        let limit = usize::try_from(n).unwrap_or(usize::MAX);
        let mut found = Vec::new();
        let mut place = 0;
        let mut last_end = None;
        while found.len() < limit && place <= end {
            let Some(range) = self.find_from(&text, place) else {
                break;
            };
            // An empty match right behind another match does not count.
            let counts = range.end != place || last_end != Some(range.start);
            place = match range.end {
                at if at > place => at,
                at => at + text.width_at(at).max(1),
            };
            last_end = Some(range.end);
            if counts {
                found.push(text.range_of(range));
            }
        }
        (!found.is_empty()).then_some(found)
    }

    /// The text with each match replaced. In the replacement, `$1` and `${name}` are what groups matched.
    #[must_use]
    pub fn replace_all(&self, text: &[u8], replacement: &[u8]) -> Vec<u8> {
        if !replacement.contains(&b'$') {
            return self.replace_all_literal(text, replacement);
        }
        let parts = template::parts(replacement);
        let captures = self.engine.create_captures();
        self.replace_each(&Text::new(text), captures, |text, captures, replaced| {
            self.expand(&parts, text, captures, replaced);
        })
    }

    /// The template with what the groups of the leftmost match are in the text, for `$1` and `${name}`; None without a match.
    #[must_use]
    pub fn expand_match(&self, text: &[u8], template: &[u8]) -> Option<Vec<u8>> {
        let text = Text::new(text);
        let mut captures = self.engine.create_captures();
        self.engine.captures(text.searched(), &mut captures);
        let mut expanded = Vec::new();
        captures.is_match().then(|| {
            self.expand(&template::parts(template), &text, &captures, &mut expanded);
            expanded
        })
    }

    /// The text with each match replaced by just this.
    #[must_use]
    pub fn replace_all_literal(&self, text: &[u8], replacement: &[u8]) -> Vec<u8> {
        // Without places for groups the engine need not find them.
        let captures = Captures::matches(self.engine.group_info().clone());
        self.replace_each(&Text::new(text), captures, |_, _, replaced| {
            replaced.extend_from_slice(replacement);
        })
    }

    /// The parts of the text between matches, at most `n` where it is not negative, the last unsplit. None where `n` is
    /// 0, which is Go's nil slice.
    #[must_use]
    pub fn split<'t>(&self, text: &'t [u8], n: i64) -> Option<Vec<&'t [u8]>> {
        if n == 0 {
            return None;
        }
        if !self.is_empty && text.is_empty() {
            return Some(vec![text]);
        }
        let mut parts = Vec::new();
        let (mut start, mut end) = (0, 0);
        for range in self.find_all_index(text, n).unwrap_or_default() {
            if usize::try_from(n).is_ok_and(|n| parts.len() + 1 >= n) {
                break;
            }
            end = range.start;
            if range.end != 0 {
                parts.push(&text[start..end]);
            }
            start = range.end;
        }
        if end != text.len() {
            parts.push(&text[start..]);
        }
        Some(parts)
    }

    fn find_from(&self, text: &Text<'_>, place: usize) -> Option<Range<usize>> {
        let input = Input::new(text.searched()).range(place..);
        Some(self.engine.search(&input)?.range())
    }

    fn replace_each(
        &self,
        text: &Text<'_>,
        mut captures: Captures,
        mut replace: impl FnMut(&Text<'_>, &Captures, &mut Vec<u8>),
    ) -> Vec<u8> {
        let end = text.searched().len();
        let mut replaced = Vec::with_capacity(end);
        let (mut place, mut last_end) = (0, 0);
        while place <= end {
            let input = Input::new(text.searched()).range(place..);
            self.engine.search_captures(&input, &mut captures);
            let Some(found) = captures.get_match() else {
                break;
            };
            replaced.extend_from_slice(text.slice(last_end..found.start()));
            // An empty match right behind another match does not count.
            if found.end() > last_end || found.start() == 0 {
                replace(text, &captures, &mut replaced);
            }
            last_end = found.end();
            let next = place + text.width_at(place).max(1);
            place = next.max(found.end());
        }
        replaced.extend_from_slice(text.slice(last_end..end));
        replaced
    }

    fn expand(&self, parts: &[Part<'_>], text: &Text<'_>, captures: &Captures, replaced: &mut Vec<u8>) {
        for part in parts {
            let group = match part {
                Part::Text(literal) => {
                    replaced.extend_from_slice(literal);
                    continue;
                }
                Part::Number(index) => captures.get_group(*index),
                // Of several groups of one name, the first that took part.
                Part::Name(name) => (1..=self.names.len())
                    .filter(|index| self.names[index - 1] == name.as_bytes())
                    .find_map(|index| captures.get_group(index)),
            };
            replaced.extend_from_slice(group.map_or(b"", |span| text.slice(span.into())));
        }
    }
}

/// A pattern that matches just this text.
#[must_use]
pub fn quote_meta(text: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(text.len());
    for &byte in text {
        if br"\.+*?()|[]{}^$".contains(&byte) {
            quoted.push(b'\\');
        }
        quoted.push(byte);
    }
    quoted
}

#[cfg(test)]
mod tests;
