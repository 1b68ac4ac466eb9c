//! Why a version or a range cannot be read, in the words of Masterminds/semver.

/// A version or a range that cannot be read. The texts are those of the Go library, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text has not the form of a version.
    #[error("invalid semantic version")]
    InvalidVersion,
    /// A strict version was demanded of nothing.
    #[error("version string empty")]
    EmptyString,
    /// A number of a strict version has other characters than digits.
    #[error("invalid characters in version")]
    InvalidCharacters,
    /// A number (of a pre-release, or of a strict version) has a zero in front.
    #[error("version segment starts with 0")]
    SegmentStartsZero,
    /// Build metadata has an empty or a misspelt identifier.
    #[error("invalid metadata string")]
    InvalidMetadata,
    /// A pre-release has an empty or a misspelt identifier.
    #[error("invalid prerelease string")]
    InvalidPrerelease,
    /// More text than a version may have.
    #[error("version string is too long (max {max} bytes)", max = crate::version::MAX_LENGTH)]
    VersionTooLong,
    /// A number of a version does not fit 64 bits.
    #[error("error parsing version segment: strconv.ParseUint: parsing \"{0}\": value out of range")]
    ParseSegment(String),
    /// A number of a strict version does not fit 64 bits, or is missing.
    #[error("strconv.ParseUint: parsing \"{digits}\": {reason}")]
    ParseNumber {
        /// The digits.
        digits: String,
        /// Error of Go's strconv.
        reason: &'static str,
    },
    /// More text than a range may have.
    #[error("constraint string is too long (max {max} bytes)", max = crate::constraints::MAX_LENGTH)]
    ConstraintTooLong,
    /// More alternatives than a range may have.
    #[error("too many constraint groups (max {max})", max = crate::constraints::MAX_GROUPS)]
    TooManyConstraintGroups,
    /// An alternative of a range has not the form of a range.
    #[error("improper constraint: {}", go_text::quote::quoted(.0))]
    ImproperConstraint(String),
    /// The version within a range cannot be read, though its form is right.
    #[error("constraint parser error")]
    ConstraintParser,
}
