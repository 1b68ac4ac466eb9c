//! A range such as `>=1.2, <2 || ~3.1`: read, and asked whether a version lies in it.
//!
//! What one comparison means is told in `comparison`.

use crate::comparison::{Comparison, Operator, take_operator};
use crate::error::Error;
use crate::scanner::{Scanner, Written};
use crate::version::Version;

/// The longest text that is read as a range (MaxConstraintLen).
pub(crate) const MAX_LENGTH: usize = 512;
/// The most alternatives that a range may have (MaxConstraintGroups).
pub(crate) const MAX_GROUPS: usize = 32;

/// A range: alternatives, of each of which all comparisons must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constraints {
    groups: Vec<Group>,
    /// True if pre-releases are looked at even where a group names none (IncludePrerelease).
    pub include_prerelease: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    comparisons: Vec<Comparison>,
    names_prerelease: bool,
}

impl Constraints {
    /// Reads a range such as `>=1.2, <2 || ~3.1` or `1.0 - 2.0` (NewConstraint).
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > MAX_LENGTH {
            return Err(Error::ConstraintTooLong);
        }
        let text = rewrite_hyphen_ranges(text);
        if text.split("||").count() > MAX_GROUPS {
            return Err(Error::TooManyConstraintGroups);
        }
        Ok(Self {
            groups: text.split("||").map(parse_group).collect::<Result<_, _>>()?,
            include_prerelease: false,
        })
    }

    /// Returns whether the version lies in the range.
    #[must_use]
    pub fn check(&self, version: &Version) -> bool {
        self.groups.iter().any(|group| {
            // A pre-release is only wanted where the group itself speaks of one.
            let admissible =
                version.prerelease().is_empty() || self.include_prerelease || group.names_prerelease;
            admissible
                && group
                    .comparisons
                    .iter()
                    .all(|comparison| comparison.holds(version))
        })
    }
}

/// Writes each `1.0 - 2.0` as `>= 1.0, <= 2.0 `, wherever it stands: also in what turns out to be no range.
fn rewrite_hyphen_ranges(text: &str) -> String {
    let mut rewritten = text.to_owned();
    let mut rest = text;
    while let Some((range, from, to, after)) = next_hyphen_range(rest) {
        // The first place of that text is rewritten, as Masterminds does, be it this one or not.
        rewritten = rewritten.replacen(range, &format!(">= {from}, <= {to} "), 1);
        rest = after;
    }
    rewritten
}

/// The next `1.0 - 2.0` with the spaces around it, its ends, and what follows it.
fn next_hyphen_range(text: &str) -> Option<(&str, &str, &str, &str)> {
    text.char_indices().find_map(|(start, _)| {
        let text = &text[start..];
        let mut scanner = Scanner::new(text);
        scanner.spaces();
        let from = scanner.version(is_of_wildcard)?;
        if !(scanner.spaces() && scanner.take("-") && scanner.spaces()) {
            return None;
        }
        let to = scanner.version(is_of_wildcard)?;
        scanner.spaces();
        let range = &text[..text.len() - scanner.rest.len()];
        Some((range, from.text, to.text, scanner.rest))
    })
}

fn parse_group(text: &str) -> Result<Group, Error> {
    let improper = || Error::ImproperConstraint(text.to_owned());
    // The form of the whole group is looked at before any of its versions.
    let written = scan_group(text).ok_or_else(improper)?;
    let comparisons: Vec<_> = written
        .iter()
        .map(|(operator, version)| Comparison::new(*operator, version))
        .collect::<Option<_>>()
        .ok_or(Error::ConstraintParser)?;
    let names_prerelease = comparisons.iter().any(Comparison::names_prerelease);
    Ok(Group {
        comparisons,
        names_prerelease,
    })
}

/// Comparisons separated by spaces or a comma, to the end of the text.
fn scan_group(text: &str) -> Option<Vec<(Operator, Written<'_>)>> {
    let mut scanner = Scanner::new(text);
    let mut comparisons = Vec::new();
    scanner.spaces();
    loop {
        let operator = take_operator(&mut scanner);
        scanner.spaces();
        comparisons.push((operator, scanner.version(is_of_wildcard)?));
        let spaced = scanner.spaces();
        if scanner.rest.is_empty() {
            return Some(comparisons);
        }
        if scanner.take(",") {
            scanner.spaces();
        } else if !spaced {
            return None;
        }
    }
}

/// True for a character of a range's number. The bar is there by a slip of Masterminds' expression: it makes
/// no version, but the error of a version.
fn is_of_wildcard(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'x' | b'X' | b'*' | b'|')
}

#[cfg(test)]
mod tests;
