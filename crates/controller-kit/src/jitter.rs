//! Spreading intervals, so that a thousand objects with the same interval do not all come due at once.

use std::hash::{BuildHasher as _, Hasher as _};
use std::time::Duration;

/// Makes `interval` up to `percentage` percent longer or shorter.
///
/// `random` is a number in 0..1: 0 gives the shortest, 0.5 the interval itself. As in Flux a zero interval
/// stays zero. See [`random`] for a source of numbers.
pub fn jitter(interval: Duration, percentage: u8, random: f64) -> Duration {
    let spread = f64::from(percentage.min(99)) / 100.0;
    interval.mul_f64(1.0 + spread * (2.0 * random.clamp(0.0, 1.0) - 1.0))
}

/// A number in 0..1 that differs between processes and between calls. Good for spreading, not for secrets.
pub fn random() -> f64 {
    // 53 bits are what an f64 holds.
    (random_bits() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Each `RandomState` is keyed from the system's randomness and a counter, so its empty hash is a new number.
pub(crate) fn random_bits() -> u64 {
    std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_stays_within_the_percentage() {
        let hour = Duration::from_secs(3600);
        let cases = [
            (5, 0.0, 3420),
            (5, 0.5, 3600),
            (5, 1.0, 3780),
            (0, 0.9, 3600),
            (99, 0.0, 36),
            (200, 0.0, 36),
        ];
        for (percentage, random, seconds) in cases {
            assert_eq!(
                jitter(hour, percentage, random).as_secs_f64().round(),
                f64::from(seconds),
                "{percentage} {random}"
            );
        }
        assert_eq!(jitter(Duration::ZERO, 5, 0.9), Duration::ZERO);
    }

    #[test]
    fn random_numbers_fill_the_range() {
        let numbers: Vec<f64> = (0..1000).map(|_| random()).collect();
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
        for tenth in 0..10 {
            let (low, high) = (f64::from(tenth) / 10.0, f64::from(tenth + 1) / 10.0);
            assert!(
                numbers.iter().any(|number| (low..high).contains(number)),
                "none in {low}..{high}"
            );
        }
    }
}
