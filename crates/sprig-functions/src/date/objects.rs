//! `time.Time`, `time.Duration` and what hangs on them, as templates see them.

use std::any::Any;

use go_template::{Error, Function, Kind, Object, Str, Type, TypeInfo, Value};
use go_time::{Duration, Location, Time, month_name, weekday_name};

use crate::arguments::{int, made, text};

/// A `time.Time`.
#[derive(Debug)]
pub struct TimeObject(pub Time);

impl TimeObject {
    /// `time.Time`.
    pub const TYPE: Type = Type::new(&TIME);

    /// Makes a value of a time.
    pub fn value(time: Time) -> Value {
        Value::object(Self(time))
    }
}

impl Object for TimeObject {
    fn type_(&self) -> Type {
        Self::TYPE
    }

    fn text(&self) -> Option<Str> {
        Some(self.0.to_string().into())
    }

    fn json(&self) -> Option<Value> {
        Some(Value::String(self.0.format(RFC3339_NANO).into()))
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other
            .as_any()
            .downcast_ref::<Self>()
            .is_some_and(|other| other.0 == self.0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A `time.Duration`.
#[derive(Debug)]
pub struct DurationObject(pub Duration);

impl DurationObject {
    /// `time.Duration`.
    pub const TYPE: Type = Type::new(&DURATION);

    /// Makes a value of a duration.
    pub fn value(duration: Duration) -> Value {
        Value::object(Self(duration))
    }
}

impl Object for DurationObject {
    fn type_(&self) -> Type {
        Self::TYPE
    }

    fn text(&self) -> Option<Str> {
        Some(self.0.to_string().into())
    }

    fn underlying(&self) -> Option<Value> {
        Some(Value::int64(self.0.0))
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other
            .as_any()
            .downcast_ref::<Self>()
            .is_some_and(|other| other.0 == self.0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A `time.Month` or `time.Weekday`: a number with an English name.
#[derive(Debug)]
struct Named {
    number: u32,
    name: &'static str,
    type_: Type,
}

impl Object for Named {
    fn type_(&self) -> Type {
        self.type_
    }

    fn text(&self) -> Option<Str> {
        Some(self.name.into())
    }

    fn underlying(&self) -> Option<Value> {
        Some(Value::int(self.number.into()))
    }

    fn equals(&self, other: &dyn Object) -> bool {
        let other = other.as_any().downcast_ref::<Self>();
        other.is_some_and(|other| other.type_ == self.type_ && other.number == self.number)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A `*time.Location`.
#[derive(Debug)]
struct Place(Location);

impl Object for Place {
    fn type_(&self) -> Type {
        Type::new(&LOCATION)
    }

    fn text(&self) -> Option<Str> {
        Some(self.0.name().into())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

const RFC3339_NANO: &[u8] = b"2006-01-02T15:04:05.999999999Z07:00";

static TIME: TypeInfo = TypeInfo {
    named: true,
    method: Some(time_method),
    ..TypeInfo::plain("time.Time", Kind::Struct)
};

static DURATION: TypeInfo = TypeInfo {
    named: true,
    method: Some(duration_method),
    ..TypeInfo::plain("time.Duration", Kind::Int64)
};

static MONTH: TypeInfo = TypeInfo {
    named: true,
    method: Some(name_method),
    ..TypeInfo::plain("time.Month", Kind::Int)
};

static WEEKDAY: TypeInfo = TypeInfo {
    named: true,
    method: Some(name_method),
    ..TypeInfo::plain("time.Weekday", Kind::Int)
};

static LOCATION: TypeInfo = TypeInfo {
    named: false,
    method: Some(name_method),
    ..TypeInfo::plain("*time.Location", Kind::Pointer)
};

/// Methods that give several results are left out: a template cannot call them.
fn time_method(name: &str) -> Option<Function> {
    number_method(name)
        .or_else(|| moved_method(name))
        .or_else(|| compared_method(name))
        .or_else(|| written_method(name))
}

fn number_method(name: &str) -> Option<Function> {
    const NONE: &[Type] = &[];
    Some(match name {
        "Year" => Function::new(NONE, |_, arguments| Ok(Value::int(time(arguments)?.year()))),
        "Month" => Function::new(NONE, |_, arguments| {
            let number = time(arguments)?.month();
            Ok(Value::object(Named {
                number,
                name: month_name(number),
                type_: Type::new(&MONTH),
            }))
        }),
        "Weekday" => Function::new(NONE, |_, arguments| {
            let number = time(arguments)?.weekday();
            Ok(Value::object(Named {
                number,
                name: weekday_name(number),
                type_: Type::new(&WEEKDAY),
            }))
        }),
        "Day" => Function::new(NONE, |_, arguments| small(time(arguments)?.day())),
        "YearDay" => Function::new(NONE, |_, arguments| small(time(arguments)?.year_day())),
        "Hour" => Function::new(NONE, |_, arguments| small(time(arguments)?.hour())),
        "Minute" => Function::new(NONE, |_, arguments| small(time(arguments)?.minute())),
        "Second" => Function::new(NONE, |_, arguments| small(time(arguments)?.second())),
        "Nanosecond" => Function::new(NONE, |_, arguments| small(time(arguments)?.nanosecond())),
        "Unix" => Function::new(NONE, |_, arguments| Ok(Value::int64(time(arguments)?.unix()))),
        "UnixMilli" => Function::new(NONE, |_, arguments| {
            Ok(Value::int64(time(arguments)?.unix_milli()))
        }),
        "UnixMicro" => Function::new(NONE, |_, arguments| {
            Ok(Value::int64(time(arguments)?.unix_micro()))
        }),
        "UnixNano" => Function::new(NONE, |_, arguments| {
            Ok(Value::int64(time(arguments)?.unix_nano()))
        }),
        _ => return None,
    })
}

fn moved_method(name: &str) -> Option<Function> {
    const SPAN: &[Type] = &[DurationObject::TYPE];
    const PLACE: &[Type] = &[Type::new(&LOCATION)];
    Some(match name {
        "Add" => Function::new(SPAN, |_, arguments| {
            Ok(TimeObject::value(time(arguments)?.add(span(arguments, 1))))
        }),
        "Round" => Function::new(SPAN, |_, arguments| {
            Ok(TimeObject::value(time(arguments)?.round(span(arguments, 1))))
        }),
        "Truncate" => Function::new(SPAN, |_, arguments| {
            Ok(TimeObject::value(time(arguments)?.truncate(span(arguments, 1))))
        }),
        "AddDate" => Function::new(&[Type::INT, Type::INT, Type::INT], |_, arguments| {
            let [years, months, days] = [1, 2, 3].map(|index| int(arguments, index));
            Ok(TimeObject::value(time(arguments)?.add_date(years, months, days)))
        }),
        "UTC" => Function::new(&[], |_, arguments| {
            Ok(TimeObject::value(time(arguments)?.in_location(Location::UTC)))
        }),
        "Local" => Function::new(&[], |_, arguments| {
            Ok(TimeObject::value(time(arguments)?.in_location(Location::local())))
        }),
        "In" => Function::new(PLACE, |_, arguments| {
            let place = arguments.get(1).and_then(|value| value.as_object::<Place>());
            let place = place.ok_or_else(|| Error::new("time: missing Location in call to Time.In"))?;
            Ok(TimeObject::value(time(arguments)?.in_location(place.0.clone())))
        }),
        _ => return None,
    })
}

fn compared_method(name: &str) -> Option<Function> {
    const OTHER: &[Type] = &[TimeObject::TYPE];
    Some(match name {
        "After" => Function::new(OTHER, |_, arguments| Ok(compared(arguments)?.is_gt().into())),
        "Before" => Function::new(OTHER, |_, arguments| Ok(compared(arguments)?.is_lt().into())),
        "Equal" => Function::new(OTHER, |_, arguments| Ok(compared(arguments)?.is_eq().into())),
        "Compare" => Function::new(OTHER, |_, arguments| Ok(Value::int(compared(arguments)? as i64))),
        "Sub" => Function::new(OTHER, |_, arguments| {
            Ok(DurationObject::value(time(arguments)?.sub(other(arguments)?)))
        }),
        "IsZero" => Function::new(&[], |_, arguments| Ok(time(arguments)?.is_zero().into())),
        "IsDST" => Function::new(&[], |_, arguments| Ok(time(arguments)?.is_dst().into())),
        _ => return None,
    })
}

fn written_method(name: &str) -> Option<Function> {
    Some(match name {
        "String" => Function::new(&[], |_, arguments| Ok(time(arguments)?.to_string().into())),
        "Format" => Function::new(&[Type::STRING], |_, arguments| {
            made(time(arguments)?.format(text(arguments, 1)))
        }),
        "Location" => Function::new(&[], |_, arguments| {
            Ok(Value::object(Place(time(arguments)?.location().clone())))
        }),
        _ => return None,
    })
}

fn duration_method(name: &str) -> Option<Function> {
    const NONE: &[Type] = &[];
    const SPAN: &[Type] = &[DurationObject::TYPE];
    Some(match name {
        "String" => Function::new(NONE, |_, arguments| Ok(span(arguments, 0).to_string().into())),
        "Nanoseconds" => Function::new(NONE, |_, arguments| Ok(Value::int64(span(arguments, 0).0))),
        "Microseconds" => Function::new(NONE, |_, arguments| {
            Ok(Value::int64(span(arguments, 0).microseconds()))
        }),
        "Milliseconds" => Function::new(NONE, |_, arguments| {
            Ok(Value::int64(span(arguments, 0).milliseconds()))
        }),
        "Seconds" => Function::new(NONE, |_, arguments| Ok(span(arguments, 0).seconds().into())),
        "Minutes" => Function::new(NONE, |_, arguments| Ok(span(arguments, 0).minutes().into())),
        "Hours" => Function::new(NONE, |_, arguments| Ok(span(arguments, 0).hours().into())),
        "Abs" => Function::new(NONE, |_, arguments| {
            Ok(DurationObject::value(span(arguments, 0).abs()))
        }),
        "Round" => Function::new(SPAN, |_, arguments| {
            Ok(DurationObject::value(
                span(arguments, 0).round(span(arguments, 1)),
            ))
        }),
        "Truncate" => Function::new(SPAN, |_, arguments| {
            Ok(DurationObject::value(
                span(arguments, 0).truncate(span(arguments, 1)),
            ))
        }),
        _ => return None,
    })
}

fn name_method(name: &str) -> Option<Function> {
    (name == "String").then(|| {
        Function::new(&[], |_, arguments| match arguments.first() {
            Some(Value::Object(object)) => Ok(Value::String(object.text().unwrap_or_default())),
            _ => Ok("".into()),
        })
    })
}

fn time(arguments: &[Value]) -> Result<&Time, Error> {
    time_at(arguments, 0)
}

fn other(arguments: &[Value]) -> Result<&Time, Error> {
    time_at(arguments, 1)
}

fn time_at(arguments: &[Value], index: usize) -> Result<&Time, Error> {
    let object = arguments
        .get(index)
        .and_then(|value| value.as_object::<TimeObject>());
    let object = object.ok_or_else(|| Error::new("value is not a time.Time"))?;
    Ok(&object.0)
}

/// A `time.Duration`; a constant comes as the number that it is.
fn span(arguments: &[Value], index: usize) -> Duration {
    match arguments.get(index) {
        Some(Value::Int(nanoseconds, _)) => Duration(*nanoseconds),
        Some(value) => value
            .as_object::<DurationObject>()
            .map_or_else(Duration::default, |object| object.0),
        None => Duration::default(),
    }
}

fn compared(arguments: &[Value]) -> Result<std::cmp::Ordering, Error> {
    Ok(time(arguments)?.compare(other(arguments)?))
}

fn small(number: u32) -> Result<Value, Error> {
    Ok(Value::int(number.into()))
}
