//! Reading single fields of an object with the strictness of kstatus.
//!
//! kstatus reads some fields strictly (a wrong type is an error, which makes the verdict Unknown) and some leniently
//! (a wrong type reads as the default). Paths are dotted and lead through mappings only.

use serde_json::Value;

/// A field that has a type it cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FieldError {
    /// The field itself, or one that leads to it.
    #[error("{path} is not {expected}")]
    WrongType { path: String, expected: &'static str },
    /// A phase that Kubernetes does not have.
    #[error("{path} has the unknown value {value:?}")]
    UnknownValue { path: &'static str, value: String },
}

impl FieldError {
    pub(crate) fn wrong_type(path: impl Into<String>, expected: &'static str) -> Self {
        Self::WrongType {
            path: path.into(),
            expected,
        }
    }
}

/// Reads an integer; None when it is absent, an error when it is anything else.
pub(crate) fn integer(object: &Value, path: &str) -> Result<Option<i64>, FieldError> {
    let Some(value) = field(object, path)? else {
        return Ok(None);
    };
    value
        .as_i64()
        .map(Some)
        .ok_or_else(|| FieldError::wrong_type(path, "an integer"))
}

/// Reads a string; None when it is absent, an error when it is anything else.
pub(crate) fn text<'a>(object: &'a Value, path: &str) -> Result<Option<&'a str>, FieldError> {
    let Some(value) = field(object, path)? else {
        return Ok(None);
    };
    value
        .as_str()
        .map(Some)
        .ok_or_else(|| FieldError::wrong_type(path, "a string"))
}

/// Reads an integer, or the default for whatever is not one.
pub(crate) fn integer_or(object: &Value, path: &str, default: i64) -> i64 {
    integer(object, path).ok().flatten().unwrap_or(default)
}

/// Reads a string, or the default for whatever is not one.
pub(crate) fn text_or<'a>(object: &'a Value, path: &str, default: &'a str) -> &'a str {
    text(object, path).ok().flatten().unwrap_or(default)
}

/// Reads a field. A null on the way is an absent field; a null at the end is a value (apimachinery `NestedField`).
pub(crate) fn field<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, FieldError> {
    let mut value = object;
    let mut walked = 0;
    for name in path.split('.') {
        value = match value {
            Value::Null => return Ok(None),
            Value::Object(map) => match map.get(name) {
                Some(inner) => inner,
                None => return Ok(None),
            },
            _ => {
                return Err(FieldError::wrong_type(
                    path[..walked].trim_end_matches('.'),
                    "a mapping",
                ));
            }
        };
        walked += name.len() + 1;
    }
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn strict_and_lenient_reads_differ_on_wrong_types_only() {
        let object = json!({"spec": {"replicas": 2, "name": "x", "half": 0.5, "none": null}, "list": []});
        assert_eq!(integer(&object, "spec.replicas"), Ok(Some(2)));
        assert_eq!(integer(&object, "spec.absent"), Ok(None));
        assert_eq!(integer(&object, "absent.replicas"), Ok(None));
        assert_eq!(integer(&object, "spec.none.deeper"), Ok(None));
        for (path, message) in [
            ("spec.name", "spec.name is not an integer"),
            ("spec.half", "spec.half is not an integer"),
            ("spec.none", "spec.none is not an integer"),
            ("spec.name.deeper", "spec.name is not a mapping"),
            ("list.a", "list is not a mapping"),
        ] {
            assert_eq!(
                integer(&object, path).map_err(|e| e.to_string()),
                Err(message.to_owned())
            );
            assert_eq!(integer_or(&object, path, 7), 7);
        }
        assert_eq!(text_or(&object, "spec.name", "y"), "x");
        assert_eq!(text_or(&object, "spec.replicas", "y"), "y");
    }
}
