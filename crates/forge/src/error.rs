//! Why a forge did not do what it was asked, and whether to ask again.

use std::time::Duration;

/// Why a forge did not do what it was asked. Its text holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    text: String,
    /// Whether another attempt makes sense.
    pub retry: Retry,
}

/// Whether another attempt makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// No: the same will be refused again.
    Never,
    /// Yes, after a while.
    Backoff,
    /// Yes, after the time that the forge asks for.
    After(Duration),
}

impl Error {
    /// An error that lasts until something is changed.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self::new(text, Retry::Never)
    }

    /// An error that may be gone the next time.
    pub fn passing(text: impl Into<String>) -> Self {
        Self::new(text, Retry::Backoff)
    }

    /// An error with this text.
    pub fn new(text: impl Into<String>, retry: Retry) -> Self {
        Self {
            text: text.into(),
            retry,
        }
    }

    /// The same with a leading text.
    #[must_use]
    pub fn within(mut self, context: &str) -> Self {
        self.text = format!("{context}: {}", self.text);
        self
    }
}
