//! What other tools deliver, as sources, Kustomizations and HelmReleases that a person would have written. Pure.
//!
//! | module | what it is |
//! |---|---|
//! | [`argocd`] | Applications and ApplicationSets of Argo CD |
//! | [`helm`] | releases that `helm` has made in a cluster |
//! | [`helmfile`] | releases of a helmfile |
//!
//! What has no counterpart, or works in another way, is a [`Note`]: nothing is left out in silence.

pub mod argocd;
pub mod helm;
pub mod helmfile;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// What is made of what another tool delivers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// Sources, which several applications may share, by the name of their file.
    pub sources: BTreeMap<String, Value>,
    /// The objects of each application, by its name.
    pub applications: BTreeMap<String, Vec<Value>>,
    /// What people have to look at.
    pub notes: Vec<Note>,
}

/// Something that does not carry over as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Name of the Application.
    pub application: String,
    /// Field of its spec.
    pub field: String,
    /// What becomes of it, and what to do.
    pub text: String,
}

/// A name that the API server accepts.
pub fn named(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    let name = text.to_lowercase().replace(|letter| !is_plain(letter), "-");
    let name: String = name.chars().take(60).collect();
    match name.trim_matches('-') {
        "" => "source".to_owned(),
        name => name.to_owned(),
    }
}

/// Returns an address without the user and the password before its host, because it goes into files; and whether there
/// were any.
pub(crate) fn without_credentials(address: &str) -> (String, bool) {
    let Some((scheme, rest)) = address.split_once("://") else {
        return (address.to_owned(), false);
    };
    let host_ends = rest.find('/').unwrap_or(rest.len());
    match rest[..host_ends].rsplit_once('@') {
        // The user of ssh is part of the address.
        Some((user, _)) if scheme == "ssh" && !user.contains(':') => (address.to_owned(), false),
        Some((_, host)) => (format!("{scheme}://{host}{}", &rest[host_ends..]), true),
        None => (address.to_owned(), false),
    }
}

pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Returns whether a field has something to say.
pub(crate) fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

/// Sets a field if it has something to say.
pub(crate) fn set(of: &mut Value, field: &str, value: Value) {
    if is_set(&value) {
        of[field] = value;
    }
}

/// An empty object of a kind.
pub(crate) fn object(api_version: &str, kind: &str, spec: Value) -> Value {
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    object.insert("metadata".to_owned(), json!({}));
    object.insert("spec".to_owned(), spec);
    Value::Object(object)
}
