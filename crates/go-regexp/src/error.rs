//! Why a pattern is refused, in the words of Go's regexp/syntax.

use std::fmt;

/// A pattern that is refused. The text is Go's, byte for byte where the pattern is UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    problem: Problem,
    expression: Vec<u8>,
}

impl Error {
    pub(crate) fn new(problem: Problem, expression: &[u8]) -> Self {
        Self {
            problem,
            expression: expression.to_vec(),
        }
    }

    /// Returns the problem.
    #[must_use]
    pub fn problem(&self) -> Problem {
        self.problem
    }

    /// The offending part of the pattern.
    #[must_use]
    pub fn expression(&self) -> &[u8] {
        &self.expression
    }

    /// The text of the error with the bytes of the pattern as they are; `Display` replaces what is not UTF-8.
    #[must_use]
    pub fn message(&self) -> Vec<u8> {
        let before = format!("error parsing regexp: {}: `", self.problem);
        [before.as_bytes(), &self.expression, b"`"].concat()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&go_text::valid_text(&self.message()))
    }
}

impl std::error::Error for Error {}

/// Problem with a pattern (Go's ErrorCode).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // Display says it
#[non_exhaustive]
pub enum Problem {
    InvalidCharRange,
    InvalidEscape,
    InvalidNamedCapture,
    InvalidPerlOp,
    InvalidRepeatOp,
    InvalidRepeatSize,
    InvalidUtf8,
    MissingBracket,
    MissingParen,
    MissingRepeatArgument,
    TrailingBackslash,
    UnexpectedParen,
    NestingDepth,
    Large,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidCharRange => "invalid character class range",
            Self::InvalidEscape => "invalid escape sequence",
            Self::InvalidNamedCapture => "invalid named capture",
            Self::InvalidPerlOp => "invalid or unsupported Perl syntax",
            Self::InvalidRepeatOp => "invalid nested repetition operator",
            Self::InvalidRepeatSize => "invalid repeat count",
            Self::InvalidUtf8 => "invalid UTF-8",
            Self::MissingBracket => "missing closing ]",
            Self::MissingParen => "missing closing )",
            Self::MissingRepeatArgument => "missing argument to repetition operator",
            Self::TrailingBackslash => "trailing backslash at end of expression",
            Self::UnexpectedParen => "unexpected )",
            Self::NestingDepth => "expression nests too deeply",
            Self::Large => "expression too large",
        })
    }
}
