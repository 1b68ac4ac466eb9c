//! `Retry-After`: when a server that has had enough wants to be asked again. Pure.

use std::num::NonZeroU32;
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// No server can silence an object for longer.
const LONGEST: u64 = 3600;

/// A server asked for a pause. It stands at the end of the chain of the error that says so, whatever wraps that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it asks for a pause of {0} s")]
pub struct RetryAfter(NonZeroU32);

impl RetryAfter {
    /// Reads the header of an answer that may carry it: too many requests, or a service that is down for a while.
    pub fn new(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Option<Self> {
        let waits = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        );
        let value = headers.get(RETRY_AFTER).filter(|_| waits)?.to_str().ok()?.trim();
        let pause = match value.parse::<u64>() {
            Ok(seconds) => seconds,
            Err(_) => {
                let until = rfc2822::parse(value).ok()?.timestamp();
                u64::try_from(until.duration_since(now).as_secs()).unwrap_or_default()
            }
        };
        NonZeroU32::new(u32::try_from(pause.clamp(1, LONGEST)).ok()?).map(Self)
    }

    /// The pause, from one second to one hour.
    pub fn pause(self) -> Duration {
        Duration::from_secs(u64::from(self.0.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_read_and_bounded() {
        let now: Timestamp = "2026-11-22T03:00:00Z".parse().unwrap();
        let pause = |status: u16, value: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
            let status = StatusCode::from_u16(status).unwrap();
            RetryAfter::new(status, &headers, now).map(|retry| retry.pause().as_secs())
        };
        let cases = [
            (429, "30", Some(30)),
            (503, " 5 ", Some(5)),
            (429, "0", Some(1)),
            (429, "99999999999", Some(3600)),
            (429, "Sun, 22 Nov 2026 03:02:00 GMT", Some(120)),
            (429, "Sun, 22 Nov 2026 01:00:00 GMT", Some(1)),
            (429, "Sun, 22 Nov 2099 01:00:00 GMT", Some(3600)),
            (429, "soon", None),
            (429, "-1", None),
            (404, "30", None),
        ];
        for (status, value, seconds) in cases {
            assert_eq!(pause(status, value), seconds, "{status} {value}");
        }
        assert_eq!(
            RetryAfter::new(StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new(), now),
            None
        );
    }
}
