//! A token bucket in front of requests, as client-go's flow control.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::flags::ClientFlags;

/// A bucket of `burst` tokens that fills with `rate` tokens per second. Clones are the same bucket.
#[derive(Clone, Debug)]
pub(super) struct TokenBucket {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    rate: f64,
    burst: f64,
    /// Tokens at `since`; below zero while requests wait for tokens that are yet to come.
    tokens: f64,
    since: Instant,
    open: bool,
}

impl TokenBucket {
    /// None if the flags ask for no limit: a rate of zero or less.
    pub(super) fn from_flags(flags: &ClientFlags) -> Option<Self> {
        let rate = f64::from(flags.kube_api_qps);
        (rate > 0.0).then(|| Self::new(rate, f64::from(flags.kube_api_burst.max(1))))
    }

    fn new(rate: f64, burst: f64) -> Self {
        let state = State {
            rate,
            burst,
            tokens: burst,
            since: Instant::now(),
            open: false,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Lets everything through from now on.
    pub(super) fn open(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).open = true;
    }

    /// Waits for a token. Those who wait are served in the order in which they came.
    pub(super) async fn take(&self) {
        let wait = self
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take(Instant::now());
        if !wait.is_zero() {
            sleep(wait).await;
        }
    }
}

impl State {
    /// Takes a token, perhaps one that is yet to come; gives the time until it has come.
    fn take(&mut self, now: Instant) -> Duration {
        if self.open {
            return Duration::ZERO;
        }
        let elapsed = now.saturating_duration_since(self.since).as_secs_f64();
        self.tokens = (self.tokens + elapsed * self.rate).min(self.burst) - 1.0;
        self.since = now;
        Duration::from_secs_f64((-self.tokens / self.rate).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_then_the_rate_holds() {
        let (bucket, began) = (TokenBucket::new(10.0, 3.0), Instant::now());
        let mut times = Vec::new();
        for _ in 0..6 {
            bucket.take().await;
            times.push(began.elapsed().as_millis());
        }
        assert_eq!(times[..3], [0, 0, 0]);
        for (time, expected) in times[3..].iter().zip([100, 200, 300]) {
            assert!(time.abs_diff(expected) <= 3, "{times:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_bucket_fills_up_to_the_burst_only() {
        let bucket = TokenBucket::new(10.0, 2.0);
        sleep(Duration::from_secs(3600)).await;
        let began = Instant::now();
        for _ in 0..3 {
            bucket.take().await;
        }
        assert!(began.elapsed() >= Duration::from_millis(100));
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_bucket_holds_nothing_back() {
        let (bucket, began) = (TokenBucket::new(1.0, 1.0), Instant::now());
        bucket.open();
        for _ in 0..1000 {
            bucket.take().await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[test]
    fn a_negative_rate_means_no_limit() {
        for (rate, limited) in [(50.0, true), (0.0, false), (-1.0, false)] {
            let flags = ClientFlags {
                kube_api_qps: rate,
                kube_api_burst: 300,
            };
            assert_eq!(TokenBucket::from_flags(&flags).is_some(), limited, "{rate}");
        }
    }
}
