//! Which comment marks which scalar, as go-yaml v3 hands comments to nodes and kyaml reads them.
//!
//! A comment marks the scalar that it stands behind, in the same line; or the scalar below it, when nothing stands before
//! either of them but the dashes of a sequence. The comment above a key does not mark the key's value.

use std::collections::BTreeMap;
use std::ops::Range;

use manifest::yaml::{Comment, Style};

use crate::marker;
use crate::{Marker, Outcome};

/// Comments of a text by where they begin, until a scalar takes them.
pub(crate) struct Attached<'t> {
    text: &'t str,
    /// By the byte of their `#`.
    comments: BTreeMap<usize, Found>,
}

struct Found {
    line: u32,
    says: marker::Comment,
    taken: bool,
}

impl<'t> Attached<'t> {
    pub(crate) fn new(text: &'t str, comments: &[Comment], key: &str) -> Self {
        let mut found = BTreeMap::new();
        let mut lines = Lines::new(text);
        for comment in comments {
            let Some(start) = lines.start_of(comment.line) else {
                continue;
            };
            let line = text[start..].trim_start_matches('\u{feff}');
            let start = text.len() - line.len().min(text.len() - start);
            let at = text[start..]
                .char_indices()
                .nth(comment.column)
                .map(|(at, _)| start + at);
            if let Some(at) = at {
                found.insert(
                    at,
                    Found {
                        line: comment.line,
                        says: marker::read(&comment.text, key),
                        taken: false,
                    },
                );
            }
        }
        Self {
            text,
            comments: found,
        }
    }

    /// Takes the marker of the scalar at the place: its line, and the setter that it names.
    pub(crate) fn take(&mut self, place: &Range<usize>, style: Style) -> Option<(u32, String)> {
        let behind = self.behind(place, style);
        let at = [behind, self.above(place)].into_iter().flatten().find(|at| {
            let found = self.comments.get(at);
            found.is_some_and(|found| matches!(found.says, marker::Comment::Setter(_)))
        })?;
        let found = self.comments.get_mut(&at)?;
        found.taken = true;
        match &found.says {
            marker::Comment::Setter(name) => Some((found.line, name.clone())),
            _ => None,
        }
    }

    /// The markers that no scalar took.
    pub(crate) fn left_over(self) -> Vec<Marker> {
        let left = self.comments.into_values().filter(|found| !found.taken);
        left.filter_map(|found| {
            let (setter, problem) = match found.says {
                marker::Comment::Other => return None,
                marker::Comment::Broken => (String::new(), "the marker is not a JSON object of strings"),
                marker::Comment::Setter(name) => (
                    name,
                    "no value that can be set stands before the marker: it belongs behind a scalar, in the same line",
                ),
            };
            Some(Marker {
                line: found.line,
                setter,
                outcome: Outcome::Misplaced(problem),
            })
        })
        .collect()
    }

    /// Where a comment begins behind the scalar, in its last line; behind the first line of a block.
    fn behind(&self, place: &Range<usize>, style: Style) -> Option<usize> {
        let from = match style {
            Style::Literal | Style::Folded => {
                let header = self.text[place.start..].find([' ', '\t', '\n', '\r'])?;
                place.start + header
            }
            _ => place.end,
        };
        let rest = &self.text[from..];
        let trimmed = rest.trim_start_matches([' ', '\t']);
        let trimmed = trimmed
            .strip_prefix(',')
            .map_or(trimmed, |rest| rest.trim_start_matches([' ', '\t']));
        let at = from + (rest.len() - trimmed.len());
        self.comments.contains_key(&at).then_some(at)
    }

    /// Where a comment stands alone in the line above, if the scalar is the first of its own line.
    fn above(&self, place: &Range<usize>) -> Option<usize> {
        let start = self.text[..place.start].rfind(['\n', '\r']).map(|at| at + 1)?;
        if !begins_a_line(&self.text[start..place.start]) {
            return None;
        }
        let (at, line_start) = self.alone_above(start)?;
        // Of several comment lines kyaml reads all as one text, which is no marker.
        match self.alone_above(line_start) {
            Some(_) => None,
            None => Some(at),
        }
    }

    /// The comment that stands alone in the line before this one, and where that line begins.
    fn alone_above(&self, start: usize) -> Option<(usize, usize)> {
        let before = self.text[..start]
            .strip_suffix(['\n', '\r'])
            .map(|text| text.trim_end_matches('\r'))?;
        let line_start = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
        let hash = before[line_start..].find('#').map(|at| line_start + at)?;
        let alone = begins_a_line(&before[line_start..hash]) && self.comments.contains_key(&hash);
        alone.then_some((hash, line_start))
    }
}

/// Returns whether nothing stands there but blanks, dashes of a sequence, and an anchor or a tag.
fn begins_a_line(text: &str) -> bool {
    text.split_whitespace()
        .all(|word| word == "-" || word.starts_with('&') || word.starts_with('!'))
}

/// Where lines begin, found in their order.
struct Lines<'t> {
    text: &'t str,
    line: u32,
    at: usize,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, line: 1, at: 0 }
    }

    /// Where the line begins, in bytes; lines are counted from 1 and asked for in their order.
    fn start_of(&mut self, line: u32) -> Option<usize> {
        while self.line < line {
            let bytes = self.text.as_bytes();
            let rest = &self.text[self.at..];
            let found = rest.find(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'])?;
            let length = rest[found..].chars().next().map_or(1, char::len_utf8);
            let pair = bytes[self.at + found] == b'\r' && bytes.get(self.at + found + 1) == Some(&b'\n');
            self.at += found + length + usize::from(pair);
            self.line += 1;
        }
        Some(self.at)
    }
}
