//! How many calls an address may make to a Receiver: a bucket each, which fills with time. Many services and Receivers may
//! be behind the address of one proxy: those that call often leave the others theirs.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Buckets that are told apart; all other addresses share one for each Receiver.
const MOST_BUCKETS: usize = 10_000;
/// How many seconds' worth may come at once.
const BURST_SECONDS: f64 = 5.0;
/// Address that stands for all callers beyond the limit.
const OTHERS: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// Counts the calls of each address to each Receiver.
#[derive(Debug)]
pub struct Limiter {
    per_second: f64,
    buckets: Mutex<HashMap<Place, Bucket>>,
}

/// Caller, and the UID of the Receiver.
type Place = (IpAddr, String);

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Limiter {
    /// Allows so many in a second; 0 allows all.
    pub fn new(per_second: u32) -> Self {
        Self {
            per_second: per_second.into(),
            buckets: Mutex::default(),
        }
    }

    /// Counts a call to a Receiver, known by its UID, which is empty for paths of no one; false if it is one too many.
    pub fn admits(&self, address: IpAddr, receiver: &str, now: Instant) -> bool {
        if self.per_second == 0.0 {
            return true;
        }
        let full = self.per_second * BURST_SECONDS;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut place = (network(address), receiver.to_owned());
        if buckets.len() >= MOST_BUCKETS && !buckets.contains_key(&place) {
            // A bucket that is full again is as good as none.
            buckets.retain(|_, bucket| bucket.filled(self.per_second, now) < full);
            if buckets.len() >= MOST_BUCKETS {
                place.0 = OTHERS;
            }
        }
        let bucket = buckets.entry(place).or_insert(Bucket { left: full, at: now });
        bucket.left = bucket.filled(self.per_second, now).min(full);
        bucket.at = now;
        let is_admitted = bucket.left >= 1.0;
        if is_admitted {
            bucket.left -= 1.0;
        }
        is_admitted
    }
}

impl Bucket {
    fn filled(self, per_second: f64, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.at);
        self.left + passed.as_secs_f64() * per_second
    }
}

/// Returns the network of an address: the owner of one IPv6 address has 2⁶⁴ of them.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_burst_is_admitted_and_then_so_many_in_a_second() {
        let (limiter, start) = (Limiter::new(2), Instant::now());
        let admitted = |seconds: u64, address: IpAddr| {
            let now = start + Duration::from_secs(seconds);
            (0..100).filter(|_| limiter.admits(address, "", now)).count()
        };
        assert_eq!(admitted(0, address("192.0.2.1")), 10);
        assert_eq!(admitted(1, address("192.0.2.1")), 2);
        assert_eq!(admitted(1, address("192.0.2.2")), 10);
        assert_eq!(admitted(1000, address("::ffff:192.0.2.1")), 10);
        assert_eq!(admitted(1000, address("192.0.2.1")), 0);
        assert_eq!(
            admitted(0, address("2001:db8::1")) + admitted(0, address("2001:db8::ffff:2")),
            10
        );
    }

    #[test]
    fn nothing_is_limited_at_zero() {
        let limiter = Limiter::new(0);
        assert!((0..10_000).all(|_| limiter.admits(address("192.0.2.1"), "", Instant::now())));
    }

    #[test]
    fn calls_to_one_receiver_leave_those_to_another_theirs() {
        let (limiter, now) = (Limiter::new(1), Instant::now());
        let admits = |receiver| limiter.admits(address("192.0.2.1"), receiver, now);
        assert_eq!((0..100).filter(|_| admits("")).count(), 5);
        assert_eq!((0..100).filter(|_| admits("a")).count(), 5);
        assert!(admits("b") && !admits("a") && !admits(""));
    }

    #[test]
    fn very_many_addresses_share_what_is_left() {
        let (limiter, now) = (Limiter::new(1), Instant::now());
        for number in 0..MOST_BUCKETS as u32 {
            assert!(limiter.admits(IpAddr::V4((number + 1).into()), "", now));
        }
        let more =
            (0..100).filter(|number| limiter.admits(IpAddr::V4((0xC000_0000 + number).into()), "", now));
        assert_eq!(more.count(), 5);
        let later = now + Duration::from_secs(60);
        assert!(limiter.admits(address("192.0.2.1"), "", later));
        assert_eq!(limiter.buckets.lock().unwrap().len(), 1);
    }
}
