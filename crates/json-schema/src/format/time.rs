//! Dates, times, durations and periods.

use go_text::quote::{quoted, quoted_char};

use super::problem::{Problem, refuse, whole};

const DATE: &str = "2006-01-02";

pub(super) fn date(text: &str) -> Result<(), Problem> {
    let bytes = text.as_bytes();
    let mut rest = bytes;
    let year = take_number(text, &mut rest, 4, "2006")?;
    take_dash(text, &mut rest)?;
    let month = take_number(text, &mut rest, 2, "01")?;
    if !(1..=12).contains(&month) {
        return out_of_range(text, "month");
    }
    take_dash(text, &mut rest)?;
    let day = take_number(text, &mut rest, 2, "02")?;
    if !rest.is_empty() {
        return refuse(format!(
            "parsing time {}: extra text: {}",
            time_quote(bytes),
            time_quote(rest)
        ));
    }
    if day < 1 || day > days_in(month, year) {
        return out_of_range(text, "day");
    }
    Ok(())
}

fn take_number(text: &str, rest: &mut &[u8], length: usize, layout: &str) -> Result<u32, Problem> {
    let digits = rest
        .get(..length)
        .filter(|digits| digits.iter().all(u8::is_ascii_digit));
    let Some(digits) = digits else {
        return cannot_parse(text, rest, layout);
    };
    *rest = &rest[length..];
    Ok(digits
        .iter()
        .fold(0, |number, digit| number * 10 + u32::from(digit - b'0')))
}

fn take_dash(text: &str, rest: &mut &[u8]) -> Result<(), Problem> {
    match rest {
        [b'-', behind @ ..] => {
            *rest = behind;
            Ok(())
        }
        _ => cannot_parse(text, rest, "-"),
    }
}

fn cannot_parse<T>(text: &str, rest: &[u8], layout: &str) -> Result<T, Problem> {
    refuse(format!(
        "parsing time {} as {}: cannot parse {} as {}",
        time_quote(text.as_bytes()),
        quoted(DATE),
        time_quote(rest),
        quoted(layout)
    ))
}

fn out_of_range<T>(text: &str, what: &str) -> Result<T, Problem> {
    refuse(format!(
        "parsing time {}: {what} out of range",
        time_quote(text.as_bytes())
    ))
}

/// Go's package time quotes on its own: bytes that are not printable ASCII are escaped one by one.
fn time_quote(text: &[u8]) -> String {
    let mut quoted = String::from('"');
    for byte in text {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(*byte)]),
            b' '..=0x7f => quoted.push(char::from(*byte)),
            _ => quoted.push_str(&format!("\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

fn days_in(month: u32, year: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

pub(super) fn time(text: &str) -> Result<(), Problem> {
    let bytes = text.as_bytes();
    if bytes.len() < 9 {
        return refuse("less than 9 characters long");
    }
    if bytes[2] != b':' || bytes[5] != b':' {
        return refuse("missing colon in correct place");
    }
    let mut clock = [0; 3];
    for (index, part) in clock.iter_mut().enumerate() {
        *part = two_digits(&bytes[index * 3..index * 3 + 2], "hour/min/sec")?;
    }
    let [hour, minute, second] = clock;
    if hour > 23 || minute > 59 || second > 60 {
        return refuse("hour/min/sec out of range");
    }
    let offset = match &bytes[8..] {
        [b'.', fraction @ ..] => {
            let digits = fraction.iter().take_while(|c| c.is_ascii_digit()).count();
            if digits == 0 {
                return refuse("no digits in second fraction");
            }
            &fraction[digits..]
        }
        offset => offset,
    };
    let minutes = hour * 60 + minute - offset_minutes(offset)?;
    let minutes = if minutes < 0 { minutes + 24 * 60 } else { minutes };
    if second >= 60 && minutes != 23 * 60 + 59 {
        return refuse("invalid leap second");
    }
    Ok(())
}

fn offset_minutes(offset: &[u8]) -> Result<i64, Problem> {
    let (sign, digits) = match offset {
        b"z" | b"Z" => return Ok(0),
        _ if offset.len() != 6 => return refuse("offset must be 6 characters long"),
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return refuse("offset must begin with plus/minus"),
    };
    if digits[2] != b':' {
        return refuse("missing colon in offset in correct place");
    }
    let hours = two_digits(&digits[..2], "hour/min in offset")?;
    let minutes = two_digits(&digits[3..], "hour/min in offset")?;
    if hours > 23 || minutes > 59 {
        return refuse("hour/min in offset out of range");
    }
    Ok(sign * (hours * 60 + minutes))
}

/// Go reads these with Atoi, so a sign is taken, too.
fn two_digits(digits: &[u8], what: &str) -> Result<i64, Problem> {
    let number = str::from_utf8(digits).ok().and_then(|digits| whole(digits).ok());
    match number {
        None => refuse(format!("invalid {what}")),
        Some(number) if number < 0 => refuse(format!("non-positive {what}")),
        Some(number) => Ok(number),
    }
}

pub(super) fn date_time(text: &str) -> Result<(), Problem> {
    let bytes = text.as_bytes();
    if bytes.len() < 20 {
        return refuse("less than 20 characters long");
    }
    if !matches!(bytes[10], b't' | b'T') {
        return refuse("11th character must be t or T");
    }
    let day = String::from_utf8_lossy(&bytes[..10]);
    date(&day).map_err(|problem| format!("invalid date element: {problem}"))?;
    let clock = String::from_utf8_lossy(&bytes[11..]);
    time(&clock).map_err(|problem| format!("invalid time element: {problem}"))
}

pub(super) fn duration(text: &str) -> Result<(), Problem> {
    let Some(rest) = text.strip_prefix('P') else {
        return refuse("must start with P");
    };
    if rest.is_empty() {
        return refuse("nothing after P");
    }
    if let Some(weeks) = rest.strip_suffix('W') {
        return match weeks {
            "" => refuse("no number in week"),
            _ if weeks.bytes().all(|c| c.is_ascii_digit()) => Ok(()),
            _ => refuse("invalid week"),
        };
    }
    const UNITS: [&str; 2] = ["YMD", "HMS"];
    for (index, part) in rest.split('T').enumerate() {
        if index > 0 && part.is_empty() {
            return refuse("no time elements");
        }
        let Some(units) = UNITS.get(index) else {
            return refuse("more than one T");
        };
        check_units(part, units)?;
    }
    Ok(())
}

fn check_units(mut part: &str, all: &str) -> Result<(), Problem> {
    let mut left = all;
    while !part.is_empty() {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return refuse("missing number");
        }
        let Some(unit) = part.as_bytes().get(digits).copied().map(char::from) else {
            return refuse("missing unit");
        };
        let Some(place) = left.find(unit) else {
            let shown = quoted_char(unit);
            return refuse(if all.contains(unit) {
                format!("unit {shown} out of order")
            } else {
                format!("invalid unit {shown}")
            });
        };
        left = &left[place + 1..];
        part = &part[digits + 1..];
    }
    Ok(())
}

pub(super) fn period(text: &str) -> Result<(), Problem> {
    let Some((start, end)) = text.split_once('/') else {
        return refuse("missing slash");
    };
    if start.starts_with('P') {
        duration(start).map_err(|problem| format!("invalid start duration: {problem}"))?;
        return date_time(end).map_err(|problem| format!("invalid end date-time: {problem}"));
    }
    date_time(start).map_err(|problem| format!("invalid start date-time: {problem}"))?;
    if end.starts_with('P') {
        duration(end).map_err(|problem| format!("invalid end duration: {problem}"))
    } else {
        date_time(end).map_err(|problem| format!("invalid end date-time: {problem}"))
    }
}
