//! Merging YAML files as Helm merges values: maps are merged, everything else is replaced.

use manifest::yaml;
use serde_json::{Map, Number, Value};

/// Larger files are data, not values.
pub(super) const MAX_BYTES: u64 = 8 << 20;
/// Go's libraries hold every number as a float; up to here that loses nothing.
const EXACT: u64 = 1 << 53;

/// Why files cannot be merged.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("cannot unmarshal YAML document: it is not UTF-8")]
    Encoding,
    #[error("cannot unmarshal YAML document: {0}")]
    Read(String),
    #[error("cannot unmarshal YAML document: it is no mapping")]
    NoMapping,
    #[error("failed to write the merged YAML: {0}")]
    Write(#[from] yaml::WriteError),
    #[error("it is larger than {MAX_BYTES} bytes")]
    TooLarge,
}

/// The text of `base` with what `overlay` says on top.
pub(super) fn merge(base: &[u8], overlay: &[u8]) -> Result<String, Error> {
    let overlay = load(overlay)?;
    let mut merged = load(base)?;
    merge_maps(&mut merged, overlay);
    Ok(yaml::write_mapping(&merged)?)
}

/// All documents of a file in one mapping.
fn load(bytes: &[u8]) -> Result<Map<String, Value>, Error> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::Encoding)?;
    let documents = yaml::read_documents(text, "").map_err(|error| Error::Read(error.to_string()))?;
    let mut merged = Map::new();
    for document in documents {
        match document.value {
            Value::Object(fields) => merge_maps(&mut merged, fields),
            Value::Null => {}
            _ => return Err(Error::NoMapping),
        }
    }
    merged.values_mut().for_each(as_go_holds_it);
    Ok(merged)
}

/// Depth is bounded by the reader of YAML.
fn merge_maps(base: &mut Map<String, Value>, overlay: Map<String, Value>) {
    for (key, value) in overlay {
        match (base.get_mut(&key), value) {
            (Some(Value::Object(below)), Value::Object(value)) => merge_maps(below, value),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

fn as_go_holds_it(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(as_go_holds_it),
        Value::Array(values) => values.iter_mut().for_each(as_go_holds_it),
        Value::Number(number) => {
            let is_exact = number.as_i64().is_some_and(|whole| whole.unsigned_abs() <= EXACT);
            if let Some(float) = number.as_f64().filter(|_| !is_exact)
                && let Some(held) = Number::from_f64(float)
            {
                *number = held;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_merged_and_lists_replaced() {
        let base = b"a: {b: 1, c: [1, 2]}\nz: keep\n---\nsecond: yes\n";
        let overlay = b"a: {c: [3], d: null}\n# nothing\n---\n---\nz: new\n";
        assert_eq!(
            merge(base, overlay).unwrap(),
            "a:\n  b: 1\n  c:\n  - 3\n  d: null\nsecond: true\nz: new\n"
        );
        assert_eq!(merge(b"", b"").unwrap(), "{}\n");
    }

    #[test]
    fn what_is_no_mapping_is_refused() {
        assert!(matches!(merge(b"[1]", b"a: 1"), Err(Error::NoMapping)));
        assert!(matches!(merge(b"a: 1", b"a: ["), Err(Error::Read(_))));
        assert!(matches!(
            merge(b"\xff\xfea", b""),
            Err(Error::Read(_) | Error::Encoding)
        ));
    }
}
