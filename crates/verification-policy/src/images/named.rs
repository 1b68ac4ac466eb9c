//! The images that objects name: those of containers, at any depth, and of volumes that are images.
//!
//! Custom resources with Pod templates in them, such as Rollouts, are seen by this. An image that an operator reads from fields of its
//! own is not.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Returns the images that an object names, as it names them.
pub fn named(object: &Map<String, Value>) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    in_fields(object, &mut found);
    found
}

/// Gives images other names. Returns whether there was one to change.
pub fn rename(object: &mut Map<String, Value>, new: &dyn Fn(&str) -> Option<String>) -> bool {
    let mut changed = false;
    for (field, value) in object.iter_mut() {
        if let (Some(pointer), Some(items)) = (image_in(field), value.as_array_mut()) {
            for image in items.iter_mut().filter_map(|item| item.pointer_mut(pointer)) {
                if let Some(renamed) = image.as_str().and_then(new) {
                    *image = renamed.into();
                    changed = true;
                }
            }
        }
        changed |= match value {
            Value::Object(fields) => rename(fields, new),
            Value::Array(items) => rename_items(items, new),
            _ => false,
        };
    }
    changed
}

fn rename_items(items: &mut [Value], new: &dyn Fn(&str) -> Option<String>) -> bool {
    let mut changed = false;
    for item in items {
        changed |= match item {
            Value::Object(fields) => rename(fields, new),
            Value::Array(items) => rename_items(items, new),
            _ => false,
        };
    }
    changed
}

fn in_fields<'a>(fields: &'a Map<String, Value>, found: &mut BTreeSet<&'a str>) {
    for (field, value) in fields {
        if let (Some(pointer), Some(items)) = (image_in(field), value.as_array()) {
            let images = items.iter().filter_map(|item| item.pointer(pointer)?.as_str());
            found.extend(images.filter(|image| !image.is_empty()));
        }
        in_value(value, found);
    }
}

fn in_value<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(fields) => in_fields(fields, found),
        Value::Array(items) => items.iter().for_each(|item| in_value(item, found)),
        _ => {}
    }
}

/// Where an item of a list has its image, by the name of the list.
fn image_in(list: &str) -> Option<&'static str> {
    match list {
        "containers" | "initContainers" | "ephemeralContainers" => Some("/image"),
        "volumes" => Some("/image/reference"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn images_are_found_wherever_a_pod_is_described() {
        let pod = json!({
            "initContainers": [{"image": "init:1"}],
            "containers": [{"image": "app:1"}, {"name": "without"}, {"image": 5}, {"image": ""}],
            "ephemeralContainers": [{"image": "debug"}],
            "volumes": [{"name": "model", "image": {"reference": "model:1"}}, {"emptyDir": {}}],
        });
        let expected = ["app:1", "debug", "init:1", "model:1"];
        for kind in [
            json!({"kind": "Pod", "spec": pod}),
            json!({"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": pod}}}}}),
            json!({"kind": "Rollout", "spec": {"steps": [[{"template": {"spec": pod}}]]}}),
        ] {
            let kind = object(kind);
            assert_eq!(named(&kind).into_iter().collect::<Vec<_>>(), expected);
        }
        let none = object(json!({"data": {"containers": "text"}, "image": "x", "spec": {"image": "y"}}));
        assert!(named(&none).is_empty());
    }

    #[test]
    fn only_images_are_renamed() {
        let mut pod = object(json!({"spec": {
            "containers": [{"name": "app", "image": "app", "args": ["app"]}, {"image": "other"}],
            "volumes": [{"image": {"reference": "app"}}],
        }}));
        let new = |image: &str| (image == "app").then(|| "app@x".to_owned());
        assert!(rename(&mut pod, &new) && !rename(&mut pod, &new));
        assert_eq!(
            Value::Object(pod),
            json!({"spec": {
                "containers": [{"name": "app", "image": "app@x", "args": ["app"]}, {"image": "other"}],
                "volumes": [{"image": {"reference": "app@x"}}],
            }})
        );
    }
}
