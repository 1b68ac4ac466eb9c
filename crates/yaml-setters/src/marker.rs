//! The text of a marker: one JSON object of strings, in which a key names the setter.

use std::collections::BTreeMap;

/// Prefix of a setter's definition, in the long form of kyaml.
const DEFINITION: &str = "#/definitions/io.k8s.cli.setters.";

/// What a comment says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Comment {
    /// Something for people.
    Other,
    /// It names a setter.
    Setter(String),
    /// It looks like a marker and cannot be read as one.
    Broken,
}

/// Reads the text after a `#`.
pub(crate) fn read(text: &str, key: &str) -> Comment {
    let text = text.trim_start_matches('#').trim();
    if let Ok(fields) = serde_json::from_str::<BTreeMap<String, String>>(text) {
        let long = || fields.get("$ref").and_then(|name| name.strip_prefix(DEFINITION));
        let name = fields.get(key).map(String::as_str).or_else(long);
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            return Comment::Setter(name.to_owned());
        }
    }
    if text.contains(&format!("\"{key}\"")) {
        Comment::Broken
    } else {
        Comment::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_json_objects_of_strings() {
        let setter = |name: &str| Comment::Setter(name.to_owned());
        for (text, expected) in [
            (r##" {"$imagepolicy": "ns:app"}"##, setter("ns:app")),
            (r##"{"$imagepolicy":"ns:app:tag"}  "##, setter("ns:app:tag")),
            (
                r##"# {"$imagepolicy": "ns:app", "other": "x"}"##,
                setter("ns:app"),
            ),
            (
                r##" {"$ref":"#/definitions/io.k8s.cli.setters.ns:app"}"##,
                setter("ns:app"),
            ),
            (r##" {"$imagepolicy": "ns:app"} and more"##, Comment::Broken),
            (r##" {"$imagepolicy": 1}"##, Comment::Broken),
            (r##" {"$imagepolicy": ""}"##, Comment::Broken),
            (r##" {"$imagepolicy": "ns:app", "n": 1}"##, Comment::Broken),
            (r##" see "$imagepolicy""##, Comment::Broken),
            (" $imagepolicy markers are below", Comment::Other),
            (r##" {"$promotion": "x"}"##, Comment::Other),
            ("", Comment::Other),
        ] {
            assert_eq!(read(text, "$imagepolicy"), expected, "{text}");
        }
    }
}
