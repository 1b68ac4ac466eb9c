//! CRDs as plain trees: read from a folder, or made from the types, and compared value by value.

use std::{collections::BTreeMap, fs, path::Path};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value};

/// The CRDs in a folder, by file name.
pub(crate) fn in_folder(folder: &Path) -> BTreeMap<String, Value> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            let text = fs::read_to_string(entry.path()).unwrap();
            let tree = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            (name, tree)
        })
        .collect()
}

/// The CRDs of the types, by the names of their files.
pub(crate) fn of_the_types() -> BTreeMap<String, Value> {
    named(api::crd::all())
}

/// Those of Weave GitOps.
pub(crate) fn of_weave() -> BTreeMap<String, Value> {
    named(api::crd::weave())
}

fn named(crds: Vec<CustomResourceDefinition>) -> BTreeMap<String, Value> {
    crds.into_iter()
        .map(|crd| {
            let name = format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural);
            (name, serde_json::to_value(crd).unwrap())
        })
        .collect()
}

/// Every place where the trees differ, as lines to read.
pub(crate) fn differences(wanted: &Value, found: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare("", wanted, found, &mut lines);
    lines
}

fn compare(path: &str, wanted: &Value, found: &Value, lines: &mut Vec<String>) {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => compare_fields(path, wanted, found, lines),
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            for (index, (wanted, found)) in wanted.iter().zip(found).enumerate() {
                compare(&format!("{path}[{index}]"), wanted, found, lines);
            }
        }
        // The API server's types have bounds in floating point: 0.0 is 0.
        _ if wanted == found || (wanted.is_number() && wanted.as_f64() == found.as_f64()) => {}
        _ => lines.push(format!("{path}: want {wanted}, have {found}")),
    }
}

fn compare_fields(
    path: &str,
    wanted: &Map<String, Value>,
    found: &Map<String, Value>,
    lines: &mut Vec<String>,
) {
    for (name, wanted) in wanted {
        match found.get(name) {
            Some(found) => compare(&format!("{path}.{name}"), wanted, found, lines),
            None => lines.push(format!("{path}.{name}: missing, want {wanted}")),
        }
    }
    for (name, found) in found.iter().filter(|(name, _)| !wanted.contains_key(*name)) {
        lines.push(format!("{path}.{name}: not wanted, have {found}"));
    }
}

#[test]
fn a_difference_is_found_wherever_it_is() {
    let wanted = serde_json::json!({ "same": 1, "other": [1, { "deep": true }], "gone": {}, "short": [1] });
    let found = serde_json::json!({ "same": 1, "other": [1, { "deep": false }], "new": 2, "short": [] });
    assert_eq!(
        differences(&wanted, &found),
        [
            ".gone: missing, want {}",
            ".other[1].deep: want true, have false",
            ".short: want [1], have []",
            ".new: not wanted, have 2",
        ]
    );
}
