//! `Retry-After`: when a forge that has had enough wants to be asked again. Pure.

use std::time::Duration;

use http::header::{HeaderMap, RETRY_AFTER};
use jiff::Timestamp;
use jiff::fmt::rfc2822;

/// No forge can silence anyone for longer.
const LONGEST: u64 = 3600;

/// The pause that the headers of an answer ask for, from one second to one hour.
pub fn pause(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(until) = rfc2822::parse(value) {
        let seconds = until.timestamp().duration_since(now).as_secs();
        return Some(bounded(u64::try_from(seconds).unwrap_or_default()));
    }
    // Discord writes fractions
    let (whole, fraction) = value.split_once('.').unwrap_or((value, "0"));
    let whole: u64 = whole.parse().ok()?;
    let begun = fraction.bytes().any(|digit| digit != b'0');
    Some(bounded(whole.saturating_add(u64::from(begun))))
}

/// The pause of so many seconds, within what is allowed.
pub fn bounded(seconds: u64) -> Duration {
    Duration::from_secs(seconds.clamp(1, LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_fractions_and_dates_are_read_and_bounded() {
        let now: Timestamp = "2026-11-22T03:00:00Z".parse().unwrap();
        let cases = [
            ("30", Some(30)),
            (" 5 ", Some(5)),
            ("0", Some(1)),
            ("1.5", Some(2)),
            ("2.000", Some(2)),
            ("99999999999", Some(3600)),
            ("Sun, 22 Nov 2026 03:02:00 GMT", Some(120)),
            ("Sun, 22 Nov 2026 01:00:00 GMT", Some(1)),
            ("Sun, 22 Nov 2099 01:00:00 GMT", Some(3600)),
            ("soon", None),
            ("-1", None),
        ];
        for (value, seconds) in cases {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
            assert_eq!(
                pause(&headers, now).map(|pause| pause.as_secs()),
                seconds,
                "{value}"
            );
        }
        assert_eq!(pause(&HeaderMap::new(), now), None);
    }
}
