//! The manifests of a file, as pieces of its text.
//!
//! A line that begins with `---` separates documents wherever it stands, in block scalars, too. So the pieces can be told without
//! reading what is between them.

use std::ops::Range;

use api::delivery::ManifestReference;
use manifest::yaml::{Document, read_documents};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The documents of a file, with the places of their texts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Documents {
    /// Place of the text, and its content.
    pub all: Vec<(Range<usize>, Value)>,
}

impl Documents {
    /// Reads a file. Documents without content are passed over.
    ///
    /// # Errors
    /// When it is no YAML; the message names the line.
    pub fn read(file: &str, text: &str) -> Result<Self, String> {
        let mut all = Vec::new();
        // Of the whole first: its errors name the lines.
        let whole = read_documents(text, file).map_err(|error| error.to_string())?;
        for place in pieces(text) {
            let read = read_documents(&text[place.clone()], file).map_err(|error| error.to_string())?;
            match read.as_slice() {
                [] => {}
                [Document { value, .. }] if value.is_null() => {}
                [Document { value, .. }] => all.push((place, value.clone())),
                _ => return Err(format!("{file}: its documents cannot be told apart")),
            }
        }
        let whole = whole.into_iter().map(|one| one.value);
        let is_same = whole
            .filter(|value| !value.is_null())
            .eq(all.iter().map(|(_, value)| value.clone()));
        match is_same {
            true => Ok(Self { all }),
            false => Err(format!("{file}: its documents cannot be told apart")),
        }
    }

    /// The place of a manifest, if the file has one and no second.
    pub fn place(&self, object: &ManifestReference) -> Option<Range<usize>> {
        let with = |namespace: &str| {
            let mut found = self.all.iter().filter(|(_, value)| {
                text(value, "/metadata/namespace") == namespace
                    && text(value, "/apiVersion") == object.api_version
                    && text(value, "/kind") == object.kind
                    && text(value, "/metadata/name") == object.name
            });
            let first = found.next().map(|(place, _)| place.clone());
            first.filter(|_| found.next().is_none())
        };
        let namespace = object.namespace.as_deref().unwrap_or_default();
        with(namespace).or_else(|| with(""))
    }
}

/// The text of a manifest in a file, if the file has one and no second.
///
/// # Errors
/// When the file is no YAML.
pub fn find<'t>(file: &str, content: &'t str, object: &ManifestReference) -> Result<Option<&'t str>, String> {
    let place = Documents::read(file, content)?.place(object);
    Ok(place.map(|place| &content[place]))
}

/// The manifest at a line of a file, counted from 1, with its text. None if it has no name, or the file has another one that says it is the
/// same.
///
/// # Errors
/// When the file is no YAML.
pub fn at_line<'t>(
    file: &str,
    content: &'t str,
    line: u32,
) -> Result<Option<(ManifestReference, &'t str)>, String> {
    let documents = Documents::read(file, content)?;
    let lines = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
    let is_there = |place: &Range<usize>| {
        let before = lines(&content[..place.start]);
        (before + 1..=before + lines(&content[place.clone()]) + 1).contains(&(line as usize))
    };
    let Some((place, value)) = documents.all.iter().find(|(place, _)| is_there(place)) else {
        return Ok(None);
    };
    let of = |pointer: &str| text(value, pointer).to_owned();
    let object = ManifestReference {
        api_version: of("/apiVersion"),
        kind: of("/kind"),
        name: of("/metadata/name"),
        namespace: Some(of("/metadata/namespace")).filter(|namespace| !namespace.is_empty()),
    };
    let is_only = !object.name.is_empty() && documents.place(&object).as_ref() == Some(place);
    Ok(is_only.then(|| (object, &content[place.clone()])))
}

/// SHA-256 of a text, in hex.
pub fn digest(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The texts between the lines that separate documents.
fn pieces(text: &str) -> Vec<Range<usize>> {
    let (mut pieces, mut begin, mut at) = (Vec::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        let is_marker = |marker: &str| {
            let rest = line.strip_prefix(marker);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
        };
        if is_marker("---") || is_marker("...") {
            pieces.push(begin..at);
            // What stands behind the marker in its line belongs to the document.
            let is_bare = line[3..].trim().is_empty() || line[3..].trim_start().starts_with('#');
            begin = if is_bare { end } else { at };
        }
        at = end;
    }
    pieces.push(begin..text.len());
    pieces.retain(|piece| !text[piece.clone()].trim().is_empty());
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn object(kind: &str, namespace: Option<&str>, name: &str) -> ManifestReference {
        ManifestReference {
            api_version: "v1".to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
        }
    }

    const FILE: &str = "# the first\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n\
                        # the second\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: shop}\ndata:\n  a: |\n    ---\n    x\n\
                        ---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n";

    #[test]
    fn a_manifest_is_found_with_its_comments() {
        let found = find("f.yaml", FILE, &object("ConfigMap", Some("shop"), "a"));
        assert_eq!(
            found,
            Ok(Some(
                "# the first\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
            ))
        );
        let found = find("f.yaml", FILE, &object("ConfigMap", Some("shop"), "b"));
        assert!(found.unwrap().unwrap().starts_with("# the second"));
        let found = find("f.yaml", FILE, &object("ConfigMap", None, "b"));
        assert!(!found.unwrap().unwrap().contains("shop"));
        assert_eq!(find("f.yaml", FILE, &object("ConfigMap", None, "c")), Ok(None));
        assert_eq!(find("f.yaml", FILE, &object("Service", None, "a")), Ok(None));
    }

    #[test]
    fn one_of_two_is_none() {
        let twice = format!("{FILE}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\n");
        assert_eq!(find("f.yaml", &twice, &object("ConfigMap", None, "a")), Ok(None));
    }

    #[test]
    fn a_manifest_is_found_by_its_line() {
        let at = |line| at_line("f.yaml", FILE, line).unwrap().map(|(object, _)| object);
        assert_eq!(at(2), Some(object("ConfigMap", None, "a")));
        assert_eq!(at(7), Some(object("ConfigMap", Some("shop"), "b")));
        assert_eq!(at(15), Some(object("ConfigMap", None, "b")));
        assert_eq!(at(99), None);
        // A List is no manifest of its own, and of two that are the same none is meant.
        let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n";
        assert_eq!(at_line("f.yaml", list, 4), Ok(None));
        let twice = format!("{FILE}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\n");
        assert_eq!(at_line("f.yaml", &twice, 2), Ok(None));
    }

    #[test]
    fn errors_name_file_and_line() {
        let error = Documents::read("f.yaml", "a: b\n---\na: [\n").unwrap_err();
        assert!(error.contains("f.yaml:4"), "{error}");
    }

    proptest! {
        /// What is between the pieces are separators alone, and each piece is one document.
        #[test]
        fn pieces_are_documents(parts in prop::collection::vec("(a: 1\n|b: \\|\n  ---\n  c\n|# x\n|\n|--- # y\n|---\n|\\.\\.\\.\n|--- \\{c: 1\\}\n|a: ---\n){0,4}", 0..4)) {
            let text = parts.concat();
            if let Ok(read) = Documents::read("f.yaml", &text) {
                for (place, value) in read.all {
                    let again = read_documents(&text[place], "f.yaml").unwrap();
                    prop_assert_eq!(again.len(), 1);
                    prop_assert_eq!(&again[0].value, &value);
                }
            }
        }
    }
}
