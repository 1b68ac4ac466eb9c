//! A resource in a message.

use serde_json::{Map, Value};

use super::{BuildOrigin, Resource};
use crate::nodes::Nodes;

/// Shows an object as kustomize does in most messages: JSON, with its memory in annotations.
pub(crate) fn show(nodes: &Nodes, resource: &Resource) -> String {
    crate::generate::hash::to_go_json(&remembered(nodes, resource))
}

/// Shows an object as kustomize does in the other messages: the same as YAML.
pub(crate) fn show_yaml(nodes: &Nodes, resource: &Resource) -> String {
    manifest::yaml::write(&remembered(nodes, resource)).unwrap_or_default()
}

fn remembered(nodes: &Nodes, resource: &Resource) -> Value {
    let value = resource
        .root
        .and_then(|root| manifest::yaml::json::decode_kyaml(nodes, root).ok());
    let Some(Value::Object(fields)) = value else {
        return Value::Object(Map::new());
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
    object.into_value()
}
