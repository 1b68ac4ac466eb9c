//! The commits between two, for people to read.

use serde::Deserialize;

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

/// A list of commits as a service gives it: a comparison, or a page of values at Bitbucket.
#[derive(Deserialize)]
pub(crate) struct Found {
    #[serde(default, alias = "values")]
    commits: Vec<FoundCommit>,
}

/// One of them: `sha` at GitHub and Gitea, `id` at GitLab and Bitbucket Server, `hash` at Bitbucket Cloud.
#[derive(Deserialize)]
struct FoundCommit {
    #[serde(alias = "sha", alias = "id")]
    hash: String,
    message: Option<String>,
    /// GitHub and Gitea have the message here.
    commit: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    message: Option<String>,
}

impl Found {
    pub(crate) fn own(self) -> Vec<Commit> {
        let own = |found: FoundCommit| {
            let message = found
                .message
                .or_else(|| found.commit?.message)
                .unwrap_or_default();
            Commit::new(found.hash, &message)
        };
        self.commits.into_iter().map(own).collect()
    }
}
