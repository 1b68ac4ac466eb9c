//! Warnings that Helm writes to standard error while it still renders a chart.
//!
//! Nothing here prints: loaders, dependencies and values collect warnings, the command line or a controller shows them.

use std::fmt;

/// One line that Helm would have logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning(String);

impl Warning {
    /// Wraps the words of a warning.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the words, in one line and without a time or a source position.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
