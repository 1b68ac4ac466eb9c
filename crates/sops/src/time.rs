//! Times as Go reads and writes them in RFC 3339.

use std::fmt::Write as _;

/// A time, as text: what Go's `RFC3339Nano` gives.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Time(String);

impl Time {
    /// Takes what was written by such a rule already.
    pub(crate) fn of_normal_text(text: String) -> Self {
        Self(text)
    }

    /// Reads RFC 3339 as Go's `time.Parse` does, and writes it in the normal way: no zeros at the end of a fraction,
    /// `Z` for no offset.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
        if bytes.len() < 20 || separators.iter().any(|(at, byte)| bytes[*at] != *byte) {
            return None;
        }
        let number = |from: usize, to: usize| {
            let digits = &bytes[from..to];
            let text = std::str::from_utf8(digits).ok()?;
            digits
                .iter()
                .all(u8::is_ascii_digit)
                .then(|| text.parse::<u32>().ok())?
        };
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let in_range = (1..=12).contains(&month) && (1..=days_in(month, year)).contains(&day);
        if !in_range || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let mut normal = text.get(..19)?.to_owned();
        let rest = take_fraction(text.get(19..)?, &mut normal)?;
        normal.push_str(zone(rest)?);
        Some(Self(normal))
    }

    /// With a fraction of a second, if it has one.
    pub(crate) fn as_nanoseconds(&self) -> &str {
        &self.0
    }

    /// Without a fraction of a second.
    pub(crate) fn as_seconds(&self) -> String {
        let (seconds, rest) = self.0.split_at(19.min(self.0.len()));
        let zone = rest.find(['Z', '+', '-']).map_or("", |at| &rest[at..]);
        let mut text = String::with_capacity(25);
        let _ = write!(text, "{seconds}{zone}"); // writing to a String cannot fail
        text
    }
}

/// Takes a fraction off the front; up to nine digits count.
fn take_fraction<'a>(rest: &'a str, normal: &mut String) -> Option<&'a str> {
    let Some(digits) = rest.strip_prefix(['.', ',']) else {
        return Some(rest);
    };
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    let kept = digits.get(..count.min(9))?.trim_end_matches('0');
    if !kept.is_empty() {
        normal.push('.');
        normal.push_str(kept);
    }
    (count > 0).then(|| &digits[count..])
}

fn zone(text: &str) -> Option<&str> {
    match text.as_bytes() {
        b"Z" | b"+00:00" | b"-00:00" => Some("Z"),
        [b'+' | b'-', h @ b'0'..=b'2', i, b':', j @ b'0'..=b'5', k] => {
            let digits = [i, j, k].iter().all(|digit| digit.is_ascii_digit());
            let hours = (h - b'0') * 10 + i.wrapping_sub(b'0');
            (digits && hours < 24).then_some(text)
        }
        _ => None,
    }
}

fn days_in(month: u32, year: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_one_way() {
        for (text, nanoseconds, seconds) in [
            (
                "2024-02-29T01:02:03Z",
                "2024-02-29T01:02:03Z",
                "2024-02-29T01:02:03Z",
            ),
            (
                "2024-01-01T01:02:03.120Z",
                "2024-01-01T01:02:03.12Z",
                "2024-01-01T01:02:03Z",
            ),
            (
                "2024-01-01T01:02:03+00:00",
                "2024-01-01T01:02:03Z",
                "2024-01-01T01:02:03Z",
            ),
            (
                "2024-01-01T01:02:03.5-07:30",
                "2024-01-01T01:02:03.5-07:30",
                "2024-01-01T01:02:03-07:30",
            ),
        ] {
            let time = Time::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(time.as_nanoseconds(), nanoseconds);
            assert_eq!(time.as_seconds(), seconds);
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2024-01-01",
            "2023-02-29T01:02:03Z",
            "2024-13-01T01:02:03Z",
            "2024-01-01 01:02:03Z",
            "2024-01-01T01:02:03",
            "2024-01-01T01:02:03.Z",
            "2024-01-01T24:02:03Z",
            "2024-01-01T01:02:03+99:00",
            "2024-01-01T01:02:0éZ",
        ] {
            assert!(Time::parse(text).is_none(), "{text}");
        }
    }
}
