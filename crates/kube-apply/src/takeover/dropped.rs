//! Fields that an apply would remove once other tools' fields are ours. Pure.
//!
//! The server removes what we owned and do not send any more, unless someone else owns it as well.

use serde_json::{Map, Value};

use super::{patch, patch_of};
use crate::settings::Settings;

/// Field managers whose fields are taken over.
#[derive(Clone, Copy, Debug)]
pub(crate) enum From<'a> {
    /// Of kubectl and its like ([`super::is_taken_over`]).
    Leftovers,
    /// Of these managers, by their whole names.
    Named(&'a [&'a str]),
}

/// Remaining fields of an object.
#[derive(Debug, PartialEq)]
pub(crate) struct Left {
    pub(crate) object: Value,
    /// From whom fields are taken over.
    pub(crate) managers: Vec<String>,
}

/// Takes the answer to a (dry) apply, and says what another one leaves of it after the take-over. Defaults that the server
/// would put back are gone, too. None when nothing goes.
pub(crate) fn left(answer: &Value, from: From<'_>, settings: &Settings) -> Option<Left> {
    let metadata = answer.get("metadata")?;
    let operations = match from {
        From::Leftovers => patch(metadata, settings)?,
        From::Named(managers) => patch_of(metadata, managers, settings)?,
    };
    let mut object = answer.clone();
    let mut managers = Vec::new();
    for operation in operations.as_array()? {
        let path = operation.get("path").and_then(Value::as_str).unwrap_or_default();
        match path {
            "/metadata/managedFields" => {
                let merged = operation.get("value").and_then(Value::as_array)?;
                managers = take_over(&mut object, merged, settings);
            }
            "/metadata/resourceVersion" => {}
            _ => remove_at(&mut object, path),
        }
    }
    (object != *answer).then_some(Left { object, managers })
}

/// Removes what no one wants any more; returns whose it was.
fn take_over(object: &mut Value, merged: &[Value], settings: &Settings) -> Vec<String> {
    let entries = object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array);
    let entries = entries.cloned().unwrap_or_default();
    let text = |entry: &Value, field: &str| {
        let found = entry.get(field).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let is_ours = |entry: &&Value| {
        text(entry, "manager") == settings.field_manager
            && text(entry, "operation") == "Apply"
            && text(entry, "subresource").is_empty()
    };
    let fields = |entry: &Value| entry.get("fieldsV1").and_then(Value::as_object).cloned();
    // The last one is ours, with all that is taken over.
    let Some((ours, others)) = merged.split_last() else {
        return Vec::new();
    };
    let keepers: Vec<_> = others
        .iter()
        .chain(entries.iter().filter(is_ours))
        .filter_map(fields)
        .collect();
    if let Some(taken) = fields(ours) {
        remove_unkept(object, &taken, &keepers.iter().collect::<Vec<_>>());
    }
    let gone = entries
        .iter()
        .filter(|entry| !is_ours(entry) && !merged.contains(entry));
    let mut managers: Vec<_> = gone.map(|entry| text(entry, "manager")).collect();
    managers.sort();
    managers.dedup();
    managers
}

/// Removes the members of a field set that none of the others has.
fn remove_unkept(value: &mut Value, taken: &Map<String, Value>, keepers: &[&Map<String, Value>]) {
    for (step, below) in taken.iter().filter(|(step, _)| *step != ".") {
        let Some(below) = below.as_object() else { continue };
        let kept: Vec<_> = keepers
            .iter()
            .filter_map(|fields| fields.get(step)?.as_object())
            .collect();
        let is_member = below.is_empty() || below.contains_key(".");
        if kept.is_empty() && is_member {
            remove_step(value, step);
        } else if !kept.iter().any(|fields| fields.is_empty())
            && let Some(child) = take_step(value, step)
        {
            remove_unkept(child, below, &kept);
        }
    }
}

/// Takes a step as field sets write it: `f:name`, `k:{"name":"app"}`, `v:"value"`, `i:0`.
fn take_step<'v>(value: &'v mut Value, step: &str) -> Option<&'v mut Value> {
    match value {
        Value::Object(map) => map.get_mut(step.strip_prefix("f:")?),
        Value::Array(list) => {
            let index = index_of(list, step)?;
            list.get_mut(index)
        }
        _ => None,
    }
}

fn remove_step(value: &mut Value, step: &str) {
    match value {
        Value::Object(map) => {
            step.strip_prefix("f:").and_then(|name| map.remove(name));
        }
        Value::Array(list) => {
            index_of(list, step).map(|index| list.remove(index));
        }
        _ => {}
    }
}

fn index_of(list: &[Value], step: &str) -> Option<usize> {
    let (sort, name) = step.split_once(':')?;
    let wanted: Value = serde_json::from_str(name).ok()?;
    match sort {
        "k" => {
            let key = wanted.as_object()?;
            list.iter()
                .position(|element| key.iter().all(|(field, value)| element.get(field) == Some(value)))
        }
        "v" => list.iter().position(|element| *element == wanted),
        "i" => usize::try_from(wanted.as_u64()?)
            .ok()
            .filter(|index| *index < list.len()),
        _ => None,
    }
}

fn remove_at(object: &mut Value, path: &str) {
    if let Some((parent, key)) = path.rsplit_once('/')
        && let Some(Value::Object(map)) = object.pointer_mut(parent)
    {
        map.remove(&key.replace("~1", "/").replace("~0", "~"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, operation: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "fieldsV1": fields})
    }

    fn answer() -> Value {
        json!({
            "metadata": {
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "theirs": "x"},
                "managedFields": [
                    entry("kustomize-controller", "Apply", json!({"f:spec": {"f:ours": {}, "f:both": {},
                        "f:list": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}}}}})),
                    entry("kubectl-edit", "Update", json!({"f:metadata": {"f:annotations": {".": {}, "f:theirs": {}}},
                        "f:spec": {"f:both": {}, "f:extra": {}, "f:scaled": {}, "f:set": {"v:1": {}},
                        "f:list": {"k:{\"name\":\"a\"}": {"f:image": {}}, "k:{\"name\":\"b\"}": {".": {}, "f:name": {}}}}})),
                    entry("hpa", "Update", json!({"f:spec": {"f:scaled": {}}})),
                ],
            },
            "spec": {"ours": 1, "both": 1, "extra": 1, "scaled": 1, "foreign": 1, "set": [1, 2],
                "list": [{"name": "a", "image": "x"}, {"name": "b"}]},
        })
    }

    #[test]
    fn what_only_those_had_who_are_taken_over_goes() {
        let found = left(&answer(), From::Leftovers, &Settings::default()).unwrap();
        assert_eq!(found.managers, ["kubectl-edit"]);
        assert_eq!(
            found.object["spec"],
            json!({"ours": 1, "both": 1, "scaled": 1, "foreign": 1, "set": [2], "list": [{"name": "a"}]})
        );
        assert!(
            found.object.pointer("/metadata/annotations").is_none(),
            "{found:?}"
        );
    }

    #[test]
    fn who_is_not_taken_over_keeps_what_they_have() {
        let settings = Settings {
            field_manager: "kustomize-controller".to_owned(),
            ..Settings::default()
        };
        assert_eq!(left(&answer(), From::Named(&["helm"]), &settings), None);
        let found = left(&answer(), From::Named(&["hpa"]), &settings);
        assert_eq!(found, None, "kubectl-edit has it as well");
        let found = left(&answer(), From::Named(&["kubectl-edit"]), &settings).unwrap();
        assert!(found.object["spec"].get("extra").is_none(), "{found:?}");
    }
}
