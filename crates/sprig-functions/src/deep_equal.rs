//! `reflect.DeepEqual` of values.

use std::collections::HashSet;

use go_template::{List, Map, Object, Value};

/// Returns whether both are of the same type and hold the same, at any depth.
///
/// Works on a list of pairs instead of by recursion, since values may be deeper than the stack.
pub(crate) fn deep_equal(one: &Value, other: &Value) -> bool {
    let mut pending = vec![(one.clone(), other.clone())];
    // Maps may hold themselves, and lists another one twice, and so on: a pair that was met before is equal as far as it
    // can tell.
    let mut met = HashSet::new();
    while let Some((one, other)) = pending.pop() {
        let equal = match (&one, &other) {
            (Value::List(one), Value::List(other)) => {
                let addresses = (one.as_ptr().addr(), other.as_ptr().addr());
                let was_met = !one.is_empty() && one.len() == other.len() && !met.insert(addresses);
                was_met || lists(one, other, &mut pending)
            }
            (Value::Map(one), Value::Map(other)) => {
                !met.insert((one.address(), other.address())) || maps(one, other, &mut pending)
            }
            (Value::Object(one), Value::Object(other)) => {
                std::ptr::addr_eq(std::rc::Rc::as_ptr(one), std::rc::Rc::as_ptr(other))
                    || objects(&**one, &**other, &mut pending)
            }
            _ => basic(&one, &other),
        };
        if !equal {
            return false;
        }
    }
    true
}

fn basic(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Invalid | Value::Nil, Value::Invalid | Value::Nil) => true,
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Int(one, first), Value::Int(other, second)) => one == other && first == second,
        (Value::Uint(one, first), Value::Uint(other, second)) => one == other && first == second,
        (Value::Float(one), Value::Float(other)) => one == other,
        (Value::Complex(one, first), Value::Complex(other, second)) => one == other && first == second,
        (Value::String(one), Value::String(other)) | (Value::Bytes(one), Value::Bytes(other)) => one == other,
        _ => false,
    }
}

fn lists(one: &List, other: &List, pending: &mut Vec<(Value, Value)>) -> bool {
    if one.type_() != other.type_() || one.is_nil() != other.is_nil() || one.len() != other.len() {
        return false;
    }
    if !one.is_same(other) {
        pending.extend(one.iter().cloned().zip(other.iter().cloned()));
    }
    true
}

fn maps(one: &Map, other: &Map, pending: &mut Vec<(Value, Value)>) -> bool {
    if one.type_() != other.type_() || one.is_nil() != other.is_nil() || one.len() != other.len() {
        return false;
    }
    if one.is_same(other) {
        return true;
    }
    for (key, value) in one.entries() {
        let Some(against) = other.get(&key) else {
            return false;
        };
        pending.push((value, against));
    }
    true
}

fn objects(one: &dyn Object, other: &dyn Object, pending: &mut Vec<(Value, Value)>) -> bool {
    if one.type_() != other.type_() {
        return false;
    }
    if let (Some(first), Some(second)) = (one.underlying(), other.underlying()) {
        pending.push((first, second));
        return true;
    }
    if one.equals(other) {
        return true;
    }
    let (first, second) = (one.fields(), other.fields());
    if first.is_empty() {
        return false;
    }
    pending.extend(
        first
            .into_iter()
            .map(|(_, value)| value)
            .zip(second.into_iter().map(|(_, value)| value)),
    );
    true
}
