//! Makes something of a tree wrong: a type, a name, a key, a line.

use serde_json::{Value, json};

use crate::generate::word;
use crate::random::Random;
use crate::tree::{File, Tree};

/// Spoils one place of one file.
pub fn spoil(random: &mut Random, tree: &mut Tree) {
    let paths: Vec<String> = tree.files.keys().cloned().collect();
    let path = &paths[random.below(paths.len())];
    if random.chance(5) {
        tree.files.remove(path);
        return;
    }
    let Some(file) = tree.files.get_mut(path) else {
        return;
    };
    match file {
        File::Text(text) => spoil_text(random, text),
        File::Yaml(documents) if documents.is_empty() => documents.push(other(random)),
        File::Yaml(documents) if random.chance(90) => {
            let position = random.below(documents.len());
            spoil_value(random, &mut documents[position]);
        }
        File::Yaml(documents) => {
            let document = documents[random.below(documents.len())].clone();
            documents.push(document);
        }
    }
}

fn spoil_text(random: &mut Random, text: &mut String) {
    let mut lines: Vec<&str> = text.lines().collect();
    let position = random.below(lines.len() + 1);
    lines.insert(
        position,
        random.pick(&[
            "-",
            "a: b: c",
            "\t",
            "{",
            "x",
            "]",
            "a:",
            "- a\nb: c",
            "&a *b",
            "%TAG",
        ]),
    );
    *text = lines.join("\n");
}

fn spoil_value(random: &mut Random, value: &mut Value) {
    if random.chance(75) {
        let inner = match value {
            Value::Object(fields) if !fields.is_empty() => {
                let position = random.below(fields.len());
                fields.values_mut().nth(position)
            }
            Value::Array(elements) if !elements.is_empty() => {
                let position = random.below(elements.len());
                elements.get_mut(position)
            }
            _ => None,
        };
        if let Some(inner) = inner {
            return spoil_value(random, inner);
        }
    }
    match (random.below(3), &mut *value) {
        (0, Value::Object(fields)) if !fields.is_empty() => {
            let key = fields
                .keys()
                .nth(random.below(fields.len()))
                .cloned()
                .unwrap_or_default();
            let inner = fields.remove(&key);
            if random.chance(50) {
                fields.insert(
                    random
                        .pick(&["unknown", "Name", "kind", "", "metadata"])
                        .to_owned(),
                    inner.unwrap_or_default(),
                );
            }
        }
        (0, Value::Array(elements)) if !elements.is_empty() => {
            let again = elements[random.below(elements.len())].clone();
            elements.push(again);
        }
        _ => *value = other(random),
    }
}

fn other(random: &mut Random) -> Value {
    match random.below(8) {
        0 => Value::Null,
        1 => json!([]),
        2 => json!({}),
        3 => json!([word::scalar(random)]),
        4 => json!({word::key(random): word::scalar(random)}),
        5 => json!([{"name": word::name(random)}]),
        _ => word::scalar(random),
    }
}
