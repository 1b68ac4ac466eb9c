//! How soon an object comes back: intervals are a tenant's, and each return costs a registry or a Git server a request.

use std::time::Duration;

use controller_kit::jitter::{jitter, random};
use controller_kit::queue::Outcome;

/// Shorter intervals are taken for this one.
const SHORTEST: Duration = Duration::from_secs(1);

/// When to come back after success. An interval of zero means that the object is looked at only when someone asks for it.
pub(crate) fn after(interval: Duration, jitter_percentage: u8) -> Outcome {
    if interval.is_zero() {
        return Outcome::Done;
    }
    Outcome::After(jitter(interval.max(SHORTEST), jitter_percentage, random()))
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
}
