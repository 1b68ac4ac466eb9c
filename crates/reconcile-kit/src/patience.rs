//! When an object is looked at again, and how soon its waiting is told.

use std::time::Duration;

use jiff::Timestamp;

/// Time after which a wait is reported; most objects are ready within it.
const PATIENCE: Duration = Duration::from_secs(1);

/// For how long an artifact may be missing before the status says so: source-controller is being replaced, or the source has another
/// revision already.
const PATIENCE_FOR_ARTIFACT: Duration = Duration::from_secs(20);
/// When it is asked for again meanwhile.
const QUIET_RETRY: Duration = Duration::from_secs(1);

/// Returns when an artifact that is missing is asked for again, without a word of it; None when it is time to report it.
pub fn quiet_retry(missing_since: &mut Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    let since = *missing_since.get_or_insert(now);
    let missing_for = now.duration_since(since).unsigned_abs();
    (missing_for < PATIENCE_FOR_ARTIFACT).then_some(QUIET_RETRY)
}

/// Returns for how long an object that waits for another is not told of yet; None when it is time. Sources and dependencies that
/// were created together with it are ready sooner, as a rule; a status and an event for that would only be noise.
pub fn left(blocked_since: &mut Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    let since = *blocked_since.get_or_insert(now);
    PATIENCE
        .checked_sub(now.duration_since(since).unsigned_abs())
        .filter(|rest| !rest.is_zero())
}

/// Returns how long it is until then; nothing if that has passed.
pub fn until(then: Timestamp) -> Duration {
    then.duration_since(Timestamp::now())
        .try_into()
        .unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_artifact_is_told_after_twenty_seconds_without_a_break() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut since = None;
        assert_eq!(quiet_retry(&mut since, at(100)), Some(QUIET_RETRY));
        assert_eq!(quiet_retry(&mut since, at(119)), Some(QUIET_RETRY));
        assert_eq!(quiet_retry(&mut since, at(120)), None);
        // It was there once.
        since = None;
        assert_eq!(quiet_retry(&mut since, at(121)), Some(QUIET_RETRY));
    }

    #[test]
    fn waiting_is_told_after_a_second() {
        let at = |millis| Timestamp::from_millisecond(millis).unwrap();
        let mut since = None;
        assert_eq!(left(&mut since, at(0)), Some(Duration::from_secs(1)));
        assert_eq!(left(&mut since, at(400)), Some(Duration::from_millis(600)));
        assert_eq!(left(&mut since, at(1000)), None);
        assert_eq!(until(at(0)), Duration::ZERO);
    }
}
