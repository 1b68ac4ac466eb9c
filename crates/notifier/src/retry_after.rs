//! `Retry-After`: when a service that has had enough wants to be asked again. Pure.

use std::time::Duration;

use http::header::{HeaderMap, RETRY_AFTER};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use serde_json::Value;

/// No service can silence a Provider for longer.
const LONGEST: u64 = 3600;

/// The pause that the headers of an answer ask for, from one second to one hour.
pub(crate) fn pause(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
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

/// The pause that the JSON of an answer asks for: Telegram, Discord, Zulip and Matrix say it there.
pub(crate) fn pause_in(answer: &Value) -> Option<Duration> {
    let seconds = ["/parameters/retry_after", "/retry_after", "/retry-after"];
    let seconds = seconds.iter().find_map(|at| answer.pointer(at)?.as_f64());
    let seconds = seconds.or_else(|| Some(answer.get("retry_after_ms")?.as_f64()? / 1_000.0))?;
    (seconds >= 0.0).then(|| bounded(seconds.ceil() as u64))
}

/// The pause of so many seconds, within what is allowed.
pub(crate) fn bounded(seconds: u64) -> Duration {
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

    #[test]
    fn pauses_in_answers_are_read() {
        let cases = [
            (r#"{"parameters":{"retry_after":5}}"#, Some(5)),
            (r#"{"retry_after":0.4}"#, Some(1)),
            (r#"{"retry-after":28.7}"#, Some(29)),
            (r#"{"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":2000}"#, Some(2)),
            (r#"{"retry_after":-3}"#, None),
            (r#"{"retry_after":1e300}"#, Some(3600)),
            (r#"{"retry_after":"5"}"#, None),
            ("[]", None),
        ];
        for (answer, seconds) in cases {
            let answer = serde_json::from_str(answer).unwrap();
            assert_eq!(
                pause_in(&answer).map(|pause| pause.as_secs()),
                seconds,
                "{answer}"
            );
        }
    }
}
