//! JSON merge patches (RFC 7386), for kinds that Kubernetes has no schema of.

use serde_json::{Map, Value};

/// Computes the patch from one state to another.
pub(super) fn two_way(from: &Map<String, Value>, to: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = additions(from, to);
    for (key, before) in from {
        match (before, to.get(key)) {
            (_, None) => drop(patch.insert(key.clone(), Value::Null)),
            (Value::Object(before), Some(Value::Object(after))) => {
                let deeper = two_way(before, after);
                if !deeper.is_empty() {
                    patch.insert(key.clone(), Value::Object(deeper));
                }
            }
            _ => {}
        }
    }
    patch
}

/// Computes the patch from one state to another without any removal.
pub(super) fn additions(from: &Map<String, Value>, to: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for (key, after) in to {
        match (from.get(key), after) {
            (Some(Value::Object(before)), Value::Object(after)) => {
                let deeper = additions(before, after);
                if !deeper.is_empty() {
                    patch.insert(key.clone(), Value::Object(deeper));
                }
            }
            (Some(before), after) if before == after => {}
            (None, Value::Null) => {}
            (_, after) => drop(patch.insert(key.clone(), after.clone())),
        }
    }
    patch
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_patch_leads_from_one_state_to_another() {
        let map = |value: Value| value.as_object().cloned().unwrap();
        let from = map(json!({"a": 1, "b": {"c": 1, "d": 2}, "e": [1], "f": 1}));
        let to = map(json!({"a": 1, "b": {"c": 3}, "e": [1, 2], "g": null}));
        assert_eq!(
            Value::Object(two_way(&from, &to)),
            json!({"b": {"c": 3, "d": null}, "e": [1, 2], "f": null})
        );
        assert_eq!(
            Value::Object(additions(&from, &to)),
            json!({"b": {"c": 3}, "e": [1, 2]})
        );
    }
}
