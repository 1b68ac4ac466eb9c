//! An object in Go's syntax, as kustomize shows one that it cannot write.

use serde_json::Value;

/// Writes an object as Go's `%#v`; what a Secret holds is left out.
pub(super) fn of_object(object: &Value) -> String {
    let mut object = object.clone();
    if object.get("kind").and_then(Value::as_str) == Some("Secret")
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("data");
        fields.remove("stringData");
    }
    value(&object)
}

fn value(of: &Value) -> String {
    match of {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => quoted(text),
        Value::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(value).collect();
            format!("[]interface {{}}{{{}}}", elements.join(", "))
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            let fields: Vec<String> = sorted
                .into_iter()
                .map(|(key, field)| format!("{}:{}", quoted(key), value(field)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        scalar => scalar.to_string(),
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' | '\u{7f}' => out += &format!("\\x{:02x}", u32::from(c)),
            '\u{80}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => out += &format!("\\u{:04x}", u32::from(c)),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::of_object;
    use serde_json::json;

    #[test]
    fn objects_are_shown_as_in_go_and_secrets_are_not() {
        let map = json!({"kind": "ConfigMap", "data": {"a": "\u{1}\u{7f}", "n": [1, null]}});
        let shown = "map[string]interface {}{\"data\":map[string]interface {}{\"a\":\"\\x01\\x7f\", \
                     \"n\":[]interface {}{1, interface {}(nil)}}, \"kind\":\"ConfigMap\"}";
        assert_eq!(of_object(&map), shown);
        let secret = json!({"kind": "Secret", "data": {"a": "x"}, "stringData": {"b": "y"}});
        assert_eq!(of_object(&secret), "map[string]interface {}{\"kind\":\"Secret\"}");
    }
}
