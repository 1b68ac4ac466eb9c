//! A resource in a message.

use super::{BuildOrigin, Resource};
use crate::nodes::Nodes;

/// Shows an object as kustomize does in messages: JSON, with its memory in annotations.
pub(crate) fn show(nodes: &Nodes, resource: &Resource) -> String {
    let Some(root) = resource.root else {
        return "{}".to_owned();
    };
    let Ok(value) = manifest::yaml::json::decode_kyaml(nodes, root) else {
        return "{}".to_owned();
    };
    let serde_json::Value::Object(fields) = value else {
        return "{}".to_owned();
    };
    // A Secret's data must not reach a message.
    let mut object = manifest::Object::new(fields, None);
    if object.gvk().kind == "Secret" {
        object.value_mut().remove("data");
        object.value_mut().remove("stringData");
    }
    for (name, text) in resource.history.annotations() {
        object.set_annotation(name, &text);
    }
    if let Some(origin) = &resource.origin {
        object.set_annotation("config.kubernetes.io/origin", &origin.to_annotation());
    }
    if !resource.transformations.is_empty() {
        let text = BuildOrigin::list_to_annotation(&resource.transformations);
        object.set_annotation("alpha.config.kubernetes.io/transformations", &text);
    }
    crate::generate::hash::to_go_json(&object.into_value())
}
