//! What is done when someone else was faster: fetch, edit and push again, a few times.

use std::time::Duration;

use controller_kit::jitter::random;

/// How often a commit is made anew because someone else was faster.
pub const MAX_TRIES: u32 = 10;
/// Longest pause before the next try.
const PAUSE: Duration = Duration::from_millis(400);

/// Waits a little, so that two that lost do not meet again.
pub async fn pause() {
    tokio::time::sleep(PAUSE.mul_f64(random())).await;
}
