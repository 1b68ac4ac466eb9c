//! `toJson`, `fromJson` and their kin, as Helm has them: errors are empty texts or part of the result.

use go_template::json::{Decoded, Style, charge_values, decode_as, encode};
use go_template::{Error, Function, Functions, List, Map, Type, Value};

use helm_chart::Helm;

pub(super) fn register(functions: &mut Functions, helm: Helm) {
    functions.add(
        "toJson",
        Function::new(&[Type::ANY], |_, arguments| {
            Ok(encode(&arguments[0], Style::MARSHAL).unwrap_or_default().into())
        }),
    );
    if helm == Helm::V4 {
        functions.add(
            "mustToJson",
            Function::new(&[Type::ANY], |_, arguments| {
                Ok(encode(&arguments[0], Style::MARSHAL)?.into())
            }),
        );
    }
    functions.add(
        "fromJson",
        Function::new(&[Type::STRING], |context, arguments| {
            charge_values(context, text(&arguments[0]))?;
            Ok(map_of(decode_as(text(&arguments[0]), Type::MAP_ANY)))
        }),
    );
    functions.add(
        "fromJsonArray",
        Function::new(&[Type::STRING], |context, arguments| {
            charge_values(context, text(&arguments[0]))?;
            Ok(list_of(decode_as(text(&arguments[0]), Type::LIST_ANY)))
        }),
    );
}

/// Returns what was read as a map, with the error as one of its entries.
pub(super) fn map_of(decoded: Decoded) -> Value {
    let value = decoded.value.unwrap_or_else(|| Map::new().into());
    match (&value, decoded.error) {
        (_, None) => value,
        (Value::Map(map), Some(error)) if map.insert("Error", error.message()) => value,
        (_, Some(error)) => error_map(&error),
    }
}

/// Returns what was read as a list, or the error as its only item.
pub(super) fn list_of(decoded: Decoded) -> Value {
    match decoded.error {
        Some(error) => List::from(vec![Value::from(error.message())]).into(),
        None => decoded.value.unwrap_or_else(|| List::from(Vec::new()).into()),
    }
}

/// Returns a map that holds nothing but an error.
pub(super) fn error_map(error: &Error) -> Value {
    let map: Map = [("Error", error.message())].into_iter().collect();
    map.into()
}

/// Returns the text of a parameter of type string.
pub(super) fn text(value: &Value) -> &[u8] {
    value.as_string().map_or(&[], |text| text)
}
