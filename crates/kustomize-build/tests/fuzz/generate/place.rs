//! Places in an object: JSON pointers to all that it holds.

use serde_json::Value;

use crate::random::Random;

/// Gives a pointer to any place in a value but its root.
pub fn any(random: &mut Random, value: &Value) -> String {
    let mut places = Vec::new();
    collect(value, String::new(), &mut places);
    if places.is_empty() {
        return "/x".to_owned();
    }
    places.swap_remove(random.below(places.len()))
}

fn collect(value: &Value, at: String, places: &mut Vec<String>) {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.replace('~', "~0").replace('/', "~1"), value))
            .collect(),
        Value::Array(elements) => elements
            .iter()
            .enumerate()
            .map(|(index, value)| (index.to_string(), value))
            .collect(),
        _ => Vec::new(),
    };
    for (key, value) in below {
        collect(value, format!("{at}/{key}"), places);
    }
    if !at.is_empty() {
        places.push(at);
    }
}

/// Splits a pointer into the one above it and its last part.
pub fn split(pointer: &str) -> (&str, String) {
    let (above, last) = pointer.rsplit_once('/').unwrap_or(("", pointer));
    (above, last.replace("~1", "/").replace("~0", "~"))
}
