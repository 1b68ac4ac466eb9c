//! The query of a repository's URL, and the durations in it, as Go's `net/url` and `time` read them.

use std::collections::BTreeMap;
use std::time::Duration;

/// Reads a query; the first value of a name counts. A query that is malformed says nothing at all.
pub(super) fn parse(query: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(name), Some(value), false) = (unescape(name), unescape(value), pair.contains(';')) else {
            return BTreeMap::new();
        };
        values.entry(name).or_insert(value);
    }
    values
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let (digits, behind) = rest.split_at_checked(2)?;
                let digits = std::str::from_utf8(digits).ok()?;
                if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    return None;
                }
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = behind;
            }
            other => bytes.push(*other),
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads a number of seconds or a Go duration (`1m30s`); None for what is neither, or not positive.
pub(super) fn duration(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<i64>()
        && seconds > 0
    {
        return u64::try_from(seconds).ok().map(Duration::from_secs);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(digits);
        let unit_length = behind
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit_length);
        let unit = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * unit;
        rest = behind;
    }
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| !duration.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_unescaped_and_malformed_ones_say_nothing() {
        let query = parse("ref=a%2Fb+c&ref=other&submodules&timeout=61");
        assert_eq!(query.get("ref").map(String::as_str), Some("a/b c"));
        assert_eq!(query.get("submodules").map(String::as_str), Some(""));
        assert!(parse("ref=a&x=%zz").is_empty());
        assert!(parse("ref=a;b").is_empty());
    }

    #[test]
    fn durations_are_seconds_or_have_units() {
        for (text, milliseconds) in [
            ("61", Some(61_000)),
            ("1m1s", Some(61_000)),
            ("1.5s", Some(1500)),
            ("+20ms", Some(20)),
            ("0", None),
            ("-5", None),
            ("5x", None),
            ("s", None),
            ("1s2", None),
        ] {
            assert_eq!(duration(text), milliseconds.map(Duration::from_millis), "{text}");
        }
    }
}
