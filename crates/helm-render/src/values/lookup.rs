//! Paths into values: `a.b.c`, with a dot between keys and no way to write a dot within one.

use std::fmt;

use go_template::{Map, Value};

use go_text::quote::quoted;

/// The missing target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// This key holds no table.
    Table(String),
    /// This key holds nothing, or a table.
    Value(String),
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(key) => write!(f, "{} is not a table", quoted(key)),
            Self::Value(key) => write!(f, "{} is not a value", quoted(key)),
        }
    }
}

impl std::error::Error for NotFound {}

/// Returns the table at a path; it is shared, not copied.
pub fn table(values: &Map, path: &str) -> Result<Map, NotFound> {
    let mut table = values.clone();
    for key in path.split('.') {
        match table.get(key) {
            Some(Value::Map(below)) => table = below,
            _ => return Err(NotFound::Table(key.to_owned())),
        }
    }
    Ok(table)
}

/// Returns the value at a path, which may be null but not a table.
pub fn path_value(values: &Map, path: &str) -> Result<Value, NotFound> {
    let (folder, key) = match path.rsplit_once('.') {
        Some((folder, key)) => (Some(folder), key),
        None => (None, path),
    };
    let not_found = || NotFound::Value(key.to_owned());
    let table = match folder {
        Some(folder) => table(values, folder).map_err(|_| not_found())?,
        None => values.clone(),
    };
    match table.get(key) {
        None | Some(Value::Map(_)) => Err(not_found()),
        Some(value) => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::{from_json, to_json, value_to_json};

    fn values() -> Map {
        let json = serde_json::json!({"a": {"b": {"c": 1}, "n": null}, "t": true});
        from_json(json.as_object().expect("a map"))
    }

    #[test]
    fn tables_are_found_by_their_paths() {
        let found = table(&values(), "a.b").map(|found| to_json(&found));
        assert_eq!(found.map(|found| found["c"].clone()), Ok(1.into()));
        for (path, expected) in [
            ("a.x.b", "\"x\" is not a table"),
            ("a.n", "\"n\" is not a table"),
            ("t.x", "\"t\" is not a table"),
            ("", "\"\" is not a table"),
        ] {
            let error = table(&values(), path).map(|_| ()).expect_err("no table");
            assert_eq!(error.to_string(), expected, "{path:?}");
        }
    }

    #[test]
    fn values_are_found_by_their_paths() {
        let found = |path| path_value(&values(), path).map(|value| value_to_json(&value));
        assert_eq!(found("t"), Ok(true.into()));
        assert_eq!(found("a.b.c"), Ok(1.into()));
        assert_eq!(found("a.n"), Ok(serde_json::Value::Null));
        for path in ["a", "a.b", "x", "x.y", "t.y", "a..b"] {
            let key = path.rsplit('.').next().expect("one part at least");
            assert_eq!(found(path), Err(NotFound::Value(key.to_owned())), "{path:?}");
        }
    }
}
