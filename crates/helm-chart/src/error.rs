//! Why a chart was refused, in Helm's words.

use std::fmt;

/// A chart that could not be loaded or must not be installed.
///
/// Displayed exactly as the followed version of Helm words it, because users search for those words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    text: String,
}

/// Problem of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file or folder could not be read.
    Read,
    /// An archive is no chart archive, or holds paths that no chart may hold.
    Archive,
    /// The chart is larger than Helm, or this crate, allows.
    Limit,
    /// A file of the chart is missing or cannot be parsed.
    Format,
    /// Chart.yaml breaks a rule.
    Metadata,
    /// The values do not fit the chart and its dependencies.
    Values,
    /// The chart may be loaded, but not rendered: a library, or one without its dependencies.
    Refused,
}

impl Error {
    /// Makes an error in the words of Helm.
    pub fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
        }
    }

    /// Returns what was wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Puts words before the error, as Go does when it wraps one.
    pub fn within(self, context: impl fmt::Display) -> Self {
        Self {
            kind: self.kind,
            text: format!("{context}: {}", self.text),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

/// Words an I/O error as Go's `os` does: operation, path, and the system's words in lower case.
pub(crate) fn go_io(operation: &str, path: impl fmt::Display, error: &std::io::Error) -> Error {
    Error::new(
        ErrorKind::Read,
        format!("{operation} {path}: {}", go_errno(error)),
    )
}

/// Returns what went wrong as Go words it: `no such file or directory`.
pub(crate) fn go_errno(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}
