//! Emptiness, and defaults for empty values.

use go_template::{Functions, Kind, List, Object, Type, Value};

use crate::arguments::{add, add_variadic, any};
use crate::lists::items;

const NONE: &[Type] = &[];
const ONE: &[Type] = &[Type::ANY];

pub(crate) fn register(functions: &mut Functions) {
    add_variadic(
        functions,
        Type::ANY,
        &[
            ("default", ONE, |_, arguments| {
                let given = arguments.get(1).filter(|given| !is_empty(given));
                Ok(given.cloned().unwrap_or_else(|| any(arguments, 0)))
            }),
            ("coalesce", NONE, |_, arguments| {
                let found = arguments.iter().find(|value| !is_empty(value));
                Ok(found.cloned().unwrap_or(Value::Nil))
            }),
            ("all", NONE, |_, arguments| {
                Ok((!arguments.iter().any(is_empty)).into())
            }),
            ("any", NONE, |_, arguments| {
                Ok((!arguments.iter().all(is_empty)).into())
            }),
        ],
    );
    add(
        functions,
        &[
            ("empty", ONE, |_, arguments| {
                Ok(is_empty(&any(arguments, 0)).into())
            }),
            ("ternary", &[Type::ANY, Type::ANY, Type::BOOL], |_, arguments| {
                let index = usize::from(!matches!(arguments.get(2), Some(Value::Bool(true))));
                Ok(any(arguments, index))
            }),
            ("compact", ONE, |_, arguments| compact(arguments)),
            ("mustCompact", ONE, |_, arguments| compact(arguments)),
        ],
    );
}

/// Returns whether a value is the zero of its type; structs never are.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Invalid | Value::Nil => true,
        Value::Bool(set) => !set,
        Value::Int(number, _) => *number == 0,
        Value::Uint(number, _) => *number == 0,
        Value::Float(number) => *number == 0.0,
        Value::Complex(real, imaginary) => *real == 0.0 && *imaginary == 0.0,
        Value::String(text) | Value::Bytes(text) => text.is_empty(),
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Object(object) => is_empty_object(&**object),
        Value::Func(_) => false,
    }
}

fn is_empty_object(object: &dyn Object) -> bool {
    match object.underlying() {
        Some(value) => is_empty(&value),
        None => matches!(object.type_().kind(), Kind::Map | Kind::Slice) && object.fields().is_empty(),
    }
}

fn compact(arguments: &[Value]) -> Result<Value, go_template::Error> {
    let list = any(arguments, 0);
    let items = items(&list, |kind| format!("Cannot compact on type {kind}"))?;
    let kept: Vec<Value> = items.iter().filter(|item| !is_empty(item)).cloned().collect();
    Ok(List::from(kept).into())
}

#[cfg(test)]
mod tests {
    use go_template::{Map, Value};

    use crate::testing::check;

    #[test]
    fn default_takes_the_first_of_what_was_given() {
        let data: Value = Map::from_iter([("empty", Map::new())]).into();
        check(r#"{{ default "d" }}"#, &data, "d");
        check(
            r#"{{ "" | default "d" }}{{ 0 | default "d" }}{{ .empty | default "d" }}"#,
            &data,
            "ddd",
        );
        check(
            r#"{{ .missing | default "d" }}{{ .missing.deeper | default "d" }}"#,
            &data,
            "dd",
        );
        check(r#"{{ "v" | default "d" }}{{ default "d" "" "x" }}"#, &data, "vd");
    }
}
