//! Objects that a GitRepository refers to.

use remote_access::git;

use super::include::Inclusion;
use super::verify::Keys;

/// Objects that a GitRepository refers to.
#[derive(Clone, Default)]
pub(crate) struct References {
    /// By which it is reached.
    pub(super) access: git::References,
    /// Public keys, or why there are none. That matters only when there is something to verify.
    pub(super) keys: Option<Result<Keys, String>>,
    pub(super) inclusions: Vec<Inclusion>,
}
