//! Replacements between objects, with paths that lead to places in them and into text that they hold.

use serde_json::{Map, Value, json};

use super::{patches, place};
use crate::random::Random;

/// Text that a replacement may lead into.
const TEXTS: &[&str] = &[
    "a:\n  b: 1\n  l:\n  - name: x\n    v: y\n",
    "a: {b: c}\nl: [1, 2]\n",
    "{\"a\":{\"b\":1},\"l\":[{\"name\":\"x\",\"v\":2}]}",
    "{\n  \"a\": {\n    \"b\": \"x\"\n  }\n}\n",
    "a: \"q\"\nb: 's'\nl: &x [1]\nm: *x\n",
    "- 1\n- a\n",
    "text",
    "",
    "a: [\n",
];

/// Adds a ConfigMap whose values are texts with a structure.
pub fn config_map(random: &mut Random) -> Value {
    let text = random.pick(TEXTS);
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "texts"}, "data": {"f": text, "s": "v"}})
}

/// Makes `replacements` for some objects.
pub fn replacements(random: &mut Random, objects: &[Value]) -> Value {
    random.several(1, 2, |random| replacement(random, objects)).into()
}

fn replacement(random: &mut Random, objects: &[Value]) -> Value {
    let mut replacement = Map::new();
    if random.chance(90) {
        replacement.insert("source".to_owned(), source(random, objects));
    }
    if random.chance(12) {
        let text = random.pick(&["v", "5", "true", "a b", ""]);
        replacement.insert("sourceValue".to_owned(), json!(text));
    }
    let targets = random.several(1, 2, |random| target(random, objects));
    replacement.insert("targets".to_owned(), targets.into());
    Value::Object(replacement)
}

fn source(random: &mut Random, objects: &[Value]) -> Value {
    let object = &objects[random.below(objects.len())];
    let mut source = json!({"kind": object["kind"]});
    if random.chance(80) {
        source["name"] = object["metadata"]["name"].clone();
    }
    if random.chance(85) {
        source["fieldPath"] = json!(path(random, object));
    }
    if random.chance(20) {
        source["options"] = options(random);
    }
    source
}

fn target(random: &mut Random, objects: &[Value]) -> Value {
    let object = &objects[random.below(objects.len())];
    let select = if random.chance(60) {
        json!({"kind": object["kind"]})
    } else {
        patches::target(random, object)
    };
    let paths: Vec<Value> = random.several(1, 2, |random| json!(path(random, object)));
    let mut target = json!({"select": select, "fieldPaths": paths});
    if random.chance(20) {
        target["reject"] = json!([patches::target(random, object)]);
    }
    if random.chance(40) {
        target["options"] = options(random);
    }
    target
}

fn options(random: &mut Random) -> Value {
    let mut options = Map::new();
    if random.chance(60) {
        options.insert("delimiter".to_owned(), json!(random.pick(&[":", "/", "-", "e"])));
        options.insert("index".to_owned(), json!([0, 1, 2, -1, 9][random.below(5)]));
    }
    if random.chance(50) {
        options.insert("create".to_owned(), json!(true));
    }
    Value::Object(options)
}

/// Writes a place in an object as kustomize's paths have it, or one that is near.
fn path(random: &mut Random, object: &Value) -> String {
    let mut parts = Vec::new();
    let mut at = object;
    for part in place::any(random, object).split('/').skip(1) {
        let key = part.replace("~1", "/").replace("~0", "~");
        match at {
            Value::Array(elements) => {
                let element = key.parse().ok().and_then(|index: usize| elements.get(index));
                let name = element
                    .and_then(|element| element.get("name"))
                    .and_then(Value::as_str);
                parts.push(match (random.below(4), name) {
                    (0, Some(name)) => format!("[name={name}]"),
                    (1, _) => "*".to_owned(),
                    _ => key.clone(),
                });
                at = element.unwrap_or(&Value::Null);
            }
            _ => {
                parts.push(key.replace('.', "\\."));
                at = at.get(&key).unwrap_or(&Value::Null);
            }
        }
    }
    if parts.last().is_some_and(|last| last == "f") {
        let inside = random.pick(&["a", "a.b", "l.0", "l.[name=x].v", "x", "l.*", "a.new.y", "m.0"]);
        parts.push(inside.to_owned());
    }
    if random.chance(15) {
        let more = random.pick(&[
            "new",
            "0",
            "[name=n]",
            "*",
            "-",
            "[=z]",
            "x.y",
            "",
            "[a=(]",
            "[name=.*]",
        ]);
        parts.push(more.to_owned());
    }
    parts.join(".")
}
