//! The commits between two, for people to read.

/// Commits that are asked for.
pub(crate) const MOST: &str = "50";

/// A commit, in the words of whoever made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its hash.
    pub hash: String,
    /// The first line of its message.
    pub subject: String,
}

impl Commit {
    pub(crate) fn new(hash: String, message: &str) -> Self {
        let subject = message.trim_start().lines().next().unwrap_or_default();
        Self {
            hash,
            subject: subject.to_owned(),
        }
    }
}
