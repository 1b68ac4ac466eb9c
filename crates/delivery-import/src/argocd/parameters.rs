//! Parameters of an ApplicationSet, and names that are made of them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The longest name of an object.
const LONGEST_NAME: usize = 253;

/// Parameters by their names.
pub(super) type Parameters = Map<String, Value>;

/// Parameters with the path to each in its name: `metadata.labels.env`. Arrays have none.
pub(super) fn flattened(parameters: &Parameters) -> BTreeMap<String, String> {
    let mut flat = BTreeMap::new();
    flatten("", parameters, &mut flat);
    flat
}

fn flatten(above: &str, parameters: &Parameters, flat: &mut BTreeMap<String, String>) {
    for (key, value) in parameters {
        let path = match above {
            "" => key.clone(),
            above => format!("{above}.{key}"),
        };
        match value {
            Value::Object(fields) => flatten(&path, fields, flat),
            Value::String(text) => _ = flat.insert(path, text.clone()),
            Value::Number(_) | Value::Bool(_) => _ = flat.insert(path, value.to_string()),
            Value::Null | Value::Array(_) => {}
        }
    }
}

/// A name that objects may have, as Argo CD makes it.
pub(super) fn normalized(name: &str) -> String {
    let is_plain =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-.".contains(letter);
    let name = name.to_lowercase().replace(|letter| !is_plain(letter), "-");
    let name: String = name.chars().take(LONGEST_NAME).collect();
    name.trim_matches(['-', '.']).to_owned()
}
