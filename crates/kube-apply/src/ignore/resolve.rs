//! Resolves the ignored fields of an applied object: leaves them out, or sends the live value.

use serde_json::{Map, Value};

use super::field::{get, put, remove, remove_with_parents};
use super::{FieldSets, Pointer, Step};
use crate::settings::Settings;

/// An ignored field of one object, and what the manifest would make of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spot {
    pub(crate) steps: Vec<Step>,
    /// The server's answer to a dry run of the manifest; None is an absent field.
    pub(crate) wanted: Option<Value>,
}

/// Finds the ignored fields of an object.
pub(crate) fn spots(pointers: &[&Pointer], manifest: &Value, live: &Value, wanted: &Value) -> Vec<Spot> {
    let sets = FieldSets::from_live(live);
    let found = pointers.iter().map(|pointer| {
        let steps = pointer.steps([manifest, live], &sets);
        let wanted = get(wanted, &steps).cloned();
        Spot { steps, wanted }
    });
    found.collect()
}

/// Puts the ignored fields of what would be into the state that they have.
pub(crate) fn keep(expected: &mut Value, live: &Value, spots: &[Spot]) {
    for Spot { steps, .. } in spots {
        match get(live, steps) {
            Some(value) => put(expected, steps, value.clone()),
            None => remove_with_parents(expected, steps),
        }
    }
}

/// Makes what is sent over the live object. Ignored fields that would change are left out if someone else applied them,
/// and are sent as they are live otherwise, so that they keep an owner. None when nothing would change.
pub(crate) fn resolve(
    manifest: &Map<String, Value>,
    live: &Value,
    spots: &[Spot],
    settings: &Settings,
) -> Option<Map<String, Value>> {
    let sets = FieldSets::from_live(live);
    let differing = spots
        .iter()
        .filter(|spot| get(live, &spot.steps) != spot.wanted.as_ref());
    let mut payload: Option<Value> = None;
    for spot in differing {
        let payload = payload.get_or_insert_with(|| Value::Object(manifest.clone()));
        match get(live, &spot.steps) {
            Some(value) if !sets.has_other_owner(&settings.field_manager, &spot.steps) => {
                put(payload, &spot.steps, value.clone());
            }
            _ => remove(payload, &spot.steps),
        }
    }
    match payload {
        Some(Value::Object(mut payload)) => {
            keep_identity(manifest, &mut payload, settings);
            Some(payload)
        }
        _ => None,
    }
}

/// Whatever is ignored, the object stays the one that the manifest is about, and its owner's.
fn keep_identity(manifest: &Map<String, Value>, payload: &mut Map<String, Value>, settings: &Settings) {
    for field in ["apiVersion", "kind"] {
        if let Some(value) = manifest.get(field) {
            payload.insert(field.to_owned(), value.clone());
        }
    }
    payload.remove("status");
    let Some(Value::Object(ours)) = manifest.get("metadata") else {
        return;
    };
    let metadata = payload
        .entry("metadata")
        .or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(metadata) = metadata else {
        *metadata = Value::Object(ours.clone());
        return;
    };
    metadata
        .retain(|field, _| ours.contains_key(field) || matches!(field.as_str(), "labels" | "annotations"));
    for field in ["name", "namespace"] {
        if let Some(value) = ours.get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let labels = metadata
        .entry("labels")
        .or_insert_with(|| Value::Object(Map::new()));
    for label in [settings.name_label(), settings.namespace_label()] {
        if let (Some(value), Value::Object(labels)) =
            (ours.get("labels").and_then(|l| l.get(&label)), &mut *labels)
        {
            labels.insert(label, value.clone());
        }
    }
    if labels.as_object().is_some_and(Map::is_empty) && !ours.contains_key("labels") {
        metadata.remove("labels");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Manifest, live object and dry run's answer have these specs; the live one has these appliers of `f:x`.
    fn resolved(pointer: &str, specs: [Value; 3], appliers: &[&str]) -> Option<Value> {
        let [manifest, live, wanted] =
            specs.map(|spec| json!({"kind": "A", "metadata": {"name": "a"}, "spec": spec}));
        let mut live = live;
        let entry = |manager: &&str| json!({"manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": {"f:x": {}}}});
        live["metadata"]["managedFields"] = appliers.iter().map(entry).collect();
        live["metadata"]["resourceVersion"] = json!("7");
        let pointer = Pointer::parse(pointer).unwrap();
        let spots = spots(&[&pointer], &manifest, &live, &wanted);
        let settings = Settings {
            field_manager: "us".into(),
            ..Settings::default()
        };
        let payload = resolve(manifest.as_object().unwrap(), &live, &spots, &settings)?;
        assert_eq!(payload["metadata"], json!({"name": "a"}));
        Some(payload["spec"].clone())
    }

    #[test]
    fn ignored_fields_of_what_would_be_are_those_that_there_are() {
        let spot = |path: &[&str]| Spot {
            steps: path.iter().map(|name| Step::Field((*name).to_owned())).collect(),
            wanted: None,
        };
        let live = json!({"spec": {"replicas": 5}});
        let mut expected = json!({"spec": {"replicas": 1, "paused": true, "strategy": {"type": "x"}}});
        let spots = [spot(&["spec", "replicas"]), spot(&["spec", "strategy", "type"])];
        keep(&mut expected, &live, &spots);
        assert_eq!(expected, json!({"spec": {"replicas": 5, "paused": true}}));
    }

    #[test]
    fn a_field_that_another_applied_is_left_out() {
        let specs = [
            json!({"x": 1, "y": 1}),
            json!({"x": 5, "y": 0}),
            json!({"x": 1, "y": 1}),
        ];
        assert_eq!(resolved("/spec/x", specs, &["us", "hpa"]), Some(json!({"y": 1})));
    }

    #[test]
    fn a_field_that_nobody_else_applied_is_sent_as_it_is() {
        let specs = || {
            [
                json!({"x": 1, "y": 1}),
                json!({"x": 5, "y": 0}),
                json!({"x": 1, "y": 1}),
            ]
        };
        assert_eq!(
            resolved("/spec/x", specs(), &["us"]),
            Some(json!({"x": 5, "y": 1}))
        );
        assert_eq!(resolved("/spec/x", specs(), &[]), Some(json!({"x": 5, "y": 1})));
    }

    #[test]
    fn a_field_that_would_not_change_is_sent_as_the_manifest_has_it() {
        let specs = [
            json!({"x": {"a": 1}}),
            json!({"x": {"a": 1, "b": 2}}),
            json!({"x": {"a": 1, "b": 2}}),
        ];
        assert_eq!(resolved("/spec/x", specs, &["us", "hpa"]), None);
    }

    #[test]
    fn a_field_that_left_the_manifest_stays_and_one_that_left_the_object_stays_away() {
        let (with, without) = (json!({"x": 1}), json!({}));
        let left_manifest = [without.clone(), with.clone(), without.clone()];
        assert_eq!(resolved("/spec/x", left_manifest, &["us"]), Some(with.clone()));
        let left_object = [with.clone(), without, with];
        assert_eq!(resolved("/spec/x", left_object, &["us"]), Some(json!({})));
    }

    #[test]
    fn ignoring_all_metadata_does_not_send_what_only_servers_write() {
        let specs = [json!(1), json!(1), json!(1)];
        assert_eq!(resolved("/metadata", specs, &["us"]), Some(json!(1)));
    }
}
