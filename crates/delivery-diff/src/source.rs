//! Which source an object is made of.

use delivery_graph::kind;
use delivery_graph::object::{self, text};
use manifest::ObjectId;
use serde_json::Value;

/// The source that a Kustomization is built from, or that the chart of a HelmRelease lies in.
pub fn source_of(object: &Value) -> Option<ObjectId> {
    let reference = match text(object, "/kind") {
        "Kustomization" => object.pointer("/spec/sourceRef")?,
        _ => object.pointer("/spec/chart/spec/sourceRef")?,
    };
    let namespace = Some(text(reference, "/namespace")).filter(|namespace| !namespace.is_empty());
    let namespace = namespace.unwrap_or_else(|| object::namespace(object));
    Some(kind::exact(text(reference, "/kind"))?.id(namespace, text(reference, "/name")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sources_are_found_where_the_spec_names_them() {
        let kustomization = json!({"kind": "Kustomization", "metadata": {"namespace": "a"},
            "spec": {"sourceRef": {"kind": "GitRepository", "name": "app", "namespace": "b"}}});
        assert_eq!(
            source_of(&kustomization).unwrap().to_string(),
            "GitRepository/b/app"
        );
        let release = json!({"kind": "HelmRelease", "metadata": {"namespace": "a"},
            "spec": {"chart": {"spec": {"sourceRef": {"kind": "GitRepository", "name": "app"}}}}});
        assert_eq!(source_of(&release).unwrap().to_string(), "GitRepository/a/app");
    }
}
