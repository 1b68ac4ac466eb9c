//! When a service that has had enough wants to be asked again, by the JSON of its answer. Pure.

use std::time::Duration;

use forge::retry_after::bounded;
use serde_json::Value;

/// The pause that the JSON of an answer asks for: Telegram, Discord, Zulip and Matrix say it there.
pub(crate) fn pause_in(answer: &Value) -> Option<Duration> {
    let seconds = ["/parameters/retry_after", "/retry_after", "/retry-after"];
    let seconds = seconds.iter().find_map(|at| answer.pointer(at)?.as_f64());
    let seconds = seconds.or_else(|| Some(answer.get("retry_after_ms")?.as_f64()? / 1_000.0))?;
    (seconds >= 0.0).then(|| bounded(seconds.ceil() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

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
