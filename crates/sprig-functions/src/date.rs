//! Dates and durations: `now`, `date`, `toDate`, `duration` and their family.

mod objects;

use go_template::{Error, ErrorKind, Function, Functions, Kind, Type, Value};
use go_time::{Duration, Location, Time};

pub use objects::{DurationObject, TimeObject};

use crate::arguments::{add, any, made, text};

const LAYOUT_DATE: &[Type] = &[Type::STRING, Type::ANY];
const LAYOUT_DATE_ZONE: &[Type] = &[Type::STRING, Type::ANY, Type::STRING];
const SPAN_TIME: &[Type] = &[Type::STRING, TimeObject::TYPE];
const LAYOUT_TEXT: &[Type] = &[Type::STRING, Type::STRING];

pub(crate) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("now", &[], |_, _| Ok(TimeObject::value(now()))),
            ("ago", &[Type::ANY], |_, arguments| {
                let age = now().sub(&date_or_now(&any(arguments, 0), false));
                Ok(age.round(Duration::SECOND).to_string().into())
            }),
            ("date", LAYOUT_DATE, |_, arguments| {
                format(arguments, 1, text(arguments, 0), b"Local")
            }),
            ("htmlDate", &[Type::ANY], |_, arguments| {
                format(arguments, 0, b"2006-01-02", b"Local")
            }),
            ("htmlDateInZone", &[Type::ANY, Type::STRING], |_, arguments| {
                format(arguments, 0, b"2006-01-02", text(arguments, 1))
            }),
            ("toDate", LAYOUT_TEXT, |_, arguments| {
                Ok(TimeObject::value(
                    to_date(arguments).unwrap_or_else(|_| Time::zero()),
                ))
            }),
            ("mustToDate", LAYOUT_TEXT, |_, arguments| {
                to_date(arguments).map(TimeObject::value)
            }),
            ("unixEpoch", &[TimeObject::TYPE], |_, arguments| {
                Ok(time(arguments, 0).unix().to_string().into())
            }),
            ("duration", &[Type::ANY], |_, arguments| {
                let seconds = seconds(&any(arguments, 0));
                let duration = Duration(seconds.wrapping_mul(Duration::SECOND.0));
                Ok(duration.to_string().into())
            }),
            ("durationRound", &[Type::ANY], |_, arguments| {
                Ok(rounded(span(&any(arguments, 0))).into())
            }),
        ],
    );
    for name in ["dateInZone", "date_in_zone"] {
        let format = Function::new(LAYOUT_DATE_ZONE, |_, arguments| {
            format(arguments, 1, text(arguments, 0), text(arguments, 2))
        });
        functions.add(name, format);
    }
    for name in ["dateModify", "date_modify"] {
        let modify = Function::new(SPAN_TIME, |_, arguments| {
            Ok(modified(arguments).unwrap_or_else(|_| any(arguments, 1)))
        });
        functions.add(name, modify);
    }
    for name in ["mustDateModify", "must_date_modify"] {
        functions.add(name, Function::new(SPAN_TIME, |_, arguments| modified(arguments)));
    }
}

fn now() -> Time {
    Time::now(Location::local())
}

/// Returns a `time.Time`.
fn time(arguments: &[Value], index: usize) -> Time {
    let object = arguments
        .get(index)
        .and_then(|value| value.as_object::<TimeObject>());
    object.map_or_else(Time::zero, |object| object.0.clone())
}

/// Converts to a date as sprig does: a time, or seconds of some kinds of integer. Everything else is now,
/// even a float, which the numbers of values are.
fn date_or_now(value: &Value, with_int32: bool) -> Time {
    match value {
        Value::Int(seconds, Kind::Int | Kind::Int64) => Time::from_unix(*seconds, 0, Location::local()),
        Value::Int(seconds, Kind::Int32) if with_int32 => Time::from_unix(*seconds, 0, Location::local()),
        value => match value.as_object::<TimeObject>() {
            Some(object) => object.0.clone(),
            None => now(),
        },
    }
}

fn format(arguments: &[Value], date: usize, layout: &[u8], zone: &[u8]) -> Result<Value, Error> {
    let zone = str::from_utf8(zone).ok().and_then(Location::load);
    let time = date_or_now(&any(arguments, date), true).in_location(zone.unwrap_or(Location::UTC));
    made(time.format(layout))
}

fn to_date(arguments: &[Value]) -> Result<Time, Error> {
    let time = Time::parse_in(text(arguments, 0), text(arguments, 1), &Location::local());
    time.map_err(|error| Error::from_parts(ErrorKind::Function, error.to_string()))
}

fn modified(arguments: &[Value]) -> Result<Value, Error> {
    let duration = Duration::parse(text(arguments, 0));
    let duration = duration.map_err(|error| Error::from_parts(ErrorKind::Function, error.to_string()))?;
    Ok(TimeObject::value(time(arguments, 1).add(duration)))
}

/// The seconds that `duration` takes: a text or an `int64`. A plain `int` is neither.
fn seconds(value: &Value) -> i64 {
    match value {
        Value::String(text) => parse_int(text),
        Value::Int(seconds, Kind::Int64) => *seconds,
        _ => 0,
    }
}

/// strconv.ParseInt without its error: what is too large is the largest.
fn parse_int(text: &[u8]) -> i64 {
    let (is_negative, digits) = match text {
        [sign @ (b'-' | b'+'), digits @ ..] => (*sign == b'-', digits),
        _ => (false, text),
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return 0;
    }
    let value = digits.iter().fold(0_i128, |value, digit| {
        value.saturating_mul(10).saturating_add(i128::from(digit - b'0'))
    });
    let value = if is_negative { -value } else { value };
    value.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// The span that `durationRound` takes: a text, nanoseconds as `int64`, or the age of a time.
fn span(value: &Value) -> Duration {
    match value {
        Value::String(text) => Duration::parse(text).unwrap_or_default(),
        Value::Int(nanoseconds, Kind::Int64) => Duration(*nanoseconds),
        value => match value.as_object::<TimeObject>() {
            Some(object) => now().sub(&object.0),
            None => Duration::default(),
        },
    }
}

/// The size of a span in the largest unit that fits more than once, without its sign.
fn rounded(span: Duration) -> String {
    const HOUR: u64 = Duration::HOUR.0.unsigned_abs();
    let units = [
        (HOUR * 24 * 365, "y"),
        (HOUR * 24 * 30, "mo"),
        (HOUR * 24, "d"),
        (HOUR, "h"),
        (Duration::MINUTE.0.unsigned_abs(), "m"),
        (Duration::SECOND.0.unsigned_abs(), "s"),
    ];
    let size = span.0.unsigned_abs();
    let unit = units.into_iter().find(|(unit, _)| size > *unit);
    unit.map_or_else(
        || "0s".to_owned(),
        |(unit, name)| format!("{}{name}", size / unit),
    )
}

#[cfg(test)]
mod tests;
