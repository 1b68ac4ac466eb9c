//! Functions on durations, which only Helm 4 has.
//!
//! They take what `time.ParseDuration` reads, and numbers as seconds. All but one answer zero for what is none of these.

use go_template::{Error, Function, Functions, Str, Type, Value, format};
use go_text::{numeral, quote};
use go_time::Duration;
use sprig_functions::DurationObject;

const ANY: &[Type] = &[Type::ANY];
const ANY_ANY: &[Type] = &[Type::ANY, Type::ANY];

pub(super) fn register(functions: &mut Functions) {
    functions.add(
        "mustToDuration",
        Function::new(ANY, |_, arguments| {
            Ok(DurationObject::value(read(&arguments[0])?))
        }),
    );
    macro_rules! converter {
        ($name:literal, $convert:expr) => {
            functions.add(
                $name,
                Function::new(ANY, |_, arguments| {
                    let convert: fn(Duration) -> Value = $convert;
                    Ok(convert(read(&arguments[0]).unwrap_or_default()))
                }),
            );
        };
    }
    converter!("durationSeconds", |duration| duration.seconds().into());
    converter!("durationMilliseconds", |duration| Value::int64(
        duration.milliseconds()
    ));
    converter!("durationMicroseconds", |duration| Value::int64(
        duration.microseconds()
    ));
    converter!("durationNanoseconds", |duration| Value::int64(duration.0));
    converter!("durationMinutes", |duration| duration.minutes().into());
    converter!("durationHours", |duration| duration.hours().into());
    converter!("durationDays", |duration| (duration.hours() / 24.0).into());
    converter!("durationWeeks", |duration| (duration.hours() / 24.0 / 7.0).into());
    functions.add(
        "durationRoundTo",
        Function::new(ANY_ANY, |_, arguments| Ok(to_unit(arguments, Duration::round))),
    );
    functions.add(
        "durationTruncateTo",
        Function::new(ANY_ANY, |_, arguments| Ok(to_unit(arguments, Duration::truncate))),
    );
}

/// Brings a duration to a multiple of another; without a unit it stays as it is.
fn to_unit(arguments: &[Value], bring: fn(Duration, Duration) -> Duration) -> Value {
    let Ok(duration) = read(&arguments[0]) else {
        return DurationObject::value(Duration::default());
    };
    DurationObject::value(read(&arguments[1]).map_or(duration, |unit| bring(duration, unit)))
}

/// Reads a duration: Helm's `asDuration`.
fn read(argument: &Value) -> Result<Duration, Error> {
    match argument {
        Value::Invalid | Value::Nil => Err(Error::new("invalid duration")),
        Value::String(text) => read_text(text),
        Value::Int(seconds, _) => of_seconds(i128::from(*seconds)),
        Value::Uint(seconds, _) => of_seconds(i128::from(*seconds)),
        Value::Float(seconds) => of_fraction(*seconds),
        Value::Object(object) => match argument.as_object::<DurationObject>() {
            Some(duration) => Ok(duration.0),
            None => match object.underlying() {
                Some(number @ (Value::Int(..) | Value::Uint(..) | Value::Float(_))) => read(&number),
                _ => Err(unsupported(argument)),
            },
        },
        _ => Err(unsupported(argument)),
    }
}

fn unsupported(value: &Value) -> Error {
    Error::new(format!("unsupported duration type {}", value.type_name()))
}

fn read_text(text: &Str) -> Result<Duration, Error> {
    let trimmed = text.to_text();
    let trimmed = trimmed.trim();
    if trimmed.is_empty() {
        return Err(Error::new("empty duration"));
    }
    if let Ok(duration) = Duration::parse(trimmed.as_bytes()) {
        return Ok(duration);
    }
    match numeral::parse_float(trimmed) {
        Ok(seconds) => of_fraction(seconds),
        Err(_) => {
            let mut quoted = Vec::new();
            quote::quote(text, &mut quoted);
            let quoted = String::from_utf8_lossy(&quoted).into_owned();
            Err(Error::new(format!("could not parse duration {quoted}")))
        }
    }
}

fn of_seconds(seconds: i128) -> Result<Duration, Error> {
    let most = i128::from(i64::MAX / Duration::SECOND.0);
    let fits = (-most..=most).contains(&seconds);
    let nanoseconds = i64::try_from(seconds)
        .ok()
        .filter(|_| fits)
        .map(|seconds| seconds * Duration::SECOND.0);
    let overflow = || Error::new(format!("duration seconds overflow: {seconds}"));
    nanoseconds.map(Duration).ok_or_else(overflow)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "Go compares with the same nearest floats"
)]
#[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
fn of_fraction(seconds: f64) -> Result<Duration, Error> {
    let refuse = |what: &str, number: f64| Error::new(format!("{what}: {}", shown(number)));
    if !seconds.is_finite() {
        return Err(refuse("invalid duration seconds", seconds));
    }
    let second = Duration::SECOND.0 as f64;
    if seconds > i64::MAX as f64 / second || seconds < i64::MIN as f64 / second {
        return Err(refuse("duration seconds overflow", seconds));
    }
    let nanoseconds = seconds * second;
    Ok(Duration(nanoseconds as i64))
}

fn shown(number: f64) -> String {
    let text = format::sprint(&[Value::Float(number)]).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(argument: impl Into<Value>, expected: &str) {
        let shown = match read(&argument.into()) {
            Ok(duration) => duration.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn texts_and_numbers_are_durations() {
        check("1h2m3s", "1h2m3s");
        check(" 2.5 ", "2.5s");
        check(Value::int(90), "1m30s");
        check(1.5, "1.5s");
        check("", "empty duration");
        check("x", "could not parse duration \"x\"");
        check(Value::Nil, "invalid duration");
        check(true, "unsupported duration type bool");
        check(
            Value::int64(i64::MAX),
            "duration seconds overflow: 9223372036854775807",
        );
        check(f64::INFINITY, "invalid duration seconds: +Inf");
        check(1e12, "duration seconds overflow: 1e+12");
    }

    #[test]
    fn durations_are_brought_to_units() {
        let to_unit = |duration: &str, unit: &str, bring| {
            let brought = to_unit(&[duration.into(), unit.into()], bring);
            read(&brought).expect("it is a duration").to_string()
        };
        assert_eq!(to_unit("1h57m", "1h", Duration::truncate), "1h0m0s");
        assert_eq!(to_unit("1h57m", "1h", Duration::round), "2h0m0s");
        assert_eq!(to_unit("1h57m", "x", Duration::round), "1h57m0s");
        assert_eq!(to_unit("x", "1h", Duration::round), "0s");
    }
}
