//! How long a failing key waits.

use std::time::Duration;

use crate::flags::RateLimiterFlags;

/// Exponential backoff per key: the shortest wait, doubled with each failure in a row, up to the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Wait after the first failure.
    pub min: Duration,
    /// Longest wait.
    pub max: Duration,
}

impl Backoff {
    /// The wait after this many failures that went before (0 for the first failure).
    pub fn delay(&self, earlier_failures: u32) -> Duration {
        let factor = 2_u32.checked_pow(earlier_failures);
        factor
            .and_then(|factor| self.min.checked_mul(factor))
            .map_or(self.max, |delay| delay.min(self.max))
    }
}

impl From<RateLimiterFlags> for Backoff {
    fn from(flags: RateLimiterFlags) -> Self {
        Self {
            min: flags.min_retry_delay,
            max: flags.max_retry_delay,
        }
    }
}

impl From<&RateLimiterFlags> for Backoff {
    fn from(flags: &RateLimiterFlags) -> Self {
        (*flags).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_the_longest() {
        let backoff = Backoff {
            min: Duration::from_millis(750),
            max: Duration::from_secs(900),
        };
        let cases = [
            (0, 750),
            (1, 1_500),
            (2, 3_000),
            (10, 768_000),
            (11, 900_000),
            (31, 900_000),
            (u32::MAX, 900_000),
        ];
        for (failures, milliseconds) in cases {
            assert_eq!(
                backoff.delay(failures),
                Duration::from_millis(milliseconds),
                "{failures}"
            );
        }
    }

    #[test]
    fn a_shortest_wait_over_the_longest_is_cut() {
        let backoff = Backoff {
            min: Duration::from_secs(10),
            max: Duration::from_secs(5),
        };
        assert_eq!(backoff.delay(0), Duration::from_secs(5));
    }
}
