//! Tokens that are still good, bounded in number and in time.
//!
//! Who asks for a token that someone else is getting at this moment waits for that one. As in Flux a token is used
//! for four fifths of its life, and no longer than `--token-cache-max-duration`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aws_lc_rs::digest::{SHA256, digest};

use crate::exchange::Error;
use crate::token::Token;

type Slot = Arc<tokio::sync::Mutex<Option<(Token, Instant)>>>;

/// Tokens by what they are for.
pub struct Cache {
    capacity: usize,
    longest: Duration,
    slots: Mutex<HashMap<[u8; 32], (Slot, u64)>>,
    clock: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
    issued: AtomicU64,
    failures: AtomicU64,
}

/// Counters of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Tokens that were there.
    pub hits: u64,
    /// Tokens that were not.
    pub misses: u64,
    /// Tokens that made room for others.
    pub evictions: u64,
    /// Tokens that were made.
    pub issued: u64,
    /// Tokens that could not be had.
    pub failures: u64,
    /// Tokens that are kept.
    pub kept: usize,
}

impl Cache {
    /// A cache for so many tokens; none are kept when it is zero.
    #[must_use]
    pub fn new(capacity: usize, longest: Duration) -> Self {
        Self {
            capacity,
            longest,
            slots: Mutex::default(),
            clock: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            issued: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
            issued: self.issued.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            kept: self.slots.lock().unwrap_or_else(PoisonError::into_inner).len(),
        }
    }

    /// The token of these parts, made if there is none that is still good. The parts may hold secrets: only their
    /// digest is kept.
    pub(crate) async fn get_or(
        &self,
        parts: &[&str],
        make: impl Future<Output = Result<Token, Error>>,
    ) -> Result<Token, Error> {
        if self.capacity == 0 {
            return make.await;
        }
        let slot = self.slot(parts);
        let mut slot = slot.lock().await;
        if let Some((token, until)) = slot.as_ref()
            && Instant::now() < *until
        {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(token.clone());
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        *slot = None;
        let made = make.await.inspect_err(|_| {
            self.failures.fetch_add(1, Ordering::Relaxed);
        });
        let token = made?;
        self.issued.fetch_add(1, Ordering::Relaxed);
        if let Some(lifetime) = self.lifetime(&token) {
            *slot = Some((token.clone(), Instant::now() + lifetime));
        }
        Ok(token)
    }

    fn lifetime(&self, token: &Token) -> Option<Duration> {
        let left = token.expires?.duration_since(jiff::Timestamp::now());
        let left = Duration::try_from(left).ok()?; // negative: it is over already
        Some((left / 5 * 4).min(self.longest))
    }

    fn slot(&self, parts: &[&str]) -> Slot {
        let key = key(parts);
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((slot, used)) = slots.get_mut(&key) {
            *used = now;
            return slot.clone();
        }
        if slots.len() >= self.capacity {
            let oldest = slots
                .iter()
                .min_by_key(|(_, (_, used))| *used)
                .map(|(key, _)| *key);
            if let Some(oldest) = oldest {
                slots.remove(&oldest);
                self.evictions.fetch_add(1, Ordering::Relaxed);
            }
        }
        slots.entry(key).or_insert((Slot::default(), now)).0.clone()
    }
}

/// A digest of the parts, in which no part can pretend to be two.
fn key(parts: &[&str]) -> [u8; 32] {
    let text: String = parts
        .iter()
        .map(|part| format!("{}:{part}", part.len()))
        .collect();
    let mut key = [0; 32];
    key.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    key
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::token::Secret;

    fn token(name: &str, seconds: i64) -> Token {
        Token::bearer(name.to_owned(), seconds, Timestamp::now())
    }

    async fn get(cache: &Cache, key: &str, made: Token) -> Secret {
        cache.get_or(&[key], async { Ok(made) }).await.unwrap().secret
    }

    fn bearer(name: &str) -> Secret {
        Secret::Bearer(name.to_owned())
    }

    #[tokio::test]
    async fn a_token_is_kept_while_it_is_good() {
        let cache = Cache::new(2, Duration::from_secs(3600));
        assert_eq!(get(&cache, "a", token("1", 600)).await, bearer("1"));
        assert_eq!(get(&cache, "a", token("2", 600)).await, bearer("1"));
        assert_eq!(get(&cache, "over", token("1", 0)).await, bearer("1"));
        assert_eq!(get(&cache, "over", token("2", 0)).await, bearer("2"));
        let counts = cache.counts();
        assert_eq!((counts.hits, counts.misses), (1, 3));
    }

    #[tokio::test]
    async fn the_one_that_was_not_used_longest_makes_room() {
        let cache = Cache::new(2, Duration::from_secs(3600));
        for key in ["a", "b", "a", "c"] {
            get(&cache, key, token(key, 600)).await;
        }
        assert_eq!(cache.counts().kept, 2);
        assert_eq!(cache.counts().evictions, 1);
        assert_eq!(get(&cache, "a", token("new", 600)).await, bearer("a"));
        assert_eq!(get(&cache, "b", token("new", 600)).await, bearer("new"));
    }

    #[tokio::test]
    async fn nothing_is_kept_without_room_or_time() {
        for (capacity, longest) in [(0, 3600), (2, 0)] {
            let cache = Cache::new(capacity, Duration::from_secs(longest));
            get(&cache, "a", token("1", 600)).await;
            assert_eq!(get(&cache, "a", token("2", 600)).await, bearer("2"));
        }
    }

    #[tokio::test]
    async fn a_token_that_cannot_be_had_is_counted_and_asked_for_again() {
        let cache = Cache::new(2, Duration::from_secs(3600));
        let refused = async {
            Err(Error::Answer {
                url: "u".to_owned(),
                problem: "p".to_owned(),
            })
        };
        assert!(cache.get_or(&["a"], refused).await.is_err());
        assert_eq!(get(&cache, "a", token("1", 600)).await, bearer("1"));
        let counts = cache.counts();
        assert_eq!((counts.misses, counts.issued, counts.failures), (2, 1, 1));
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(key(&["a", "b"]), key(&["ab"]));
        assert_ne!(key(&["a", "b"]), key(&["a1:b"]));
    }

    #[test]
    fn debug_output_shows_no_secret() {
        assert!(!format!("{:?}", token("hunter2", 1)).contains("hunter2"));
    }
}
