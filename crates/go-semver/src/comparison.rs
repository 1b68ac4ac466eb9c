//! One comparison of a range, such as `>=1.2`, `~1` or `^0.2.x`, and when it holds.
//!
//! The rules are those of the functions `constraint…` of Masterminds/semver, of which `open` tells the dirty flags.

use std::cmp::Ordering;

use crate::scanner::{Scanner, Written};
use crate::version::{Version, compare_prereleases};

/// How a version is compared with that of the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

/// Takes an operator; without one it is equality.
pub(crate) fn take_operator(scanner: &mut Scanner<'_>) -> Operator {
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
        .find(|(text, _)| scanner.take(text))
        .map_or(Operator::Equal, |(_, operator)| operator)
}

/// How much of a written version was left open: `1.2.x` and `1.2` leave the patch open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Patch,
    Minor,
    Everything,
}

/// One comparison of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Comparison {
    operator: Operator,
    version: Version,
    open: Open,
}

impl Comparison {
    /// None when the written version is none, such as `1x`.
    pub(crate) fn new(operator: Operator, written: &Written<'_>) -> Option<Self> {
        let (version, open) = lower_end(written)?;
        Some(Self {
            operator,
            version,
            open,
        })
    }

    pub(crate) fn names_prerelease(&self) -> bool {
        !self.version.prerelease().is_empty()
    }

    /// Pre-releases that the group does not ask for are refused before this is asked.
    pub(crate) fn holds(&self, version: &Version) -> bool {
        let order = version.compare(&self.version);
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
        let is_other = version.compare(wanted) != Ordering::Equal;
        match self.open {
            Open::Nothing => is_other,
            _ if version.major() != wanted.major() => true,
            Open::Minor => false,
            _ if version.minor() != wanted.minor() => true,
            Open::Patch => compare_prereleases(version.prerelease(), wanted.prerelease()) != Ordering::Equal,
            // Masterminds leaves `*` open as neither minor nor patch, so that `!=*` is `!=0.0.0`.
            Open::Everything => is_other,
        }
    }

    /// `>1` is `>=2` and `>1.2` is `>=1.3`, while `>1.2.3` is strictly greater.
    fn greater(&self, version: &Version) -> bool {
        let wanted = &self.version;
        match self.open {
            Open::Minor => version.major() > wanted.major(),
            Open::Patch => (version.major(), version.minor()) > (wanted.major(), wanted.minor()),
            Open::Nothing | Open::Everything => version.compare(wanted) == Ordering::Greater,
        }
    }

    /// `<=1` is `<2` and `<=1.2` is `<1.3`.
    fn less_or_equal(&self, version: &Version) -> bool {
        let wanted = &self.version;
        match self.open {
            Open::Nothing => version.compare(wanted) != Ordering::Greater,
            Open::Minor => version.major() <= wanted.major(),
            Open::Patch | Open::Everything => {
                (version.major(), version.minor()) <= (wanted.major(), wanted.minor())
            }
        }
    }

    /// `~1.2.3` is `>=1.2.3, <1.3` and `~1` is `>=1, <2`; `~0.0.0` and `~*` accept everything.
    fn tilde(&self, version: &Version) -> bool {
        let wanted = &self.version;
        if version.compare(wanted) == Ordering::Less {
            return false;
        }
        let zero = (wanted.major(), wanted.minor(), wanted.patch()) == (0, 0, 0);
        if zero && matches!(self.open, Open::Nothing | Open::Everything) {
            return true;
        }
        version.major() == wanted.major() && (self.open == Open::Minor || version.minor() == wanted.minor())
    }

    /// Nothing left of the first non-zero number may change: `^1.2` is `<2`, `^0.2.3` is `<0.3`, `^0.0.3` is itself.
    fn caret(&self, version: &Version) -> bool {
        let wanted = &self.version;
        if version.compare(wanted) == Ordering::Less {
            return false;
        }
        if wanted.major() > 0 || self.open == Open::Minor {
            return version.major() == wanted.major();
        }
        if version.major() > 0 {
            return false;
        }
        if wanted.minor() > 0 || self.open == Open::Patch {
            return version.minor() == wanted.minor();
        }
        version.minor() == 0 && version.patch() == wanted.patch()
    }
}

/// The lowest version that the written one means, and what it leaves open.
fn lower_end(written: &Written<'_>) -> Option<(Version, Open)> {
    let is_open = |number: Option<&str>| number.is_none_or(|n| matches!(n, "x" | "X" | "*"));
    let [major, minor, patch] = written.numbers;
    let (open, lowest) = match [is_open(major), is_open(minor), is_open(patch)] {
        [true, ..] => (Open::Everything, "0.0.0".to_owned()),
        [_, true, _] => (Open::Minor, format!("{}.0.0", major?)),
        [_, _, true] => (Open::Patch, format!("{}.{}.0", major?, minor?)),
        _ => (Open::Nothing, written.text.to_owned()),
    };
    // Metadata is dropped where something is open.
    let lowest = match written.prerelease {
        Some(prerelease) if open != Open::Nothing => format!("{lowest}-{prerelease}"),
        _ => lowest,
    };
    Some((Version::parse(&lowest).ok()?, open))
}
