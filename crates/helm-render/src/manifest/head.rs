//! Reads what Helm needs to know of a document: `apiVersion`, `kind`, `metadata.name` and the annotations.
//!
//! Helm decodes a document into a Go struct of these fields. So the whole document must be YAML that JSON can hold, and the
//! fields must be of their types; numbers and booleans count as strings (sigs.k8s.io/yaml), names of fields match in any
//! case (encoding/json), and of several problems the first one in the order of the sorted keys is told.

use std::collections::BTreeMap;

use manifest::yaml::{self, Dialect, Nodes, number};
use serde_json::Value;

use helm_chart::Helm;

const METADATA_TYPE: &str =
    r#"struct { Name string "json:\"name\""; Annotations map[string]string "json:\"annotations\"" }"#;

/// The head of a manifest; what is missing is empty.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) annotations: BTreeMap<String, String>,
    /// Number of YAML values in the document, with aliases expanded.
    pub(super) values: usize,
}

impl Head {
    /// Reads the head of a document.
    pub(super) fn read(document: &[u8], helm: Helm, most_values: usize) -> Result<Self, String> {
        // A key is a node, too.
        let mut nodes = Nodes::with_limit(most_values.saturating_mul(2).saturating_add(1));
        let value = yaml::compose_first(document, &mut nodes, Dialect::Sigs)
            .and_then(|root| root.map_or(Ok(Value::Null), |root| yaml::json::decode(&nodes, root)))
            .map_err(|problem| format!("error converting YAML to JSON: {problem}"))?;
        let mut decoder = Decoder::default();
        let values = manifest::json::count(&value);
        if values > most_values {
            return Err(format!(
                "the manifests of the chart have {} values too many",
                values - most_values
            ));
        }
        let head = decoder.head(value, helm);
        match decoder.problem {
            None => Ok(Self { values, ..head }),
            Some(problem) => Err(format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {problem}"
            )),
        }
    }
}

/// Goes on after a problem, as encoding/json does, and keeps the first.
#[derive(Default)]
struct Decoder {
    problem: Option<String>,
}

impl Decoder {
    fn head(&mut self, value: Value, helm: Helm) -> Head {
        let mut head = Head::default();
        let fields = match value {
            Value::Null => return head,
            Value::Object(fields) => fields,
            other => {
                let package = match helm {
                    Helm::V3 => "releaseutil",
                    Helm::V4 => "util",
                };
                self.refuse(&other, &format!("value of type {package}.SimpleHead"));
                return head;
            }
        };
        for (key, value) in fields {
            if key.eq_ignore_ascii_case("apiVersion") {
                self.text(value, "SimpleHead.apiVersion", &mut head.api_version);
            } else if key.eq_ignore_ascii_case("kind") {
                self.text(value, "SimpleHead.kind", &mut head.kind);
            } else if key.eq_ignore_ascii_case("metadata") {
                self.metadata(value, &mut head);
            }
        }
        head
    }

    fn metadata(&mut self, value: Value, head: &mut Head) {
        let fields = match value {
            Value::Null => {
                // A null makes Go's pointer nil again.
                head.name.clear();
                head.annotations.clear();
                return;
            }
            Value::Object(fields) => fields,
            other => {
                return self.refuse(
                    &other,
                    &format!("struct field SimpleHead.metadata of type {METADATA_TYPE}"),
                );
            }
        };
        for (key, value) in fields {
            if key.eq_ignore_ascii_case("name") {
                self.text(value, ".metadata.name", &mut head.name);
            } else if key.eq_ignore_ascii_case("annotations") {
                self.annotations(value, &mut head.annotations);
            }
        }
    }

    fn annotations(&mut self, value: Value, annotations: &mut BTreeMap<String, String>) {
        match value {
            Value::Null => annotations.clear(),
            Value::Object(fields) => {
                for (key, value) in fields {
                    let mut text = String::new();
                    self.text(value, ".metadata.annotations", &mut text);
                    annotations.insert(key, text);
                }
            }
            other => self.refuse(
                &other,
                "struct field .metadata.annotations of type map[string]string",
            ),
        }
    }

    fn text(&mut self, value: Value, field: &str, text: &mut String) {
        match value {
            Value::Null => {}
            Value::String(string) => *text = string,
            Value::Bool(truth) => *text = truth.to_string(),
            Value::Number(number) => {
                *text = match number.as_f64().filter(|_| number.is_f64()) {
                    Some(float) => number::format_g_32(float),
                    None => number.to_string(),
                }
            }
            other => self.refuse(&other, &format!("struct field {field} of type string")),
        }
    }

    fn refuse(&mut self, value: &Value, target: &str) {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        self.problem
            .get_or_insert_with(|| format!("{kind} into Go {target}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, end: &str) {
        let problem = Head::read(text.as_bytes(), Helm::V4, usize::MAX).expect_err("it is no head");
        assert!(problem.ends_with(end), "{problem}");
    }

    #[test]
    fn scalars_are_strings() {
        let text = "kind: 5\napiVersion: 1.5\nMETADATA: {name: true, annotations: {a: 5, d: null}}";
        let head = Head::read(text.as_bytes(), Helm::V4, usize::MAX).expect("it is a head");
        assert_eq!(
            (&*head.kind, &*head.api_version, &*head.name),
            ("5", "1.5", "true")
        );
        assert_eq!(head.annotations.get("a").map(String::as_str), Some("5"));
        assert_eq!(head.annotations.get("d").map(String::as_str), Some(""));
    }

    #[test]
    fn what_is_no_object_is_refused_in_the_words_of_go() {
        refused(
            "- a",
            "cannot unmarshal array into Go value of type util.SimpleHead",
        );
        refused(
            "metadata: {name: [a]}",
            "array into Go struct field .metadata.name of type string",
        );
        refused(
            "metadata: {annotations: {a: [x]}}",
            "array into Go struct field .metadata.annotations of type string",
        );
        refused("metadata: 5", r#"annotations\"" }"#);
        refused(
            "kind: []\napiVersion: {}",
            "object into Go struct field SimpleHead.apiVersion of type string",
        );
        refused(
            "a: .inf",
            "error converting YAML to JSON: json: unsupported value: +Inf",
        );
        refused(
            "a: [",
            "error converting YAML to JSON: yaml: line 1: did not find expected node content",
        );
    }
}
