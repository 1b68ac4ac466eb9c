//! What follows from an error.

use std::time::Duration;

/// Handling of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// It may go away by itself: again, with growing pauses.
    Retry,
    /// The remote asked for a pause of this length: again after it.
    RetryAfter(Duration),
    /// It goes away when another source changes, which wakes this one.
    Wait,
    /// Only a change of the object helps.
    Stalled,
}
