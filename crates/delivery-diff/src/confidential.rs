//! Which objects may hold what came from Secrets, so that nothing that is made of them is told either.

use std::collections::HashSet;

use delivery_graph::object::{list, text};
use kube_apply::{Expected, Preview};
use manifest::ObjectId;
use serde_json::Value;

use crate::subject::is_deliverer;

/// The objects that were seen to be confidential, whatever their kind.
#[derive(Debug, Default)]
pub(crate) struct Confidential(HashSet<ObjectId>);

impl Confidential {
    /// Remembers an object whose content is no one's business.
    pub(crate) fn add(&mut self, id: ObjectId) {
        self.0.insert(id);
    }

    /// Remembers an object if it is confidential. One that does not draw on Secrets any more still has in the cluster what it
    /// made of them.
    pub(crate) fn note(&mut self, preview: &Preview) {
        let (Ok(Expected::Changed { before, after, .. } | Expected::Recreated { before, after, .. }), true) =
            (&preview.expected, is_deliverer(&preview.id))
        else {
            if preview.is_confidential {
                self.add(preview.id.clone());
            }
            return;
        };
        if preview.is_confidential || stops_drawing(before, after) {
            self.add(preview.id.clone());
        }
    }

    /// Returns whether an object may hold what came from a Secret.
    pub(crate) fn contains(&self, id: &ObjectId) -> bool {
        self.0.contains(id)
    }
}

fn stops_drawing(before: &Value, after: &Value) -> bool {
    let names_secret = |object: &Value| {
        ["/spec/postBuild/substituteFrom", "/spec/valuesFrom"]
            .iter()
            .flat_map(|path| list(object, path))
            .any(|reference| text(reference, "/kind") == "Secret")
    };
    let decrypts = |object: &Value| object.pointer("/spec/decryption").is_some();
    (names_secret(before) && !names_secret(after)) || (decrypts(before) && !decrypts(after))
}

#[cfg(test)]
mod tests {
    use kube_apply::FieldChanges;
    use manifest::GroupVersionKind;
    use serde_json::json;

    use super::*;

    fn preview(kind: &str, is_confidential: bool, expected: Expected) -> Preview {
        let group = match kind {
            "Kustomization" => api::meta::KUSTOMIZE_GROUP,
            _ => "",
        };
        Preview {
            id: ObjectId {
                group: group.to_owned(),
                kind: kind.to_owned(),
                namespace: "shop".to_owned(),
                name: "a".to_owned(),
            },
            gvk: GroupVersionKind::new("v1", kind),
            origin: None,
            is_confidential,
            expected: Ok(expected),
        }
    }

    fn is_noted(preview: &Preview) -> bool {
        let mut confidential = Confidential::default();
        confidential.note(preview);
        confidential.contains(&preview.id)
    }

    #[test]
    fn what_is_made_of_secrets_stays_so_changed_or_not() {
        for kind in ["ConfigMap", "Kustomization"] {
            for expected in [Expected::Unchanged(json!({})), Expected::Created(json!({}))] {
                assert!(is_noted(&preview(kind, true, expected.clone())), "{kind}");
                assert!(!is_noted(&preview(kind, false, expected)), "{kind}");
            }
        }
    }

    #[test]
    fn what_stops_to_draw_on_secrets_still_has_what_it_made_of_them() {
        let changed = |before: Value, after: Value| Expected::Changed {
            fields: FieldChanges::default(),
            before: json!({"spec": before}),
            after: json!({"spec": after}),
            taken_from: Vec::new(),
        };
        let from = |kind: &str| json!({"postBuild": {"substituteFrom": [{"kind": kind, "name": "x"}]}});
        for (before, after, expected) in [
            (from("Secret"), from("ConfigMap"), true),
            (from("ConfigMap"), from("Secret"), false),
            (json!({"decryption": {"provider": "sops"}}), json!({}), true),
            (
                json!({"valuesFrom": [{"kind": "Secret", "name": "x"}]}),
                json!({"values": {}}),
                true,
            ),
        ] {
            let noted = is_noted(&preview("Kustomization", false, changed(before.clone(), after)));
            assert_eq!(noted, expected, "{before}");
        }
    }
}
