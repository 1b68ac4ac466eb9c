//! Two states of an object as texts for people: without what only the server writes, and without what is no one's business.

use serde_json::{Map, Value};

use super::show::Mask;

/// Takes out of both states what the server writes by itself, and masks values. Where a value is masked, one that differs
/// between the two is told from one that does not. `Null` stands for a state in which there is no object.
pub fn masked(before: &Value, after: &Value, is_confidential: bool) -> (Value, Value) {
    let (mut before, mut after) = (plain(before), plain(after));
    let kind = if after.is_null() { &before } else { &after };
    let mask = Mask::new(kind, is_confidential);
    let (old, new) = (before.clone(), after.clone());
    hide(&mut before, &new, "", mask, true);
    hide(&mut after, &old, "", mask, false);
    (before, after)
}

/// An object without what only the server writes.
pub(crate) fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in [
            "managedFields",
            "resourceVersion",
            "uid",
            "generation",
            "creationTimestamp",
            "selfLink",
        ] {
            metadata.remove(field);
        }
    }
    object
}

/// Fields that identify an object, which are no secret.
const NAMES: [&str; 4] = ["apiVersion", "kind", "metadata.name", "metadata.namespace"];

/// Masks the leaves of a value; `other` is the same place in the other state.
fn hide(value: &mut Value, other: &Value, path: &str, mask: Mask, is_before: bool) {
    match value {
        Value::Object(fields) => hide_fields(fields, other, path, mask, is_before),
        Value::Array(elements) => {
            for (index, element) in elements.iter_mut().enumerate() {
                let other = other.get(index).unwrap_or(&Value::Null);
                hide(element, other, &format!("{path}[{index}]"), mask, is_before);
            }
        }
        leaf => {
            let is_other = !other.is_null() && leaf != other;
            let shown = mask.shown(path, is_other || is_before, is_other || !is_before);
            if let Some((was, is)) = shown.filter(|_| !NAMES.contains(&path)) {
                let word = if is_before { was } else { is };
                *leaf = word.unwrap_or_default().into();
            }
        }
    }
}

fn hide_fields(fields: &mut Map<String, Value>, other: &Value, path: &str, mask: Mask, is_before: bool) {
    for (field, value) in fields {
        let is_plain = field
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
        let below = match (path.is_empty(), is_plain) {
            (true, _) => field.clone(),
            (false, true) => format!("{path}.{field}"),
            (false, false) => format!("{path}[{}]", Value::from(field.as_str())),
        };
        let other = other.get(field).unwrap_or(&Value::Null);
        hide(value, other, &below, mask, is_before);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_secrets_are_told_apart_and_not_told() {
        let secret = |data: Value| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "uid": "u",
                "labels": {"app": "web"}}, "data": data, "status": {}})
        };
        let (before, after) = masked(
            &secret(json!({"same": "YQ==", "other": "YQ==", "gone": "YQ=="})),
            &secret(json!({"same": "YQ==", "other": "Yg=="})),
            false,
        );
        let labels = json!({"name": "s", "labels": {"app": "web"}});
        assert_eq!(
            before["data"],
            json!({"same": "***", "other": "*** (before)", "gone": "***"})
        );
        assert_eq!(after["data"], json!({"same": "***", "other": "*** (after)"}));
        assert_eq!(after["metadata"], labels);
        assert!(after.get("status").is_none());
        let (_, new) = masked(&Value::Null, &secret(json!({"a": "YQ=="})), false);
        assert_eq!(new["data"], json!({"a": "***"}));
    }

    #[test]
    fn of_what_is_made_of_secrets_only_names_are_told() {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"},
            "data": {"key": "hunter2"}});
        let (before, after) = masked(&map, &map, true);
        assert_eq!(before, after);
        assert_eq!(after["metadata"], json!({"name": "a", "namespace": "b"}));
        assert_eq!(after["data"]["key"], "***");
        let (_, plain) = masked(&Value::Null, &map, false);
        assert_eq!(plain["data"]["key"], "hunter2");
    }
}
