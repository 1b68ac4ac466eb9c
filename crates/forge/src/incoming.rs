//! Open pull requests, those from forks included, as previews see them.

use crate::pull_request::PullRequest;

/// An open pull request, with what says whether it may be acted on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// The pull request. Its branch may be in another repository: see `is_fork`.
    pub request: PullRequest,
    /// Name of the user who opened it.
    pub author: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// Whether its branch is in another repository, or not known to be in this one.
    pub is_fork: bool,
}

impl Incoming {
    /// Returns whether it is to this branch; to any, without one.
    pub(crate) fn is_to(&self, base: Option<&str>) -> bool {
        base.is_none_or(|base| self.request.base == base)
    }

    /// Names that are the same at the forge, whatever case they are written in.
    pub fn is_by(&self, name: &str) -> bool {
        self.author.eq_ignore_ascii_case(name)
    }
}
