//! The commit that an image is built from.

use jiff::Timestamp;

/// The commit that is built.
pub(super) struct Commit {
    pub(super) id: String,
    pub(super) time: Timestamp,
    /// True if the tree is the commit's.
    pub(super) clean: bool,
}
