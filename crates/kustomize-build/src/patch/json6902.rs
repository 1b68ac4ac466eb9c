//! JSON patches as the library that kustomize uses (evanphx/json-patch v4) applies them: negative indexes count from
//! the end, and `replace` sets a field that is not there.

use manifest::yaml::{self, Dialect};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::nodes::Nodes;
use crate::resource::{JsonStyle, Resource, node_from_json};

/// A patch: its operations in order.
pub(crate) struct Operations {
    list: Vec<Operation>,
}

struct Operation {
    name: String,
    path: Option<String>,
    from: Option<String>,
    value: Value,
}

impl Operations {
    /// Parses a patch: JSON when it starts with a bracket, else YAML.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Err(Error::patch("empty json patch operations"));
        }
        let value = if text.starts_with('[') {
            serde_json::from_str(text).map_err(|error| Error::patch(error.to_string()))?
        } else {
            let mut nodes = Nodes::default();
            let failed = |problem: yaml::Problem| Error::patch(problem.to_string());
            match yaml::compose_first(text, &mut nodes, Dialect::Sigs).map_err(failed)? {
                Some(root) => yaml::json::decode(&nodes, root).map_err(failed)?,
                None => Value::Null,
            }
        };
        let operations = match value {
            Value::Null => Vec::new(),
            Value::Array(operations) => operations,
            _ => {
                return Err(Error::patch(
                    "json: cannot unmarshal value into Go value of type jsonpatch.Patch",
                ));
            }
        };
        Ok(Self {
            list: operations.into_iter().map(operation).collect::<Result<_>>()?,
        })
    }

    /// Tells whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn apply(&self, document: &mut Value) -> Result<()> {
        self.list
            .iter()
            .try_for_each(|operation| operation.apply(document))
    }
}

fn operation(value: Value) -> Result<Operation> {
    let Value::Object(mut fields) = value else {
        return Err(Error::patch(
            "json: cannot unmarshal value into Go value of type jsonpatch.Operation",
        ));
    };
    let mut text = |name: &str| {
        fields
            .get_mut(name)
            .map(Value::take)
            .and_then(|v| v.as_str().map(str::to_owned))
    };
    let name = text("op").unwrap_or_default();
    let (path, from) = (text("path"), text("from"));
    Ok(Operation {
        name,
        path,
        from,
        value: fields.remove("value").unwrap_or_default(),
    })
}

/// Applies a patch to a resource. All styles are lost on the way, and numbers go through floats.
pub(crate) fn apply(nodes: &mut Nodes, resource: &mut Resource, operations: &Operations) -> Result<()> {
    let Some(root) = resource.root else { return Ok(()) };
    let mut value =
        yaml::json::decode_kyaml(nodes, root).map_err(|problem| Error::patch(problem.to_string()))?;
    if resource.history.leaves_annotations() {
        // kustomize's own annotations are there, so that a path into the annotations exists.
        annotations_or_new(&mut value);
    }
    let has_origin = resource.origin.is_some() && mark(&mut value);
    operations.apply(&mut value)?;
    if has_origin && !unmark(&mut value) {
        resource.origin = None;
        resource.transformations.clear();
    }
    if !value.is_object() {
        return Err(Error::patch(
            "json: cannot unmarshal value into Go value of type map[string]interface {}",
        ));
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

impl Operation {
    fn apply(&self, document: &mut Value) -> Result<()> {
        match self.name.as_str() {
            "add" => self.add(document),
            "remove" => self.remove(document),
            "replace" => self.replace(document),
            "move" => self.move_value(document),
            "copy" => self.copy(document),
            "test" => self.test(document),
            other => Err(Error::patch(format!("Unexpected kind: {other}"))),
        }
    }

    fn path(&self) -> Result<&str> {
        self.path.as_deref().ok_or_else(|| {
            Error::patch(format!(
                "{} operation failed to decode path: missing value",
                self.name
            ))
        })
    }

    fn from(&self) -> Result<&str> {
        self.from.as_deref().ok_or_else(|| {
            Error::patch(format!(
                "{} operation failed to decode from: missing value",
                self.name
            ))
        })
    }

    fn add(&self, document: &mut Value) -> Result<()> {
        let path = self.path()?;
        let (container, key) = find(document, path).ok_or_else(|| {
            Error::patch(format!(
                "add operation does not apply: doc is missing path: \"{path}\": missing value"
            ))
        })?;
        insert(container, &key, self.value.clone())
            .map_err(|error| error.context(format!("error in add for path: '{path}'")))
    }

    fn remove(&self, document: &mut Value) -> Result<()> {
        let path = self.path()?;
        let (container, key) = find(document, path).ok_or_else(|| {
            Error::patch(format!(
                "remove operation does not apply: doc is missing path: \"{path}\": missing value"
            ))
        })?;
        take(container, &key)
            .map(drop)
            .map_err(|error| error.context(format!("error in remove for path: '{path}'")))
    }

    fn replace(&self, document: &mut Value) -> Result<()> {
        let path = self.path()?;
        if path.is_empty() {
            if !self.value.is_object() && !self.value.is_array() {
                return Err(Error::patch("replace operation value must be object or array"));
            }
            *document = self.value.clone();
            return Ok(());
        }
        let missing = |what: &str| {
            Error::patch(format!(
                "replace operation does not apply: doc is missing {what}: {path}: missing value"
            ))
        };
        let (container, key) = find(document, path).ok_or_else(|| missing("path"))?;
        match container {
            Value::Object(fields) => {
                fields.insert(key, self.value.clone());
            }
            Value::Array(elements) => {
                let index = index(&key, elements.len(), elements.len()).map_err(|_| missing("key"))?;
                elements[index] = self.value.clone();
            }
            _ => return Err(missing("path")),
        }
        Ok(())
    }

    fn move_value(&self, document: &mut Value) -> Result<()> {
        let from = self.from()?;
        let (container, key) = find(document, from).ok_or_else(|| {
            Error::patch(format!(
                "move operation does not apply: doc is missing from path: {from}: missing value"
            ))
        })?;
        let value = take(container, &key)
            .map_err(|error| error.context(format!("error in move for path: '{key}'")))?;
        self.put(document, value, "move")
    }

    fn copy(&self, document: &mut Value) -> Result<()> {
        let from = self.from()?;
        let (container, key) = find(document, from).ok_or_else(|| {
            Error::patch(format!(
                "copy operation does not apply: doc is missing from path: {from}: missing value"
            ))
        })?;
        let value = get(container, &key)
            .map_err(|error| error.context(format!("error in copy for from: '{from}'")))?
            .cloned()
            .unwrap_or_default();
        self.put(document, value, "copy")
    }

    fn put(&self, document: &mut Value, value: Value, name: &str) -> Result<()> {
        let path = self.path()?;
        let (container, key) = find(document, path).ok_or_else(|| {
            let message = format!(
                "{name} operation does not apply: doc is missing destination path: {path}: missing value"
            );
            Error::patch(message)
        })?;
        insert(container, &key, value)
            .map_err(|error| error.context(format!("error in {name} for path: '{path}'")))
    }

    fn test(&self, document: &mut Value) -> Result<()> {
        let path = self.path()?;
        let failed = || Error::patch(format!("testing value {path} failed: test failed"));
        if path.is_empty() {
            return if same(document, &self.value) {
                Ok(())
            } else {
                Err(failed())
            };
        }
        let (container, key) = find(document, path).ok_or_else(|| {
            Error::patch(format!(
                "test operation does not apply: is missing path: {path}: missing value"
            ))
        })?;
        let value = get(container, &key)
            .map_err(|error| error.context(format!("error in test for path: '{path}'")))?
            .unwrap_or(&Value::Null);
        if same(value, &self.value) {
            Ok(())
        } else {
            Err(failed())
        }
    }
}

/// Compares values; numbers by what they are, not by how they were written.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

/// Finds the container that a path's last part is a key of.
fn find<'a>(document: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let mut parts: Vec<&str> = path.split('/').collect();
    if parts.len() < 2 {
        return None;
    }
    let key = decode(parts.pop()?);
    let mut at = document;
    for part in &parts[1..] {
        let part = decode(part);
        at = match at {
            Value::Object(fields) => fields.get_mut(&part)?,
            Value::Array(elements) => {
                let index = index(&part, elements.len(), elements.len()).ok()?;
                elements.get_mut(index)?
            }
            _ => return None,
        };
    }
    (at.is_object() || at.is_array()).then_some((at, key))
}

fn decode(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// Reads an index below `bound`; negative ones count back from `from_end`.
fn index(key: &str, bound: usize, from_end: usize) -> Result<usize> {
    let number: i64 = key
        .parse()
        .map_err(|_| Error::patch(format!("strconv.Atoi: parsing {key:?}: invalid syntax")))?;
    let invalid = || {
        Error::patch(format!(
            "Unable to access invalid index: {number}: invalid index referenced"
        ))
    };
    let position = if number < 0 {
        i64::try_from(from_end).map_err(|_| invalid())? + number
    } else {
        number
    };
    usize::try_from(position)
        .ok()
        .filter(|position| *position < bound)
        .ok_or_else(invalid)
}

fn get<'a>(container: &'a Value, key: &str) -> Result<Option<&'a Value>> {
    match container {
        Value::Object(fields) => Ok(fields.get(key)),
        Value::Array(elements) => Ok(elements.get(index(key, elements.len(), elements.len())?)),
        _ => Ok(None),
    }
}

fn insert(container: &mut Value, key: &str, value: Value) -> Result<()> {
    match container {
        Value::Object(fields) => {
            fields.insert(key.to_owned(), value);
        }
        Value::Array(elements) if key == "-" => elements.push(value),
        Value::Array(elements) => {
            if key.parse::<i64>().is_err() {
                let message = format!(
                    "value was not a proper array index: '{key}': strconv.Atoi: parsing {key:?}: invalid syntax"
                );
                return Err(Error::patch(message));
            }
            let places = elements.len() + 1;
            elements.insert(index(key, places, places)?, value);
        }
        _ => {}
    }
    Ok(())
}

fn take(container: &mut Value, key: &str) -> Result<Value> {
    match container {
        Value::Object(fields) => fields
            .remove(key)
            .ok_or_else(|| Error::patch(format!("Unable to remove nonexistent key: {key}: missing value"))),
        Value::Array(elements) => {
            let index = index(key, elements.len(), elements.len())?;
            Ok(elements.remove(index))
        }
        _ => Ok(Value::Null),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(patch: &str, mut document: Value) -> Result<Value, String> {
        let operations = Operations::parse(patch).map_err(|error| error.to_string())?;
        operations
            .apply(&mut document)
            .map_err(|error| error.to_string())?;
        Ok(document)
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
                "[{\"op\": \"test\", \"path\": \"/a\", \"value\": 1.0}]",
                json!({"a": 1}),
                json!({"a": 1}),
            ),
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
            ("- {op: bogus, path: /a}", "Unexpected kind: bogus"),
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
