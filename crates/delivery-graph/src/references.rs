//! Secrets and ConfigMaps that an object of delivery needs: credentials, keys, values, variables.

use std::collections::BTreeSet;

use manifest::ObjectId;
use serde_json::Value;

use crate::object::text;

/// Specs may be nested this deep.
const MAX_DEPTH: usize = 64;

/// The Secrets and ConfigMaps that the spec of an object names, in its namespace or, where it says so, in another. Some may be optional.
#[must_use]
pub fn of(object: &Value) -> BTreeSet<ObjectId> {
    let mut found = BTreeSet::new();
    collect(
        &object["spec"],
        text(object, "/metadata/namespace"),
        0,
        &mut found,
    );
    found
}

fn collect(value: &Value, namespace: &str, depth: usize, found: &mut BTreeSet<ObjectId>) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (key, below) in fields {
                match kind_of(key) {
                    // One reference, or a list of them.
                    Some(kind) if below.is_array() => below
                        .as_array()
                        .into_iter()
                        .flatten()
                        .for_each(|one| add(kind, one, namespace, found)),
                    Some(kind) => add(kind, below, namespace, found),
                    None if ["valuesFrom", "substituteFrom"].contains(&key.as_str()) => {
                        for one in below.as_array().into_iter().flatten() {
                            if let kind @ ("Secret" | "ConfigMap") = text(one, "/kind") {
                                add(kind, one, namespace, found);
                            }
                        }
                    }
                    None => collect(below, namespace, depth + 1, found),
                }
            }
        }
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
    if name.is_empty() {
        return;
    }
    let own = text(reference, "/namespace");
    found.insert(ObjectId {
        group: String::new(),
        kind: kind.to_owned(),
        namespace: if own.is_empty() { namespace } else { own }.to_owned(),
        name: name.to_owned(),
    });
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
                "list": [{"deep": {"secretRef": {"name": "j", "namespace": "other"}}}],
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
                "Secret other/j"
            ]
        );
    }
}
