//! Version ranges as Flux reads them: `spec.ref.semver` of Git tags and OCI tags goes in, the chosen tag comes out.
//!
//! The rules are those of Masterminds/semver v3 (the library behind Flux and Helm), which differ from npm's and
//! Cargo's: `1.2` is a version, `!=1.2.x` is a range, a comma is an "and", and a pre-release only matches when the
//! same "and" group names one. This module knows no tags and no registries: it parses, compares and picks.

use std::cmp::Ordering;

/// A version or a range that cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum Error {
    /// The text is not a version, even read generously.
    #[error("failed to parse version '{0}'")]
    ParseVersion(String),
    /// The text is not a range.
    #[error("failed to parse semver range '{0}'")]
    ParseConstraint(String),
}

/// A version range: any of several groups, of which all comparisons must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Constraint {
    groups: Vec<Vec<Comparison>>,
}

impl Constraint {
    /// Reads a range such as `>=1.2, <2 || ~3.1` or `1.0 - 2.0`.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let invalid = || Error::ParseConstraint(text.to_owned());
        let groups = text.split("||").map(|group| Parser::new(group).group());
        Ok(Self {
            groups: groups.collect::<Option<_>>().ok_or_else(invalid)?,
        })
    }

    /// Whether the version lies in the range.
    pub(crate) fn matches(&self, version: &Version) -> bool {
        self.groups.iter().any(|group| {
            let names_prerelease = group
                .iter()
                .any(|comparison| !comparison.version.prerelease.is_empty());
            // A pre-release is only wanted where the group itself speaks of one.
            let admissible = version.prerelease.is_empty() || names_prerelease;
            admissible && group.iter().all(|comparison| comparison.holds(version))
        })
    }

    /// The highest of the given texts that is a full version (three parts) in this range, as it was written.
    ///
    /// Versions that differ only in build metadata are equal by the specification; the one with the higher metadata
    /// is taken then, so that the answer does not depend on the order of the input.
    pub(crate) fn highest<'a>(&self, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        let versions = candidates
            .into_iter()
            .filter_map(|text| Some((Version::parse_full(text).ok()?, text)))
            .filter(|(version, _)| self.matches(version));
        let highest = versions.max_by(|(a, text_a), (b, text_b)| {
            a.cmp_precedence(b)
                .then_with(|| compare_identifiers(&a.metadata, &b.metadata))
                .then(text_a.cmp(text_b))
        });
        highest.map(|(_, text)| text)
    }
}

/// A version, possibly shorter than three numbers and with a leading `v`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    prerelease: String,
    metadata: String,
}

impl Version {
    /// Reads a version generously: `v` in front, missing parts and leading zeroes are allowed.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let mut parser = Parser::new(text);
        parser
            .pattern()
            .filter(|_| parser.rest.is_empty())
            .and_then(|pattern| pattern.exact())
            .ok_or_else(|| Error::ParseVersion(text.to_owned()))
    }

    /// Reads a version that has all three parts, as Flux demands of tags: `v1` and `1.2` are no versions there.
    pub(crate) fn parse_full(text: &str) -> Result<Self, Error> {
        match text.matches('.').count() {
            0 | 1 => Err(Error::ParseVersion(text.to_owned())),
            _ => Self::parse(text),
        }
    }

    /// Order by precedence; build metadata does not count.
    pub(crate) fn cmp_precedence(&self, other: &Self) -> Ordering {
        let numbers = |v: &Self| (v.major, v.minor, v.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => compare_identifiers(&self.prerelease, &other.prerelease),
            }
        })
    }
}

/// Compares dot-separated identifiers: numbers by value and below words, a longer list above its prefix.
fn compare_identifiers(a: &str, b: &str) -> Ordering {
    let mut left = a.split('.');
    let mut right = b.split('.');
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(x), Some(y)) => match (x.parse::<u64>(), y.parse::<u64>()) {
                (Ok(x), Ok(y)) => x.cmp(&y),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => x.cmp(y),
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

/// How much of a written version was given: `1.2.x` and `1.2` leave the patch open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Patch,
    Minor,
    Everything,
}

/// One comparison of a group, such as `>=1.2`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Comparison {
    operator: Operator,
    version: Version,
    open: Open,
}

impl Comparison {
    /// Pre-releases that the group does not ask for are refused before this is asked.
    fn holds(&self, version: &Version) -> bool {
        let order = version.cmp_precedence(&self.version);
        match self.operator {
            Operator::Equal if self.open != Open::Nothing => self.tilde(version),
            Operator::Equal => order == Ordering::Equal,
            Operator::NotEqual => self.differs(version),
            Operator::Greater => self.greater(version),
            Operator::Less => order == Ordering::Less,
            Operator::GreaterOrEqual => order != Ordering::Less,
            Operator::LessOrEqual => self.less_or_equal(version),
            Operator::Tilde => self.tilde(version),
            Operator::Caret => self.caret(version),
        }
    }

    fn differs(&self, version: &Version) -> bool {
        let wanted = &self.version;
        match self.open {
            Open::Nothing => version.cmp_precedence(wanted) != Ordering::Equal,
            _ if version.major != wanted.major => true,
            Open::Minor => false,
            _ if version.minor != wanted.minor => true,
            Open::Patch if version.prerelease.is_empty() && wanted.prerelease.is_empty() => false,
            Open::Patch => compare_prereleases(version, wanted) != Ordering::Equal,
            // Masterminds leaves `*` open as neither minor nor patch, so that `!=*` is `!=0.0.0`.
            Open::Everything => {
                version.patch != wanted.patch || version.cmp_precedence(wanted) != Ordering::Equal
            }
        }
    }

    /// `>1` is `>=2` and `>1.2` is `>=1.3`, while `>1.2.3` is strictly greater.
    fn greater(&self, version: &Version) -> bool {
        let wanted = &self.version;
        match self.open {
            Open::Minor => version.major > wanted.major,
            Open::Patch => (version.major, version.minor) > (wanted.major, wanted.minor),
            Open::Nothing | Open::Everything => version.cmp_precedence(wanted) == Ordering::Greater,
        }
    }

    /// `<=1` is `<2` and `<=1.2` is `<1.3`.
    fn less_or_equal(&self, version: &Version) -> bool {
        let wanted = &self.version;
        match self.open {
            Open::Nothing => version.cmp_precedence(wanted) != Ordering::Greater,
            Open::Minor => version.major <= wanted.major,
            Open::Patch | Open::Everything => (version.major, version.minor) <= (wanted.major, wanted.minor),
        }
    }

    /// `~1.2.3` is `>=1.2.3, <1.3` and `~1` is `>=1, <2`; `~0.0.0` and `~*` accept everything.
    fn tilde(&self, version: &Version) -> bool {
        let wanted = &self.version;
        if version.cmp_precedence(wanted) == Ordering::Less {
            return false;
        }
        let zero = (wanted.major, wanted.minor, wanted.patch) == (0, 0, 0);
        if zero && matches!(self.open, Open::Nothing | Open::Everything) {
            return true;
        }
        version.major == wanted.major && (self.open == Open::Minor || version.minor == wanted.minor)
    }

    /// Nothing left of the first non-zero number may change: `^1.2` is `<2`, `^0.2.3` is `<0.3`, `^0.0.3` is itself.
    fn caret(&self, version: &Version) -> bool {
        let wanted = &self.version;
        if version.cmp_precedence(wanted) == Ordering::Less {
            return false;
        }
        if wanted.major > 0 || self.open == Open::Minor {
            return version.major == wanted.major;
        }
        if version.major > 0 {
            return false;
        }
        if wanted.minor > 0 || self.open == Open::Patch {
            return version.minor == wanted.minor;
        }
        version.minor == 0 && version.patch == wanted.patch
    }
}

fn compare_prereleases(a: &Version, b: &Version) -> Ordering {
    compare_identifiers(&a.prerelease, &b.prerelease)
}

/// A written version in which numbers may be missing or `x`, `X`, `*`.
struct Pattern<'a> {
    numbers: [Option<&'a str>; 3],
    prerelease: Option<&'a str>,
    metadata: Option<&'a str>,
}

impl Pattern<'_> {
    /// The version, when nothing in it is a wildcard.
    fn exact(&self) -> Option<Version> {
        Some(Version {
            major: self.numbers[0]?.parse().ok()?,
            minor: self.numbers[1].map_or(Ok(0), str::parse).ok()?,
            patch: self.numbers[2].map_or(Ok(0), str::parse).ok()?,
            prerelease: valid_prerelease(self.prerelease)?,
            metadata: valid_metadata(self.metadata)?,
        })
    }

    /// The lower end of the range that the pattern means, and what it leaves open.
    fn lower_end(mut self) -> Option<(Version, Open)> {
        let given = |number: Option<&str>| number.is_some_and(|n| !matches!(n, "x" | "X" | "*"));
        let open = match self.numbers.map(given) {
            [false, ..] => Open::Everything,
            [_, false, _] => Open::Minor,
            [_, _, false] => Open::Patch,
            _ => Open::Nothing,
        };
        let fixed = match open {
            Open::Everything => 0,
            Open::Minor => 1,
            Open::Patch => 2,
            Open::Nothing => 3,
        };
        self.numbers[fixed..].fill(Some("0"));
        if open != Open::Nothing {
            self.metadata = None;
        }
        Some((self.exact()?, open))
    }
}

fn valid_prerelease(text: Option<&str>) -> Option<String> {
    let text = text.unwrap_or_default();
    let leading_zero =
        |id: &str| id.len() > 1 && id.starts_with('0') && id.bytes().all(|b| b.is_ascii_digit());
    let valid = text.is_empty() || text.split('.').all(|id| !id.is_empty() && !leading_zero(id));
    valid.then(|| text.to_owned())
}

fn valid_metadata(text: Option<&str>) -> Option<String> {
    let text = text.unwrap_or_default();
    (text.is_empty() || text.split('.').all(|id| !id.is_empty())).then(|| text.to_owned())
}

/// Reads from the front of `rest`.
struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn new(rest: &'a str) -> Self {
        Self { rest }
    }

    /// A group: comparisons and hyphen ranges, separated by spaces or a comma, to the end of the text.
    fn group(&mut self) -> Option<Vec<Comparison>> {
        let mut comparisons = Vec::new();
        self.take_while(is_space);
        loop {
            let separated = self.comparison(&mut comparisons)?;
            let spaced = !self.take_while(is_space).is_empty();
            if self.rest.is_empty() {
                return Some(comparisons);
            }
            let comma = self.take(",");
            if comma {
                self.take_while(is_space);
            }
            if !(separated || spaced || comma) {
                return None;
            }
        }
    }

    /// One comparison or one hyphen range. Answers whether it ends without need of a separator, as ranges do.
    fn comparison(&mut self, comparisons: &mut Vec<Comparison>) -> Option<bool> {
        let operator = self.operator();
        self.take_while(is_space);
        let (version, open) = self.pattern()?.lower_end()?;
        let end = if operator.is_none() {
            self.hyphen_range_end()
        } else {
            None
        };
        let Some(end) = end else {
            comparisons.push(Comparison {
                operator: operator.unwrap_or(Operator::Equal),
                version,
                open,
            });
            return Some(false);
        };
        comparisons.push(Comparison {
            operator: Operator::GreaterOrEqual,
            version,
            open,
        });
        let (version, open) = end.lower_end()?;
        comparisons.push(Comparison {
            operator: Operator::LessOrEqual,
            version,
            open,
        });
        Some(true)
    }

    /// The ` - 2.0` of `1.0 - 2.0`; takes nothing when it is not there.
    fn hyphen_range_end(&mut self) -> Option<Pattern<'a>> {
        let mut ahead = Parser::new(self.rest);
        let spaced_before = !ahead.take_while(is_space).is_empty();
        if !(spaced_before && ahead.take("-") && !ahead.take_while(is_space).is_empty()) {
            return None;
        }
        let pattern = ahead.pattern()?;
        self.rest = ahead.rest;
        Some(pattern)
    }

    fn operator(&mut self) -> Option<Operator> {
        const OPERATORS: [(&str, Operator); 11] = [
            ("!=", Operator::NotEqual),
            (">=", Operator::GreaterOrEqual),
            ("=>", Operator::GreaterOrEqual),
            ("<=", Operator::LessOrEqual),
            ("=<", Operator::LessOrEqual),
            ("~>", Operator::Tilde),
            ("=", Operator::Equal),
            (">", Operator::Greater),
            ("<", Operator::Less),
            ("~", Operator::Tilde),
            ("^", Operator::Caret),
        ];
        OPERATORS
            .into_iter()
            .find(|(text, _)| self.take(text))
            .map(|(_, operator)| operator)
    }

    fn pattern(&mut self) -> Option<Pattern<'a>> {
        self.take("v");
        let mut numbers = [None; 3];
        numbers[0] = Some(self.number()?);
        for number in &mut numbers[1..] {
            let before = self.rest;
            *number = if self.take(".") { self.number() } else { None };
            if number.is_none() {
                self.rest = before;
                break;
            }
        }
        let prerelease = self.suffix("-");
        let metadata = self.suffix("+");
        Some(Pattern {
            numbers,
            prerelease,
            metadata,
        })
    }

    fn number(&mut self) -> Option<&'a str> {
        Some(self.take_while(|c| c.is_ascii_digit() || matches!(c, 'x' | 'X' | '*')))
            .filter(|n| !n.is_empty())
    }

    /// A `-pre.release` or `+meta.data` suffix; takes nothing when no identifier follows the mark.
    fn suffix(&mut self, mark: &str) -> Option<&'a str> {
        let before = self.rest;
        if !self.take(mark) {
            return None;
        }
        let text = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'));
        if text.is_empty() {
            self.rest = before;
            return None;
        }
        Some(text)
    }

    fn take(&mut self, text: &str) -> bool {
        self.rest
            .strip_prefix(text)
            .map(|rest| self.rest = rest)
            .is_some()
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

#[cfg(test)]
mod tests;
