//! Keeps the values of Secrets out of messages. Pure.
//!
//! The API server quotes what it does not understand (`expected string, got &value.valueUnstructured{Value:1234}`), and
//! conditions, events and logs are read by many.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use manifest::Object;
use secret_mask::{MASK, Mask};
use serde_json::Value;

/// Shorter values are not searched for: they would be found everywhere, and protect nothing.
const SHORTEST: usize = 3;

/// Masks in `message` the values of the object, if it is a Secret.
pub(crate) fn redact(message: &str, object: &Object) -> String {
    if object.gvk().kind != "Secret" {
        return message.to_owned();
    }
    let mut mask = Mask::default();
    for field in ["data", "stringData"] {
        collect(object.value().get(field), &mut mask);
    }
    mask_quoted_values(&mask.without_secrets(message))
}

/// Adds every scalar below `value` as written, and decoded where it is base64.
fn collect(value: Option<&Value>, mask: &mut Mask) {
    match value {
        Some(Value::String(text)) => {
            if let Some(decoded) = STANDARD
                .decode(text)
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok())
            {
                mask.add_spellings(&decoded, SHORTEST);
            }
            mask.add_spellings(text, SHORTEST);
        }
        Some(Value::Number(number)) => mask.add(&number.to_string(), 1),
        Some(Value::Array(items)) => items.iter().for_each(|item| collect(Some(item), mask)),
        Some(Value::Object(map)) => map.values().for_each(|item| collect(Some(item), mask)),
        _ => {}
    }
}

/// Masks what stands between `valueUnstructured{Value:` and the last brace, however Go chose to print it.
fn mask_quoted_values(message: &str) -> String {
    const OPEN: &str = "valueUnstructured{Value:";
    match (message.find(OPEN), message.rfind('}')) {
        (Some(start), Some(end)) if start + OPEN.len() <= end => {
            format!("{}{MASK}{}", &message[..start + OPEN.len()], &message[end..])
        }
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        match value {
            Value::Object(map) => Object::new(map, None),
            _ => panic!("no mapping"),
        }
    }

    #[test]
    fn values_of_a_secret_are_masked_however_they_are_written() {
        let secret =
            object(json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "aHVudGVyMg==", "n": 4711}}));
        let text = redact(
            "got hunter2 and aHVudGVyMg== and valueUnstructured{Value:4711} here",
            &secret,
        );
        assert_eq!(text, "got *** and *** and valueUnstructured{Value:***} here");
    }

    #[test]
    fn other_kinds_are_quoted_as_they_are() {
        let map = object(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "hunter2"}}));
        assert_eq!(redact("got hunter2", &map), "got hunter2");
    }
}
