//! Which of two tags is newer.

use std::cmp::Ordering;

use go_semver::{Constraints, Version, tags};
use go_text::numeral::parse_float;

use crate::{Error, Verdict};

/// How tags are ordered; the last is chosen.
#[derive(Debug)]
pub enum Order {
    /// By semantic version, within a range.
    Semver(Constraints, Includes),
    /// By bytes.
    Alphabetical(Direction),
    /// By number.
    Numerical(Direction),
}

/// Whether a range with pre-releases was asked for: only for what is said about a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Includes {
    pre_releases: bool,
}

/// From where to where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Direction {
    /// The highest is chosen.
    #[default]
    Ascending,
    /// The lowest is chosen.
    Descending,
}

impl Order {
    /// Reads a range.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn semver(range: &str) -> Result<Self, Error> {
        let pre_releases = range.contains('-');
        let range = Constraints::parse(range).map_err(Error::Range)?;
        Ok(Self::Semver(range, Includes { pre_releases }))
    }

    /// Where a value stands in the order, or why it has no place.
    pub(crate) fn rank(&self, value: &str) -> Result<Rank, Verdict> {
        match self {
            Self::Semver(range, includes) => {
                let version = tags::parse_full(value).ok_or(Verdict::NoVersion)?;
                if range.check(&version) {
                    Ok(Rank::Version(Box::new(version)))
                } else if !version.prerelease().is_empty() && !includes.pre_releases {
                    Err(Verdict::PreRelease)
                } else {
                    Err(Verdict::OutOfRange)
                }
            }
            Self::Alphabetical(direction) => Ok(Rank::Text(value.to_owned(), *direction)),
            Self::Numerical(direction) => {
                let number = parse_float(value).ok().filter(|number| !number.is_nan());
                number
                    .map(|number| Rank::Number(number, *direction))
                    .ok_or(Verdict::NoNumber)
            }
        }
    }
}

/// A value's place in an order.
#[derive(Debug)]
pub(crate) enum Rank {
    Version(Box<Version>),
    Text(String, Direction),
    Number(f64, Direction),
}

impl Rank {
    /// Greater means newer.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Version(a), Self::Version(b)) => tags::compare(a, b),
            (Self::Text(a, direction), Self::Text(b, _)) => direction.apply(a.cmp(b)),
            (Self::Number(a, direction), Self::Number(b, _)) => direction.apply(a.total_cmp(b)),
            // All ranks of one policy are of one kind.
            _ => Ordering::Equal,
        }
    }
}

impl Direction {
    fn apply(self, ordering: Ordering) -> Ordering {
        match self {
            Self::Ascending => ordering,
            Self::Descending => ordering.reverse(),
        }
    }
}
