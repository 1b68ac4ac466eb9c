//! How soon an object comes back: intervals are a tenant's, and each return costs a registry or a Git server a request.

use std::time::Duration;

use jiff::Timestamp;

use crate::jitter::{jitter, random};
use crate::queue::Outcome;

/// Shorter intervals are taken for this one.
const SHORTEST: Duration = Duration::from_secs(1);

/// When to come back after success. An interval of zero means that the object is looked at only when someone asks for it.
pub fn after(interval: Duration, jitter_percentage: u8) -> Outcome {
    if interval.is_zero() {
        return Outcome::Done;
    }
    Outcome::After(jitter(interval.max(SHORTEST), jitter_percentage, random()))
}

/// The same, and sooner if something is due before.
pub fn by(outcome: Outcome, due: Option<Timestamp>, now: Timestamp) -> Outcome {
    let Some(due) = due else {
        return outcome;
    };
    let until = Duration::try_from(due.duration_since(now)).unwrap_or_default();
    let until = until.max(SHORTEST);
    match outcome {
        Outcome::After(pause) => Outcome::After(pause.min(until)),
        _ => Outcome::After(until),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_interval_makes_a_storm() {
        let after = |interval| after(interval, 0);
        assert_eq!(after(Duration::ZERO), Outcome::Done);
        assert_eq!(after(Duration::from_millis(1)), Outcome::After(SHORTEST));
        assert_eq!(
            after(Duration::from_secs(300)),
            Outcome::After(Duration::from_secs(300))
        );
    }

    #[test]
    fn what_is_due_comes_before_the_interval() {
        let now = Timestamp::UNIX_EPOCH;
        let at = |seconds| Some(Timestamp::from_second(seconds).unwrap());
        let hour = Outcome::After(Duration::from_secs(3600));
        let minute = Outcome::After(Duration::from_secs(60));
        assert_eq!(by(hour, at(60), now), minute);
        assert_eq!(by(minute, at(3600), now), minute);
        assert_eq!(by(Outcome::Done, at(60), now), minute);
        assert_eq!(by(hour, at(-60), now), Outcome::After(SHORTEST));
        assert_eq!(by(Outcome::Done, None, now), Outcome::Done);
    }
}
