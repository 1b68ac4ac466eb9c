//! Values from YAML: values.yaml of a chart, and the files of `-f`.

use serde_json::{Map, Value};

use crate::chart::Helm;
use crate::decode::{json_error, json_kind, map_with_floats, read_yaml};

/// Reads values. Numbers are floats, as Go's decoder leaves them where no type is wanted.
///
/// Helm 3 reads the first document only, Helm 4 merges all. Errors are in the words of Helm, without the name of the file.
pub fn read(data: &[u8], helm: Helm) -> Result<Map<String, Value>, String> {
    match helm {
        Helm::V3 => read_document(data),
        Helm::V4 => {
            let mut values = Map::new();
            for document in split(data)? {
                let document = read_document(&document)
                    .map_err(|text| format!("cannot unmarshal yaml document: {text}"))?;
                merge(&mut values, document);
            }
            Ok(values)
        }
    }
}

/// Lays values over others: maps are merged, everything else is replaced, also by null.
pub fn merge(values: &mut Map<String, Value>, over: Map<String, Value>) {
    for (key, value) in over {
        match (values.get_mut(&key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => merge(below, above),
            (_, value) => {
                values.insert(key, value);
            }
        }
    }
}

fn read_document(data: &[u8]) -> Result<Map<String, Value>, String> {
    match read_yaml(data)? {
        Value::Null => Ok(Map::new()),
        Value::Object(fields) => Ok(map_with_floats(fields)),
        other => Err(json_error(&format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json_kind(&other)
        ))),
    }
}

/// Splits a text at its separators, as the reader of k8s.io/apimachinery does: line by line, whatever YAML makes of them.
fn split(data: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let mut documents = Vec::new();
    let mut document = Vec::new();
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match line.strip_prefix(b"---") {
            Some(rest) => {
                let rest = String::from_utf8_lossy(rest);
                let rest = rest.trim();
                if !rest.is_empty() && !rest.starts_with('#') {
                    return Err(format!(
                        "error reading yaml document: invalid Yaml document separator: {rest}"
                    ));
                }
                if !document.is_empty() {
                    documents.push(std::mem::take(&mut document));
                    continue;
                }
                document.extend_from_slice(line);
            }
            None => document.extend_from_slice(line),
        }
        document.push(b'\n');
    }
    if !document.is_empty() {
        documents.push(document);
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn helm_4_merges_all_documents_and_helm_3_reads_the_first() {
        let text = b"a: {x: 1, z: 2}\nb: 1\n---\na: {z: null}\nb: {c: 2}\n";
        let first = json!({"a": {"x": 1.0, "z": 2.0}, "b": 1.0});
        assert_eq!(read(text, Helm::V3).map(Value::Object), Ok(first));
        let merged = json!({"a": {"x": 1.0, "z": null}, "b": {"c": 2.0}});
        assert_eq!(read(text, Helm::V4).map(Value::Object), Ok(merged));
    }

    #[test]
    fn what_is_no_map_is_refused_in_the_words_of_go() {
        for (text, helm, expected) in [
            (
                "[a]",
                Helm::V3,
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}",
            ),
            (
                "a: .inf",
                Helm::V4,
                "cannot unmarshal yaml document: error converting YAML to JSON: json: unsupported value: +Inf",
            ),
            (
                "a: 1\n--- x\n",
                Helm::V4,
                "error reading yaml document: invalid Yaml document separator: x",
            ),
        ] {
            assert_eq!(read(text.as_bytes(), helm), Err(expected.to_owned()), "{text:?}");
        }
    }
}
