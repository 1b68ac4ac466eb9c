//! What is said about one tag.

use std::fmt;

/// Why a tag is chosen, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is the one.
    Chosen,
    /// It does not match `filterTags.pattern`.
    FilteredOut,
    /// It is no semantic version with three parts.
    NoVersion,
    /// The range does not hold it.
    OutOfRange,
    /// It is a pre-release, and the range names none.
    PreRelease,
    /// It is no number.
    NoNumber,
    /// It stands behind the chosen one.
    Behind,
    /// It is equal for the policy, and its bytes are lower.
    Equal,
    /// It stands before the chosen one: it appeared since, or is held back.
    Ahead,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chosen => "chosen",
            Self::FilteredOut => "does not match filterTags.pattern",
            Self::NoVersion => "not a semantic version with three parts",
            Self::OutOfRange => "outside of the range",
            Self::PreRelease => "a pre-release, and the range names none",
            Self::NoNumber => "not a number",
            Self::Behind => "older than the chosen tag",
            Self::Equal => "equal to the chosen tag in this order, and lower by its bytes",
            Self::Ahead => "newer than the chosen tag",
        })
    }
}
