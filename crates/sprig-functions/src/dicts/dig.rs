//! `dig`: the value at a path of keys, or a default.

use go_template::{Context, Error, Map, Str, Type, Value};

use crate::arguments::any;

/// Takes keys, the default, and the map. A value in between that is no map makes Go panic.
pub(super) fn dig(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let [keys @ .., default, map] = arguments else {
        return Err(Error::new("dig needs at least three arguments"));
    };
    if keys.is_empty() {
        return Err(Error::new("dig needs at least three arguments"));
    }
    let mut map = as_map(map)?;
    let keys = keys.iter().map(as_key).collect::<Result<Vec<_>, _>>()?;
    for (index, key) in keys.iter().enumerate() {
        let Some(value) = map.get(key) else { break };
        if index == keys.len() - 1 {
            return Ok(value);
        }
        map = as_map(&value)?;
    }
    Ok(any(std::slice::from_ref(default), 0))
}

fn as_key(value: &Value) -> Result<Str, Error> {
    value
        .as_string()
        .cloned()
        .ok_or_else(|| conversion(value, "string"))
}

/// Go asserts the very type: a map of a named type is none.
fn as_map(value: &Value) -> Result<Map, Error> {
    match value {
        Value::Map(map) if map.type_() == Type::MAP_ANY => Ok(map.clone()),
        value => Err(conversion(value, Type::MAP_ANY.name())),
    }
}

fn conversion(value: &Value, wanted: &str) -> Error {
    let found = if value.is_untyped_nil() {
        "nil"
    } else {
        value.type_name()
    };
    Error::new(format!(
        "interface conversion: interface {{}} is {found}, not {wanted}"
    ))
}
