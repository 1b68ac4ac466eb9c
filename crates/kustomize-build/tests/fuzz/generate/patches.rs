//! Patches made from the objects that they are for: parts of them, changed, and operations on places in them.

use serde_json::{Map, Value, json};

use super::{place, word};
use crate::random::Random;
use crate::tree::RAW;

/// Makes `patches` for some objects.
pub fn patches(random: &mut Random, objects: &[Value]) -> Value {
    random.several(1, 3, |random| entry(random, objects)).into()
}

fn entry(random: &mut Random, objects: &[Value]) -> Value {
    let object = &objects[random.below(objects.len())];
    let operations = random.chance(40);
    let text = if operations {
        let list = random.several(1, 3, |random| operation(random, object));
        Value::from(list).to_string()
    } else {
        strategic(random, object).to_string()
    };
    let mut entry = json!({"patch": text});
    if operations || random.chance(30) {
        entry["target"] = target(random, object);
    }
    if random.chance(15) {
        entry["options"] = json!({random.pick(&["allowNameChange", "allowKindChange"]): true});
    }
    entry
}

/// Selects an object, by expressions that often match.
pub fn target(random: &mut Random, object: &Value) -> Value {
    let mut target = Map::new();
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("x");
    if random.chance(60) {
        target.insert("kind".to_owned(), json!(text("/kind")));
    }
    if random.chance(30) {
        let name = text("/metadata/name").to_owned();
        let broken = random.pick(&[
            ".*",
            "a|app|web",
            "(",
            "[",
            "*",
            "a{1,2}",
            "w\\w*",
            "(?i)WEB",
            "\\pL+",
            "x{2000}",
        ]);
        let name = if random.chance(50) {
            name
        } else {
            broken.to_owned()
        };
        target.insert("name".to_owned(), json!(name));
    }
    if random.chance(20) {
        let which = random.pick(&["labelSelector", "annotationSelector"]);
        let selector = random.pick(&[
            "app",
            "!app",
            "app=web",
            "app in (web, a)",
            "tier notin (x),app",
            "app>1",
            "a b",
            "=",
            "app=-x",
            "app,",
            "x/y/z",
            "app in a",
            "!!app",
            "app in (),tier",
        ]);
        target.insert(which.to_owned(), json!(selector));
    }
    if random.chance(10) {
        target.insert(
            "namespace".to_owned(),
            json!(random.pick(&["default", "prod", ".*", "_non_namespaceable_"])),
        );
    }
    Value::Object(target)
}

/// A strategic patch: what is left of the object when parts are taken away and others are changed.
fn strategic(random: &mut Random, object: &Value) -> Value {
    let mut patch = part(random, object);
    for name in ["apiVersion", "kind"] {
        patch[name] = object[name].clone();
    }
    let metadata = &object["metadata"];
    for name in ["name", "namespace"] {
        if let Some(text) = metadata.get(name) {
            patch["metadata"][name] = text.clone();
        }
    }
    for _ in 0..random.below(4) {
        change(random, &mut patch);
    }
    patch
}

fn part(random: &mut Random, value: &Value) -> Value {
    const KEYS: [&str; 7] = [
        "name",
        "containerPort",
        "port",
        "protocol",
        "mountPath",
        "type",
        "metadata",
    ];
    match value {
        Value::Object(fields) => {
            let mut kept = Map::new();
            for (key, value) in fields {
                if KEYS.contains(&key.as_str()) || random.chance(60) {
                    kept.insert(key.clone(), part(random, value));
                }
            }
            Value::Object(kept)
        }
        Value::Array(elements) => {
            let mut kept = Vec::new();
            for element in elements {
                if random.chance(60) {
                    kept.push(part(random, element));
                }
            }
            Value::Array(kept)
        }
        // A patch's text is JSON, which knows no scalars as they are written.
        Value::String(text) if text.starts_with(RAW) => json!("raw"),
        other => other.clone(),
    }
}

fn change(random: &mut Random, patch: &mut Value) {
    let pointer = place::any(random, patch);
    if ["/apiVersion", "/kind", "/metadata", "/metadata/name"].contains(&pointer.as_str()) {
        return;
    }
    let made = value(random);
    let directive = random.pick(&["delete", "replace", "merge", "bogus"]);
    let Some(at) = patch.pointer_mut(&pointer) else {
        return;
    };
    match at {
        Value::Object(fields) if random.chance(60) => {
            fields.insert("$patch".to_owned(), json!(directive));
        }
        Value::Array(elements) if random.chance(40) => elements.push(json!({"$patch": directive})),
        Value::Array(elements) if random.chance(40) => elements.insert(0, made),
        other => *other = made,
    }
}

/// A value that is often of another kind than the one that it is put in place of.
pub fn value(random: &mut Random) -> Value {
    match random.below(8) {
        0 | 1 => Value::Null,
        2 => json!({}),
        3 => json!([]),
        4 => json!({"name": word::name(random)}),
        5 => json!([word::name(random)]),
        6 => json!(random.below(100)),
        _ => json!(word::name(random)),
    }
}

fn operation(random: &mut Random, object: &Value) -> Value {
    let name = random.pick(&["add", "add", "remove", "replace", "move", "copy", "test", "bogus"]);
    let mut operation = json!({"op": name, "path": pointer(random, object)});
    if ["move", "copy"].contains(&name) {
        operation["from"] = json!(pointer(random, object));
    } else if random.chance(90) {
        operation["value"] = value(random);
    }
    if random.chance(3) {
        operation["path"] = value(random);
    }
    operation
}

fn pointer(random: &mut Random, object: &Value) -> String {
    let pointer = place::any(random, object);
    let (above, _) = place::split(&pointer);
    let last = random.pick(&["-", "-1", "0", "7", "x", "01", "~01"]);
    match random.below(10) {
        0 => format!("{above}/{last}"),
        1 => format!("{pointer}/{last}"),
        _ => pointer,
    }
}
