//! Findings that a forge shows beside the lines of a commit.

use crate::check::State;

/// As many as GitHub takes at once.
pub(crate) const MAX: usize = 50;

/// A check of a commit, with what it found.
#[derive(Debug, Clone, Copy)]
pub struct Annotated<'a> {
    /// The commit.
    pub commit: &'a str,
    /// Which distinguishes it from other checks of the commit.
    pub name: &'a str,
    /// How it ended.
    pub state: State,
    /// The result in a line.
    pub title: &'a str,
    /// The findings, of which the first 50 are shown.
    pub annotations: &'a [Annotation],
}

/// A finding in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// Path of the file in the repository.
    pub file: String,
    /// The line, from 1 on.
    pub line: u32,
    /// Whether it fails the check, or warns.
    pub is_failure: bool,
    /// The rule.
    pub title: String,
    /// What is wrong. It is shown as plain text.
    pub message: String,
}
