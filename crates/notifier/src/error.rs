//! Why it could not be said, and whether to try again.

use std::time::Duration;

use crate::mask::Mask;

/// Why it could not be said. Its text is one line of bounded length and holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    text: String,
    /// Whether another attempt makes sense.
    pub retry: Retry,
    /// The thread that it was to go to is no longer there.
    pub(crate) thread_is_gone: bool,
}

/// Whether another attempt makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// No: the same will be refused again.
    Never,
    /// Yes, after a while.
    Backoff,
    /// Yes, after the time that the service asks for.
    After(Duration),
}

impl From<forge::Error> for Error {
    fn from(error: forge::Error) -> Self {
        let retry = match error.retry {
            forge::Retry::Never => Retry::Never,
            forge::Retry::Backoff => Retry::Backoff,
            forge::Retry::After(pause) => Retry::After(pause),
        };
        Self::new(error.to_string(), retry)
    }
}

impl Error {
    /// The longest text in bytes.
    pub const MAX_LENGTH: usize = 1024;

    /// It cannot be said to this target, whatever is tried.
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(text, Retry::Never)
    }

    /// It may work the next time.
    pub(crate) fn passing(text: impl Into<String>) -> Self {
        Self::new(text, Retry::Backoff)
    }

    pub(crate) fn new(text: impl Into<String>, retry: Retry) -> Self {
        Self {
            text: text.into(),
            retry,
            thread_is_gone: false,
        }
    }

    /// The thread is gone: without it, it can be said.
    pub(crate) fn thread_is_gone(mut self) -> Self {
        self.thread_is_gone = true;
        self
    }

    /// As the API of a Git service passes it on.
    pub(crate) fn into_forge(self) -> forge::Error {
        let retry = match self.retry {
            Retry::Never => forge::Retry::Never,
            Retry::Backoff => forge::Retry::Backoff,
            Retry::After(pause) => forge::Retry::After(pause),
        };
        forge::Error::new(self.text, retry)
    }

    /// The same with a leading text.
    #[must_use]
    pub(crate) fn within(mut self, context: &str) -> Self {
        self.text = format!("{context}: {}", self.text);
        self
    }

    /// The same without secrets, on one line, and no longer than allowed. Every error passes here on its way out.
    #[must_use]
    pub(crate) fn masked(mut self, mask: &Mask) -> Self {
        self.text = mask.line(&self.text, Self::MAX_LENGTH);
        self
    }
}
