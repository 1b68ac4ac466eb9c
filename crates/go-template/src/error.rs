//! Why a template was refused or failed, in Go's words.

use std::fmt;

/// An error of parsing, of execution, or of a function.
///
/// [`fmt::Display`] gives Go's whole text, which already holds the text of the cause; [`Error::cause`] is what
/// `errors.Unwrap` gives, by which Helm lists every place on the way.
#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    cause: Option<Error>,
}

/// Who made the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The template's text is wrong.
    Parse,
    /// Execution failed at a place in a template: Go's `template.ExecError`.
    Exec,
    /// A function refused, without saying where.
    Function,
    /// A bound was reached: depth, output, steps, or the caller's cancellation.
    Limit,
}

impl Error {
    /// Makes an error of a function, with Go's text.
    pub fn new(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Function, message)
    }

    /// Makes an error of a kind.
    pub fn of(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            cause: None,
        }))
    }

    /// Adds what `%w` wraps; the text must hold the cause's already.
    #[must_use]
    pub fn with_cause(mut self, cause: Error) -> Self {
        self.0.cause = Some(cause);
        self
    }

    /// Returns who made it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the whole text.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the error that this one wraps.
    pub fn cause(&self) -> Option<&Error> {
        self.0.cause.as_ref()
    }

    /// Tells whether a bound was reached anywhere in the chain.
    pub fn is_limit(&self) -> bool {
        self.kind() == ErrorKind::Limit || self.cause().is_some_and(Self::is_limit)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}
