//! A line of the output.

use delivery_graph::one_line;

use crate::cluster::output::Tone;

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Good,
    /// To be known; nothing is wrong.
    Note,
    Bad,
}

impl Level {
    pub(super) fn mark(self) -> (&'static str, Tone) {
        match self {
            Self::Good => ("✔", Tone::Good),
            Self::Note => ("•", Tone::Open),
            Self::Bad => ("✗", Tone::Bad),
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Bad => "failed",
        }
    }
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// For programs: it does not change.
    pub(super) check: &'static str,
    pub(super) level: Level,
    pub(super) text: String,
}

impl Line {
    pub(super) fn new(check: &'static str, level: Level, text: impl Into<String>) -> Self {
        let text = one_line(&text.into());
        Self { check, level, text }
    }
}
