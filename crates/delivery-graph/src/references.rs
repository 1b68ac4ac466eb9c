//! Secrets and ConfigMaps that an object of delivery needs: credentials, keys, values, variables.

use std::collections::BTreeSet;

use manifest::{ObjectId, is_object_name};
use serde_json::Value;

use crate::object::text;

/// Specs may be nested this deep.
const MAX_DEPTH: usize = 64;
/// Fields of a ResourceSet with objects that are still templates.
const TEMPLATES: [&str; 2] = ["resources", "resourcesTemplate"];

/// The Secrets and ConfigMaps that the spec of an object names, all of them in its namespace: no kind of ours may name others. Some may be
/// optional. What a ResourceSet would make is not looked into.
#[must_use]
pub fn of(object: &Value) -> BTreeSet<ObjectId> {
    let mut found = BTreeSet::new();
    let namespace = text(object, "/metadata/namespace");
    for (key, value) in object["spec"].as_object().into_iter().flatten() {
        if !TEMPLATES.contains(&key.as_str()) {
            field(key, value, namespace, 0, &mut found);
        }
    }
    found
}

fn field(key: &str, value: &Value, namespace: &str, depth: usize, found: &mut BTreeSet<ObjectId>) {
    // One reference, or a list of them.
    let references = value
        .as_array()
        .map_or(std::slice::from_ref(value), Vec::as_slice);
    if let Some(kind) = kind_of(key) {
        references.iter().for_each(|one| add(kind, one, namespace, found));
    } else if ["valuesFrom", "substituteFrom"].contains(&key) {
        for one in references {
            if let kind @ ("Secret" | "ConfigMap") = text(one, "/kind") {
                add(kind, one, namespace, found);
            }
        }
    } else {
        collect(value, namespace, depth + 1, found);
    }
}

fn collect(value: &Value, namespace: &str, depth: usize, found: &mut BTreeSet<ObjectId>) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(key, below)| field(key, below, namespace, depth, found)),
        Value::Array(all) => all
            .iter()
            .for_each(|one| collect(one, namespace, depth + 1, found)),
        _ => {}
    }
}

/// What a field refers to, by its name: `secretRef`, `certSecretRef`, `signingSecretRef`, `configMapRef`.
fn kind_of(field: &str) -> Option<&'static str> {
    let is = |ending: &str| {
        let start = field.len().checked_sub(ending.len());
        start
            .and_then(|start| field.get(start..))
            .is_some_and(|end| end.eq_ignore_ascii_case(ending))
    };
    match () {
        () if is("secretRef") || is("secretRefs") => Some("Secret"),
        () if is("configMapRef") => Some("ConfigMap"),
        () => None,
    }
}

fn add(kind: &str, reference: &Value, namespace: &str, found: &mut BTreeSet<ObjectId>) {
    let name = text(reference, "/name");
    // Schemas do not restrict names everywhere.
    if is_object_name(name) {
        found.insert(ObjectId {
            group: String::new(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_that_a_spec_names_is_found() {
        let object = json!({
            "metadata": {"namespace": "n"},
            "spec": {
                "secretRef": {"name": "a"}, "certSecretRef": {"name": "b"}, "configMapRef": {"name": "c"},
                "verify": {"secretRef": {"name": "d"}, "trustedRootSecretRef": {"name": "e"}},
                "decryption": {"secretRef": {"name": "f"}},
                "valuesFrom": [{"kind": "ConfigMap", "name": "g"}, {"kind": "Secret", "name": "h"}, {"kind": "Other", "name": "no"}],
                "postBuild": {"substituteFrom": [{"kind": "Secret", "name": "i", "optional": true}]},
                "list": [{"deep": {"secretRef": {"name": "j"}}}],
                "sourceRef": {"kind": "GitRepository", "name": "no"}, "secretRefx": {"name": "no"}, "é": {"name": "no"},
            },
            "status": {"secretRef": {"name": "no"}},
        });
        let names: Vec<_> = of(&object)
            .into_iter()
            .map(|id| format!("{} {}/{}", id.kind, id.namespace, id.name))
            .collect();
        assert_eq!(
            names,
            [
                "ConfigMap n/c",
                "ConfigMap n/g",
                "Secret n/a",
                "Secret n/b",
                "Secret n/d",
                "Secret n/e",
                "Secret n/f",
                "Secret n/h",
                "Secret n/i",
                "Secret n/j"
            ]
        );
    }

    #[test]
    fn no_reference_leads_to_others() {
        let object = json!({
            "metadata": {"namespace": "n"},
            "spec": {
                "secretRef": {"name": "a", "namespace": "victim"},
                "certSecretRef": {"name": "../../victim/secrets/b"}, "proxySecretRef": {"name": "a?watch=1"}, "decryption": {"secretRef": {"name": ".."}},
                "resources": [{"spec": {"secretRef": {"name": "c"}}}], "resourcesTemplate": "secretRef: {name: d}",
            },
        });
        let names: Vec<_> = of(&object)
            .into_iter()
            .map(|id| format!("{}/{}", id.namespace, id.name))
            .collect();
        assert_eq!(names, ["n/a"]);
    }
}
