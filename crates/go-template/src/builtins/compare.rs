//! `eq`, `ne`, `lt`, `le`, `gt` and `ge`.

use std::borrow::Cow;
use std::rc::Rc;

use crate::{Context, Error, Kind, Value, format};

/// Class of kinds that are compared with each other: Go's `basicKind`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Basic {
    Bool,
    Int,
    Uint,
    Float,
    Complex,
    String,
    None,
}

pub(super) fn eq(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let (first, others) = arguments.split_first().expect("the parameter is required");
    if others.is_empty() {
        return Err(Error::new("missing argument for comparison"));
    }
    for other in others {
        if equal(first, other)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

pub(super) fn ne(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    Ok(Value::Bool(!equal(&arguments[0], &arguments[1])?))
}

pub(super) fn lt(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    Ok(Value::Bool(less(&arguments[0], &arguments[1])?))
}

pub(super) fn le(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    Ok(Value::Bool(less_or_equal(&arguments[0], &arguments[1])?))
}

pub(super) fn gt(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    Ok(Value::Bool(!less_or_equal(&arguments[0], &arguments[1])?))
}

pub(super) fn ge(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    Ok(Value::Bool(!less(&arguments[0], &arguments[1])?))
}

fn less_or_equal(one: &Value, two: &Value) -> Result<bool, Error> {
    Ok(less(one, two)? || equal(one, two)?)
}

fn equal(one: &Value, two: &Value) -> Result<bool, Error> {
    let (left, right) = (underlying(one), underlying(two));
    match (&*left, &*right) {
        (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
        (Value::Int(left, _), Value::Int(right, _)) => Ok(left == right),
        (Value::Uint(left, _), Value::Uint(right, _)) => Ok(left == right),
        (Value::Int(int, _), Value::Uint(uint, _)) | (Value::Uint(uint, _), Value::Int(int, _)) => {
            Ok(u64::try_from(*int) == Ok(*uint))
        }
        (Value::Float(left), Value::Float(right)) => Ok(left == right),
        (Value::Complex(a, b), Value::Complex(c, d)) => Ok(a == c && b == d),
        (Value::String(left), Value::String(right)) => Ok(left == right),
        (left, right) if basic(left) != basic(right) => {
            if one.is_untyped_nil() || two.is_untyped_nil() {
                return Ok(false);
            }
            Err(incompatible(one, two))
        }
        _ => equal_others(one, two),
    }
}

/// Compares what is of no basic kind: with nil, and structs and pointers with each other.
fn equal_others(one: &Value, two: &Value) -> Result<bool, Error> {
    let (one_nothing, two_nothing) = (one.is_untyped_nil(), two.is_untyped_nil());
    if !one_nothing && !two_nothing && one.kind() != two.kind() {
        // Go mixes up values and types here.
        return Err(Error::new(format!(
            "non-comparable types {}: {}, {}: {}",
            format::reflect_text_as(one, 's')?,
            one.type_name(),
            two.type_name(),
            format::reflect_text(two)?,
        )));
    }
    if is_nil(one) || is_nil(two) {
        return Ok(is_nil(one) == is_nil(two));
    }
    match (one, two) {
        (Value::Object(one), Value::Object(two)) => Ok(Rc::ptr_eq(one, two) || one.equals(&**two)),
        (_, two) => Err(Error::new(format!(
            "non-comparable type {}: {}",
            format::reflect_text_as(two, 's')?,
            two.type_name()
        ))),
    }
}

fn less(one: &Value, two: &Value) -> Result<bool, Error> {
    let (left, right) = (underlying(one), underlying(two));
    if basic(&left) == Basic::None || basic(&right) == Basic::None {
        return Err(bad_type());
    }
    match (&*left, &*right) {
        (Value::Int(left, _), Value::Int(right, _)) => Ok(left < right),
        (Value::Uint(left, _), Value::Uint(right, _)) => Ok(left < right),
        (Value::Int(left, _), Value::Uint(right, _)) => {
            Ok(u64::try_from(*left).map_or(true, |left| left < *right))
        }
        (Value::Uint(left, _), Value::Int(right, _)) => {
            Ok(u64::try_from(*right).is_ok_and(|right| *left < right))
        }
        (Value::Float(left), Value::Float(right)) => Ok(left < right),
        (Value::String(left), Value::String(right)) => Ok(left < right),
        (left, right) if basic(left) == basic(right) => Err(bad_type()),
        _ => Err(incompatible(one, two)),
    }
}

fn bad_type() -> Error {
    Error::new("invalid type for comparison")
}

fn incompatible(one: &Value, two: &Value) -> Error {
    Error::new(format!(
        "incompatible types for comparison: {} and {}",
        one.type_name(),
        two.type_name()
    ))
}

fn basic(value: &Value) -> Basic {
    match value {
        Value::Bool(_) => Basic::Bool,
        Value::Int(..) => Basic::Int,
        Value::Uint(..) => Basic::Uint,
        Value::Float(_) => Basic::Float,
        Value::Complex(..) => Basic::Complex,
        Value::String(_) => Basic::String,
        _ => Basic::None,
    }
}

/// Looks through named types to what they are made of.
fn underlying(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::Object(object) => object.underlying().map_or(Cow::Borrowed(value), Cow::Owned),
        value => Cow::Borrowed(value),
    }
}

fn is_nil(value: &Value) -> bool {
    match value {
        Value::Object(object) => value.kind() == Some(Kind::Pointer) && object.is_nil(),
        value => value.is_nil(),
    }
}
