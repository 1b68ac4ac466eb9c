//! `index`, `slice` and `len`.

use crate::exec::zero_of;
use crate::{Context, Error, Kind, List, Str, Type, Value};

use super::callee::prepare;

pub(super) fn index(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let (item, indexes) = arguments.split_first().expect("the parameter is required");
    if item.is_untyped_nil() {
        return Err(Error::new("index of untyped nil"));
    }
    let mut item = item.clone();
    for index in indexes {
        let index = if index.is_untyped_nil() {
            &Value::Invalid
        } else {
            index
        };
        item = element(&item, index)?;
    }
    Ok(item)
}

fn element(item: &Value, index: &Value) -> Result<Value, Error> {
    match item {
        Value::Invalid | Value::Nil => Err(Error::new("index of nil pointer")),
        Value::List(list) => {
            let index = position(index, list.len())?;
            let item = list.get(index).cloned();
            item.ok_or_else(|| Error::new("reflect: slice index out of range"))
        }
        Value::Bytes(bytes) => {
            let index = position(index, bytes.len())?;
            byte_at(bytes, index).ok_or_else(|| Error::new("reflect: slice index out of range"))
        }
        Value::String(text) => {
            let index = position(index, text.len())?;
            byte_at(text, index).ok_or_else(|| Error::new("reflect: string index out of range"))
        }
        Value::Map(map) => {
            let key = prepare(unnamed(index).as_ref().unwrap_or(index), Type::STRING)?;
            let found = key.as_string().and_then(|key| map.get(key));
            Ok(found.unwrap_or_else(|| zero_of(map.type_().element().unwrap_or(Type::ANY))))
        }
        other => Err(Error::new(format!("can't index item of type {}", pointee(other)))),
    }
}

fn byte_at(bytes: &Str, index: usize) -> Option<Value> {
    let byte = bytes.get(index)?;
    Some(Value::Uint(u64::from(*byte), Kind::Uint8))
}

/// Checks an index: Go's `indexArg`, which lets the length itself pass. A nil stands for whatever is in an interface.
fn position(index: &Value, capacity: usize) -> Result<usize, Error> {
    let unnamed = unnamed(index);
    let out_of_range = |index: i64| Error::new(format!("index out of range: {index}"));
    let number = match unnamed.as_ref().unwrap_or(index) {
        Value::Int(number, _) => *number,
        #[allow(clippy::cast_possible_wrap)] // as Go converts it
        Value::Uint(number, _) => *number as i64,
        Value::Invalid => return Err(Error::new("cannot index slice/array with nil")),
        _ => {
            let type_ = index.type_().map_or("", Type::name);
            return Err(Error::new(format!("cannot index slice/array with type {type_}")));
        }
    };
    let index = usize::try_from(number).map_err(|_| out_of_range(number))?;
    if index > capacity {
        return Err(out_of_range(number));
    }
    Ok(index)
}

pub(super) fn slice(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let (item, indexes) = arguments.split_first().expect("the parameter is required");
    if item.is_untyped_nil() {
        return Err(Error::new("slice of untyped nil"));
    }
    if indexes.len() > 3 {
        return Err(Error::new(format!("too many slice indexes: {}", indexes.len())));
    }
    // The capacity of a slice is its length here: what lies behind was never put there by a template.
    let length = match item {
        Value::String(_) if indexes.len() == 3 => {
            return Err(Error::new("cannot 3-index slice a string"));
        }
        Value::String(bytes) | Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.len(),
        other => {
            let type_ = pointee(other);
            return Err(Error::new(format!("can't slice item of type {type_}")));
        }
    };
    let mut bounds = [0, length, length];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = position(index, length)?;
    }
    let [start, end, capacity] = bounds;
    for (low, high) in [(start, end), (end, capacity)] {
        if low > high {
            return Err(Error::new(format!("invalid slice index: {low} > {high}")));
        }
    }
    let size = if matches!(item, Value::List(_)) {
        size_of::<Value>()
    } else {
        1
    };
    context.charge((end - start).saturating_mul(size))?;
    Ok(match item {
        Value::List(list) => Value::List(List::new(list.type_(), list[start..end].to_vec())),
        Value::Bytes(bytes) => Value::Bytes(bytes[start..end].into()),
        Value::String(text) => Value::String(text[start..end].into()),
        _ => Value::Invalid,
    })
}

pub(super) fn len(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let length = match &arguments[0] {
        Value::String(bytes) | Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        Value::Nil => return Err(Error::new("len of nil pointer")),
        Value::Invalid => {
            return Err(Error::new("reflect: call of reflect.Value.Type on zero Value"));
        }
        other => return Err(Error::new(format!("len of type {}", pointee(other)))),
    };
    Ok(Value::int(i64::try_from(length).unwrap_or(i64::MAX)))
}

/// Returns the type behind a pointer, or the type.
fn pointee(value: &Value) -> &'static str {
    let name = value.type_name();
    match value.kind() {
        Some(Kind::Pointer) => name.strip_prefix('*').unwrap_or(name),
        _ => name,
    }
}

fn unnamed(value: &Value) -> Option<Value> {
    match value {
        Value::Object(object) => object.underlying(),
        _ => None,
    }
}
