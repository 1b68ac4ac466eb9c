//! A version: read, compared, raised and printed.
//!
//! Reads one text and knows nothing of ranges.

use std::cmp::Ordering;
use std::fmt;

use crate::error::Error;
use crate::scanner::Scanner;

/// The longest text that is read as a version (MaxVersionLen).
pub(crate) const MAX_LENGTH: usize = 256;

/// A version, possibly read from a text with a leading `v` and fewer than three numbers.
///
/// `Display` writes all three numbers without the `v`; [`Version::original`] is the text that was read. Equality is
/// that of every part; [`Version::compare`] is the precedence that ranges use.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    prerelease: String,
    metadata: String,
    original: String,
}

impl Version {
    /// Reads a version generously (NewVersion): a `v` in front, missing numbers and leading zeroes are allowed.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > MAX_LENGTH {
            return Err(Error::VersionTooLong);
        }
        let mut scanner = Scanner::new(text);
        let written = scanner
            .version(|b| b.is_ascii_digit())
            .filter(|_| scanner.rest.is_empty())
            .ok_or(Error::InvalidVersion)?;
        let [major, minor, patch] = written.numbers;
        let version = Self {
            major: parse_segment(major)?,
            minor: parse_segment(minor)?,
            patch: parse_segment(patch)?,
            prerelease: written.prerelease.unwrap_or_default().to_owned(),
            metadata: written.metadata.unwrap_or_default().to_owned(),
            original: text.to_owned(),
        };
        validate_prerelease(&version.prerelease)?;
        validate_metadata(&version.metadata)?;
        Ok(version)
    }

    /// Reads a version that follows the specification to the letter (StrictNewVersion).
    pub fn parse_strict(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::EmptyString);
        }
        if text.len() > MAX_LENGTH {
            return Err(Error::VersionTooLong);
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(Error::InvalidVersion);
        };
        let (rest, metadata) = split_suffix(rest, '+', validate_nonempty_metadata)?;
        let (patch, prerelease) = split_suffix(rest, '-', validate_nonempty_prerelease)?;
        for number in [major, minor, patch] {
            if !number.bytes().all(|b| b.is_ascii_digit()) {
                return Err(Error::InvalidCharacters);
            }
            if number.len() > 1 && number.starts_with('0') {
                return Err(Error::SegmentStartsZero);
            }
        }
        Ok(Self {
            major: parse_number(major)?,
            minor: parse_number(minor)?,
            patch: parse_number(patch)?,
            prerelease: prerelease.to_owned(),
            metadata: metadata.to_owned(),
            original: text.to_owned(),
        })
    }

    /// The first number.
    #[must_use]
    pub fn major(&self) -> u64 {
        self.major
    }

    /// The second number; 0 when it was not written.
    #[must_use]
    pub fn minor(&self) -> u64 {
        self.minor
    }

    /// The third number; 0 when it was not written.
    #[must_use]
    pub fn patch(&self) -> u64 {
        self.patch
    }

    /// Part after the hyphen; empty without one.
    #[must_use]
    pub fn prerelease(&self) -> &str {
        &self.prerelease
    }

    /// Part after the plus sign; empty without one.
    #[must_use]
    pub fn metadata(&self) -> &str {
        &self.metadata
    }

    /// The text that was read.
    #[must_use]
    pub fn original(&self) -> &str {
        &self.original
    }

    /// Order by precedence: a pre-release comes before its version, and build metadata does not count.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        let numbers = |v: &Self| (v.major, v.minor, v.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => compare_prereleases(&self.prerelease, &other.prerelease),
            }
        })
    }

    /// The next major version. None when the number has no next (Go panics).
    #[must_use]
    pub fn inc_major(&self) -> Option<Self> {
        let major = self.major.checked_add(1)?;
        Some(self.renumbered(major, 0, 0))
    }

    /// The next minor version. None when the number has no next (Go panics).
    #[must_use]
    pub fn inc_minor(&self) -> Option<Self> {
        let minor = self.minor.checked_add(1)?;
        Some(self.renumbered(self.major, minor, 0))
    }

    /// The next patch version, which for a pre-release is its own release. None when the number has no next.
    #[must_use]
    pub fn inc_patch(&self) -> Option<Self> {
        let patch = match self.prerelease.as_str() {
            "" => self.patch.checked_add(1)?,
            _ => self.patch,
        };
        Some(self.renumbered(self.major, self.minor, patch))
    }

    /// This version with another pre-release; an empty one takes it away.
    pub fn set_prerelease(&self, prerelease: &str) -> Result<Self, Error> {
        validate_prerelease(prerelease)?;
        Ok(Self {
            prerelease: prerelease.to_owned(),
            ..self.clone()
        }
        .with_fresh_original())
    }

    /// This version with other build metadata; empty text takes it away.
    pub fn set_metadata(&self, metadata: &str) -> Result<Self, Error> {
        validate_metadata(metadata)?;
        Ok(Self {
            metadata: metadata.to_owned(),
            ..self.clone()
        }
        .with_fresh_original())
    }

    fn renumbered(&self, major: u64, minor: u64, patch: u64) -> Self {
        Self {
            major,
            minor,
            patch,
            prerelease: String::new(),
            metadata: String::new(),
            original: self.original.clone(),
        }
        .with_fresh_original()
    }

    /// Derived versions keep the `v` that their origin was written with.
    fn with_fresh_original(mut self) -> Self {
        let v = if self.original.starts_with('v') { "v" } else { "" };
        self.original = format!("{v}{self}");
        self
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

/// Compares dot-separated identifiers: numbers by value and below words, a longer list above its prefix.
#[must_use]
pub fn compare_prereleases(a: &str, b: &str) -> Ordering {
    let mut left = a.split('.');
    let mut right = b.split('.');
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(x), Some(y)) => compare_identifiers(x, y),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

fn compare_identifiers(a: &str, b: &str) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return a.len().cmp(&b.len());
    }
    match (a.parse::<u64>(), b.parse::<u64>()) {
        (Ok(x), Ok(y)) => x.cmp(&y),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => a.cmp(b),
    }
}

fn parse_segment(digits: Option<&str>) -> Result<u64, Error> {
    digits.map_or(Ok(0), |digits| {
        let too_large = |_| Error::ParseSegment(digits.to_owned());
        digits.parse().map_err(too_large)
    })
}

/// A number of a strict version, of which only digits are left or nothing at all.
fn parse_number(digits: &str) -> Result<u64, Error> {
    digits.parse().map_err(|_| Error::ParseNumber {
        digits: digits.to_owned(),
        reason: if digits.is_empty() {
            "invalid syntax"
        } else {
            "value out of range"
        },
    })
}

type Validate = fn(&str) -> Result<(), Error>;

/// Splits a text at the mark: the part before it and, if there is one, the valid part behind it.
fn split_suffix(text: &str, mark: char, validate: Validate) -> Result<(&str, &str), Error> {
    let Some((text, suffix)) = text.split_once(mark) else {
        return Ok((text, ""));
    };
    validate(suffix)?;
    Ok((text, suffix))
}

fn validate_prerelease(text: &str) -> Result<(), Error> {
    if text.is_empty() {
        return Ok(());
    }
    validate_nonempty_prerelease(text)
}

fn validate_metadata(text: &str) -> Result<(), Error> {
    if text.is_empty() {
        return Ok(());
    }
    validate_nonempty_metadata(text)
}

fn validate_nonempty_prerelease(text: &str) -> Result<(), Error> {
    for identifier in text.split('.') {
        if !is_identifier(identifier) {
            return Err(Error::InvalidPrerelease);
        }
        let numeric = identifier.bytes().all(|b| b.is_ascii_digit());
        if numeric && identifier.len() > 1 && identifier.starts_with('0') {
            return Err(Error::SegmentStartsZero);
        }
    }
    Ok(())
}

fn validate_nonempty_metadata(text: &str) -> Result<(), Error> {
    match text.split('.').all(is_identifier) {
        true => Ok(()),
        false => Err(Error::InvalidMetadata),
    }
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

#[cfg(test)]
mod tests;
