//! Races for a branch, counted.

use crate::context::Context;

pub(super) use git_writer::races::MAX_TRIES;

/// Counts a race that was lost, and waits a little before the next try.
pub(super) async fn lost(context: &Context) {
    context.meters.lost_race();
    git_writer::races::pause().await;
}
