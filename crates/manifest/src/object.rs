//! One Kubernetes object, and where it was written.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{GroupVersionKind, ObjectId};

/// The file and line that an object came from, for messages: `apps/web.yaml:12`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// Path below the root of the artifact, slash-separated.
    pub file: Arc<str>,
    /// First line of the document, counted from 1; 0 when the object was generated.
    pub line: u32,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            f.write_str(&self.file)
        } else {
            write!(f, "{}:{}", self.file, self.line)
        }
    }
}

/// A Kubernetes object as JSON: a mapping with `apiVersion`, `kind` and `metadata.name`.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    value: Map<String, Value>,
    origin: Option<Origin>,
}

impl Object {
    /// Wraps a mapping. Fields that are missing read as empty strings; see [`Object::missing_field`].
    pub fn new(value: Map<String, Value>, origin: Option<Origin>) -> Self {
        Self { value, origin }
    }

    /// Names the first of `apiVersion`, `kind`, `metadata.name` that is missing or empty.
    pub fn missing_field(&self) -> Option<&'static str> {
        if self.text("apiVersion").is_empty() {
            Some("apiVersion")
        } else if self.text("kind").is_empty() {
            Some("kind")
        } else if self.name().is_empty() {
            Some("metadata.name")
        } else {
            None
        }
    }

    /// Returns where the object was written; None for objects that no file holds.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// Returns the object's identity.
    pub fn id(&self) -> ObjectId {
        let gvk = self.gvk();
        ObjectId {
            group: gvk.group,
            kind: gvk.kind,
            namespace: self.namespace().to_owned(),
            name: self.name().to_owned(),
        }
    }

    /// Returns group, version and kind.
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::new(self.text("apiVersion"), self.text("kind"))
    }

    /// Returns `metadata.name`.
    pub fn name(&self) -> &str {
        self.metadata_text("name")
    }

    /// Returns `metadata.namespace`; empty when it has none.
    pub fn namespace(&self) -> &str {
        self.metadata_text("namespace")
    }

    /// Sets `metadata.namespace`.
    pub fn set_namespace(&mut self, namespace: &str) {
        self.metadata_mut()
            .insert("namespace".to_owned(), Value::from(namespace));
    }

    /// Returns a label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata_entry("labels", key)
    }

    /// Sets a label.
    pub fn set_label(&mut self, key: &str, value: &str) {
        self.set_metadata_entry("labels", key, value);
    }

    /// Returns an annotation's value.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata_entry("annotations", key)
    }

    /// Sets an annotation.
    pub fn set_annotation(&mut self, key: &str, value: &str) {
        self.set_metadata_entry("annotations", key, value);
    }

    /// Borrows the whole object.
    pub fn value(&self) -> &Map<String, Value> {
        &self.value
    }

    /// Borrows the whole object for change.
    pub fn value_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.value
    }

    /// Gives the whole object away.
    pub fn into_value(self) -> Value {
        Value::Object(self.value)
    }

    fn text(&self, field: &str) -> &str {
        self.value.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    fn metadata_text(&self, field: &str) -> &str {
        self.value
            .get("metadata")
            .and_then(|m| m.get(field))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    fn metadata_entry(&self, map: &str, key: &str) -> Option<&str> {
        self.value.get("metadata")?.get(map)?.get(key)?.as_str()
    }

    fn set_metadata_entry(&mut self, map: &str, key: &str, value: &str) {
        mapping(self.metadata_mut(), map).insert(key.to_owned(), Value::from(value));
    }

    fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        mapping(&mut self.value, "metadata")
    }
}

/// Borrows the mapping at `key`, putting an empty one in place of what is no mapping (`labels:` without a value).
fn mapping<'a>(parent: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let slot = parent.entry(key.to_owned()).or_insert(Value::Null);
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    match slot {
        Value::Object(map) => map,
        _ => unreachable!("replaced by a mapping above"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        match value {
            Value::Object(map) => Object::new(map, None),
            other => panic!("not a mapping: {other}"),
        }
    }

    #[test]
    fn identity_is_read_from_the_mapping() {
        let o = object(serde_json::json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}
        }));
        assert_eq!(o.id().to_string(), "Deployment/default/web");
        assert_eq!(o.gvk().api_version(), "apps/v1");
        assert_eq!(o.missing_field(), None);
    }

    #[test]
    fn missing_fields_are_named() {
        assert_eq!(object(serde_json::json!({})).missing_field(), Some("apiVersion"));
        assert_eq!(
            object(serde_json::json!({"apiVersion": "v1"})).missing_field(),
            Some("kind")
        );
        assert_eq!(
            object(serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": null}))
                .missing_field(),
            Some("metadata.name")
        );
    }

    #[test]
    fn labels_replace_a_null() {
        let mut o = object(serde_json::json!({"metadata": {"labels": null}}));
        o.set_label("a", "b");
        assert_eq!(o.label("a"), Some("b"));
    }
}
