//! Limits of a report.

/// Characters of any one foreign message in a cause.
pub(super) const DETAIL_LIMIT: usize = 300;
