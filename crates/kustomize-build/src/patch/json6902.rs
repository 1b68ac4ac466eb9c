//! JSON patches as the library that kustomize uses (evanphx/json-patch v4) applies them: negative indexes count from
//! the end, and `replace` sets a field that is not there.

mod document;
mod operation;
mod syntax;

use manifest::yaml::{self, Dialect};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::generate::hash::to_go_json;
use crate::nodes::Nodes;
use crate::resource::{self, JsonStyle, Resource, node_from_json};

use document::Json;
use operation::Operation;

/// A patch: its operations in order.
pub(crate) struct Operations {
    list: Vec<Operation>,
}

impl Operations {
    /// Parses a patch: JSON when it starts with a bracket, else YAML.
    ///
    /// `decoding` makes the context of an error in the JSON text that was read, or that the YAML became.
    pub(crate) fn parse(text: &str, decoding: impl Fn(&str) -> String) -> Result<Self> {
        if text.is_empty() {
            return Err(Error::patch("empty json patch operations"));
        }
        if text.starts_with('[') {
            return Json::parse(text)
                .and_then(Self::from_json)
                .map_err(|error| error.context(decoding(text)));
        }
        let value = from_yaml(text)?;
        let shown = to_go_json(&value);
        Self::from_json(Json::from_value(value)).map_err(|error| error.context(decoding(&shown)))
    }

    fn from_json(patch: Json) -> Result<Self> {
        let operations = match patch {
            Json::Null => Vec::new(),
            Json::Array(operations) => operations,
            other => return Err(other.mistaken_for("jsonpatch.Patch")),
        };
        let list = operations
            .into_iter()
            .map(Operation::read)
            .collect::<Result<_>>()?;
        Ok(Self { list })
    }

    /// Returns whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Calls `copied` with the size of each value before an operation copies it.
    fn apply(&self, document: &mut Json, copied: &mut dyn FnMut(usize)) -> Result<()> {
        self.list
            .iter()
            .try_for_each(|operation| operation.apply(document, copied))
    }
}

fn from_yaml(text: &str) -> Result<Value> {
    let mut nodes = yaml::Nodes::default();
    let failed = |problem: yaml::Problem| Error::patch(problem.to_string());
    match yaml::compose_first(text, &mut nodes, Dialect::Sigs).map_err(failed)? {
        Some(root) => yaml::json::decode(&nodes, root).map_err(failed),
        None => Ok(Value::Null),
    }
}

/// Applies a patch to a resource. All styles are lost on the way, and numbers go through floats.
///
/// The patch sees kustomize's own annotations, but cannot change them: they are set again afterwards.
pub(crate) fn apply(nodes: &mut Nodes, resource: &mut Resource, operations: &Operations) -> Result<()> {
    let history = resource.history.clone();
    resource.with_history_in_annotations(nodes, |nodes, resource| change(nodes, resource, operations))?;
    resource.history = history;
    // kustomize writes all annotations anew, as strings, and does not mind when it cannot.
    if let Some(root) = resource.root {
        let annotations = resource::annotations(nodes, root);
        let _ = resource::set_texts(nodes, root, "annotations", &annotations);
    }
    Ok(())
}

fn change(nodes: &mut Nodes, resource: &mut Resource, operations: &Operations) -> Result<()> {
    let Some(root) = resource.root else { return Ok(()) };
    let mut value =
        yaml::json::decode_kyaml(nodes, root).map_err(|problem| Error::patch(problem.to_string()))?;
    let has_origin = resource.origin.is_some() && mark(&mut value);
    let mut document = Json::from_value(value);
    operations.apply(&mut document, &mut |bytes| nodes.charge(bytes))?;
    if !matches!(document, Json::Object(_)) {
        return Err(document.mistaken_for("map[string]interface {}"));
    }
    let mut value = document.to_value()?;
    if has_origin && !unmark(&mut value) {
        resource.origin = None;
        resource.transformations.clear();
    }
    resource.root = Some(node_from_json(nodes, &value, JsonStyle::Yaml));
    Ok(())
}

fn annotations_or_new(object: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut)?;
    let annotations = metadata.entry("annotations").or_insert(Value::Null);
    if annotations.is_null() {
        *annotations = Value::Object(serde_json::Map::new());
    }
    annotations.as_object_mut()
}

/// The annotation in which kustomize keeps the origin of a resource. What a patch does to the annotations as a whole,
/// it does to it: a resource that lost it counts as made by the patch.
const ORIGIN: &str = "config.kubernetes.io/origin";

/// Sets the annotation; false for an object that cannot have any.
fn mark(object: &mut Value) -> bool {
    let annotations = annotations_or_new(object);
    annotations
        .map(|annotations| annotations.insert(ORIGIN.to_owned(), Value::from("")))
        .is_some()
}

/// Takes the annotation away; false when it is gone already.
fn unmark(object: &mut Value) -> bool {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return false;
    };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else {
        return false;
    };
    annotations.remove(ORIGIN).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(patch: &str, document: Value) -> Result<Value, String> {
        let operations = Operations::parse(patch, |_| String::new()).map_err(|error| error.to_string())?;
        let mut document = Json::from_value(document);
        operations
            .apply(&mut document, &mut |_| {})
            .and_then(|()| document.to_value())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn operations_change_documents_as_in_go() {
        for (patch, before, after) in [
            (
                "- {op: add, path: /a/-, value: 3}",
                json!({"a": [1]}),
                json!({"a": [1, 3]}),
            ),
            (
                "- {op: add, path: /a/0, value: 3}",
                json!({"a": [1]}),
                json!({"a": [3, 1]}),
            ),
            (
                "- {op: add, path: /a/-1, value: 3}",
                json!({"a": [1]}),
                json!({"a": [1, 3]}),
            ),
            (
                "- {op: replace, path: /a/-1, value: 3}",
                json!({"a": [1, 2]}),
                json!({"a": [1, 3]}),
            ),
            ("- {op: replace, path: /b, value: 3}", json!({}), json!({"b": 3})),
            (
                "- {op: remove, path: /a~1b}",
                json!({"a/b": 1, "c": 2}),
                json!({"c": 2}),
            ),
            (
                "- {op: move, from: /a, path: /b}",
                json!({"a": 1}),
                json!({"b": 1}),
            ),
            (
                "- {op: copy, from: /a, path: /b}",
                json!({"a": 1}),
                json!({"a": 1, "b": 1}),
            ),
            (
                "- {op: test, path: /a, value: 1.0}",
                json!({"a": 1}),
                json!({"a": 1}),
            ),
            ("- {op: test, path: /a}", json!({"a": null}), json!({"a": null})),
        ] {
            assert_eq!(patched(patch, before), Ok(after), "{patch}");
        }
    }

    #[test]
    fn operations_fail_in_the_librarys_words() {
        for (patch, message) in [
            (
                "- {op: test, path: /a, value: 2}",
                "testing value /a failed: test failed",
            ),
            (
                "- {op: remove, path: /b}",
                "error in remove for path: '/b': Unable to remove nonexistent key: b: missing value",
            ),
            // JSON is compared as it is written.
            (
                r#"[{"op": "test", "path": "/a", "value": 1.0}]"#,
                "testing value /a failed: test failed",
            ),
            ("- {op: bogus, path: /a}", "Unexpected kind: bogus"),
            ("- {op: 5, path: /a}", "Unexpected kind: unknown"),
            (
                "- {op: add}",
                "add operation failed to decode path: missing value",
            ),
            (
                "- {op: replace}",
                "replace operation failed to decode path: operation missing path field: missing value",
            ),
            (
                "- {op: test, path: 5}",
                "test operation failed to decode path: json: cannot unmarshal number into Go value of type string",
            ),
            (
                "- {op: move, path: /a}",
                "move operation failed to decode from: operation, missing from field: missing value",
            ),
            (
                "- {op: add, path: a, value: 1}",
                "add operation does not apply: doc is missing path: \"a\": missing value",
            ),
        ] {
            assert_eq!(
                patched(patch, json!({"a": 1})),
                Err(message.to_owned()),
                "{patch}"
            );
        }
    }
}
