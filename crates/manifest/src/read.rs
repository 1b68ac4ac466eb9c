//! Text to objects: the entry of every manifest into the system.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::yaml::{self, Document, Problem};
use crate::{Object, Origin};

/// Reads all objects of a stream of documents; `file` is named in errors and origins.
///
/// Empty documents are skipped, and the members of a List (any kind that ends in `List` and has `items`) come one by
/// one. Every object has an API version, a kind and a name.
///
/// ```
/// let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n---\n# nothing\n";
/// let objects = manifest::read_objects(text, "app/cm.yaml").unwrap();
/// assert_eq!(objects[0].id().to_string(), "ConfigMap/a");
/// assert_eq!(objects[0].origin().unwrap().to_string(), "app/cm.yaml:1");
/// ```
pub fn read_objects(text: &str, file: &str) -> Result<Vec<Object>, yaml::Error> {
    let file: Arc<str> = file.into();
    let mut objects = Vec::new();
    for document in yaml::read_documents(text, &file)? {
        read_document(document, &file, &mut objects)?;
    }
    Ok(objects)
}

fn read_document(document: Document, file: &Arc<str>, objects: &mut Vec<Object>) -> Result<(), yaml::Error> {
    let fields = match document.value {
        Value::Null => return Ok(()),
        Value::Object(fields) if fields.is_empty() => return Ok(()),
        Value::Object(fields) => fields,
        other => {
            return Err(refused(
                file,
                document.line,
                format!("expected an object, found {}", kind_of(&other)),
            ));
        }
    };
    match list_items(fields) {
        Ok(items) => {
            for (index, item) in items.into_iter().enumerate() {
                let line = document.item_lines.get(index).copied().unwrap_or(document.line);
                let item = Document {
                    value: item,
                    line,
                    item_lines: Vec::new(),
                };
                read_document(item, file, objects)?;
            }
        }
        Err(fields) => objects.push(checked(fields, file, document.line)?),
    }
    Ok(())
}

/// Takes the members out of a List; gives back the fields of anything else.
fn list_items(mut fields: Map<String, Value>) -> Result<Vec<Value>, Map<String, Value>> {
    let is_list = fields
        .get("kind")
        .and_then(Value::as_str)
        .is_some_and(|kind| kind.ends_with("List"));
    match fields.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) if is_list => Ok(items),
        Some(Value::Null) if is_list => Ok(Vec::new()),
        Some(other) => {
            fields.insert("items".to_owned(), other);
            Err(fields)
        }
        None => Err(fields),
    }
}

fn checked(fields: Map<String, Value>, file: &Arc<str>, line: u32) -> Result<Object, yaml::Error> {
    let object = Object::new(
        fields,
        Some(Origin {
            file: file.clone(),
            line,
        }),
    );
    match object.missing_field() {
        Some(field) => Err(refused(file, line, format!("the object has no {field}"))),
        None => Ok(object),
    }
}

fn refused(file: &str, line: u32, text: String) -> yaml::Error {
    yaml::Error::new(file, Problem::in_json(line, text))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let objects = read_objects(text, "f.yaml").expect("valid");
        objects
            .iter()
            .map(|o| format!("{} {}", o.id(), o.origin().expect("read from a file")))
            .collect()
    }

    #[test]
    fn documents_and_lists_become_objects_with_their_lines() {
        let text = "---\n# comment\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: b, namespace: c}\n- {apiVersion: v1, kind: Pod, metadata: {name: d}}\n";
        assert_eq!(
            names(text),
            ["Namespace/a f.yaml:4", "Secret/c/b f.yaml:11", "Pod/d f.yaml:14"]
        );
    }

    #[test]
    fn empty_text_holds_no_object() {
        for text in ["", "---\n", "# only\n", "---\n---\n", "{}\n"] {
            assert_eq!(names(text), Vec::<String>::new(), "{text:?}");
        }
    }

    #[test]
    fn errors_name_file_and_line() {
        for (text, message) in [
            ("---\n---\nkind: X\n", "failed to read f.yaml:3"),
            ("a: b: c\n", "failed to read f.yaml:1"),
            (
                "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n---\n- a\n",
                "failed to read f.yaml:6",
            ),
        ] {
            assert_eq!(
                read_objects(text, "f.yaml").expect_err("invalid").to_string(),
                message,
                "{text:?}"
            );
        }
    }
}
