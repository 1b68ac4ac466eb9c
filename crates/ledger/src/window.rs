//! From when to when, as people write it. Pure.

use jiff::{SignedDuration, Timestamp};

/// A text that is no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is neither a time, such as 2026-11-25T10:00:00Z, nor like 7d, 12h or 30m")]
pub struct NoTime;

/// Reads a time, or how long ago: `2026-11-25T10:00:00Z`, `4w`, `7d`, `12h`, `30m`.
///
/// # Errors
/// When it is neither.
pub fn time(text: &str, now: Timestamp) -> Result<Timestamp, NoTime> {
    let ago = || {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let number: i64 = number
            .parse()
            .ok()
            .filter(|number| (0..=100_000).contains(number))?;
        let minutes = match unit {
            "m" => number,
            "h" => number * 60,
            "d" => number * 24 * 60,
            "w" => number * 7 * 24 * 60,
            _ => return None,
        };
        now.checked_sub(SignedDuration::from_mins(minutes)).ok()
    };
    text.parse().ok().or_else(ago).ok_or(NoTime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_people_write_it() {
        let now: Timestamp = "2026-11-25T12:00:00Z".parse().unwrap();
        let read = |text: &str| time(text, now).ok().map(|time| time.to_string());
        assert_eq!(
            read("2026-11-24T10:00:00Z").as_deref(),
            Some("2026-11-24T10:00:00Z")
        );
        assert_eq!(read("7d").as_deref(), Some("2026-11-18T12:00:00Z"));
        assert_eq!(read("30m").as_deref(), Some("2026-11-25T11:30:00Z"));
        for text in ["", "d", "7", "-7d", "7y", "99999999999d", "ä", "1ä", "yesterday"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
