//! Timestamps as go-yaml recognises them, written as Go writes a time into JSON.

/// Reads text as go-yaml's timestamp formats do, and returns it in RFC 3339; None for what is no timestamp.
///
/// The formats: a date with one or two digits for month and day, alone, or followed by `T`, `t` and a time with zone,
/// or by a space and a time without one. Go trims the fraction's trailing zeros and writes UTC as `Z`.
pub(super) fn to_rfc3339(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    if bytes.len() < 8 || bytes[4] != b'-' || !bytes[..4].iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut rest = &text[5..];
    let year: u32 = text[..4].parse().ok()?;
    let month = take_number(&mut rest)?;
    rest = rest.strip_prefix('-')?;
    let day = take_number(&mut rest)?;
    if !(1..=12).contains(&month) || day < 1 || day > days_in(month, year) {
        return None;
    }
    let date = format!("{year:04}-{month:02}-{day:02}");
    if rest.is_empty() {
        return Some(format!("{date}T00:00:00Z"));
    }
    let zoned = match rest.as_bytes()[0] {
        b'T' | b't' => true,
        b' ' => false,
        _ => return None,
    };
    rest = &rest[1..];
    let time = take_time(&mut rest)?;
    let zone = if zoned {
        take_zone(&mut rest)?
    } else {
        "Z".to_owned()
    };
    rest.is_empty().then(|| format!("{date}T{time}{zone}"))
}

/// Takes one or two digits from the front.
fn take_number(rest: &mut &str) -> Option<u32> {
    let digits = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (number, behind) = rest.split_at(digits);
    *rest = behind;
    number.parse().ok()
}

fn take_time(rest: &mut &str) -> Option<String> {
    let hour = take_number(rest)?;
    *rest = rest.strip_prefix(':')?;
    let minute = take_number(rest)?;
    *rest = rest.strip_prefix(':')?;
    let second = take_number(rest)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let fraction = take_fraction(rest);
    Some(format!("{hour:02}:{minute:02}:{second:02}{fraction}"))
}

/// Takes a fraction of a second: up to nine digits count.
fn take_fraction(rest: &mut &str) -> String {
    let Some(digits) = rest.strip_prefix(['.', ',']) else {
        return String::new();
    };
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    if count == 0 {
        return String::new();
    }
    let kept = digits[..count.min(9)].trim_end_matches('0');
    *rest = &digits[count..];
    if kept.is_empty() {
        String::new()
    } else {
        format!(".{kept}")
    }
}

fn take_zone(rest: &mut &str) -> Option<String> {
    if let Some(behind) = rest.strip_prefix('Z') {
        *rest = behind;
        return Some("Z".to_owned());
    }
    let zone = rest.get(..6)?;
    let bytes = zone.as_bytes();
    let digits = [1, 2, 4, 5].iter().all(|i| bytes[*i].is_ascii_digit());
    if !matches!(bytes[0], b'+' | b'-') || bytes[3] != b':' || !digits {
        return None;
    }
    let (hours, minutes): (u32, u32) = (zone[1..3].parse().ok()?, zone[4..6].parse().ok()?);
    if hours > 24 || minutes > 60 {
        return None;
    }
    *rest = &rest[6..];
    Some(if hours == 0 && minutes == 0 {
        "Z".to_owned()
    } else {
        zone.to_owned()
    })
}

fn days_in(month: u32, year: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::to_rfc3339;

    #[test]
    fn timestamps_are_recognised_as_go_yaml_does() {
        for (text, time) in [
            ("2001-01-01", Some("2001-01-01T00:00:00Z")),
            ("2001-1-2", Some("2001-01-02T00:00:00Z")),
            (
                "2001-12-14t21:59:43.10-05:00",
                Some("2001-12-14T21:59:43.1-05:00"),
            ),
            ("2001-12-14 21:59:43", Some("2001-12-14T21:59:43Z")),
            ("2024-05-01T00:00:00Z", Some("2024-05-01T00:00:00Z")),
            ("2024-02-30", None),
            ("2024-05-01T00:00:00", None),
            ("2001-12-14 21:59:43 Z", None),
            ("20011-1-1", None),
            ("2024-05", None),
        ] {
            assert_eq!(to_rfc3339(text).as_deref(), time, "{text}");
        }
    }
}
