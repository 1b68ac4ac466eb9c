//! Applications and ApplicationSets of Argo CD as sources, Kustomizations and HelmReleases. Pure.
//!
//! | module | what it is |
//! |---|---|
//! | [`application_set`] | the Applications that an ApplicationSet makes |
//! | `source` | where an Application comes from: GitRepositories, HelmRepositories, OCIRepositories |
//! | `kustomization` | what it applies from a folder |
//! | `release` | what it installs of a chart |
//! | `sync` | when, and with which options |
//!
//! What has no counterpart, or works in another way, is a [`Note`]: nothing is left out in silence.

pub mod application_set;
mod kustomization;
mod release;
mod source;
mod sync;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use source::Sources;

/// What an Application becomes.
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

/// Imports all Applications and ApplicationSets among some objects; the objects are made in `namespace`.
pub fn import(objects: &[Value], namespace: &str) -> Imported {
    let mut work = Work {
        namespace,
        sources: Sources::default(),
        applications: BTreeMap::new(),
        notes: Vec::new(),
    };
    for object in objects {
        if !text(object, "/apiVersion").starts_with("argoproj.io/") {
            continue;
        }
        match text(object, "/kind") {
            "Application" => work.application(object),
            "ApplicationSet" => {
                let made = application_set::applications(object);
                work.notes.extend(made.notes);
                made.applications.iter().for_each(|one| work.application(one));
            }
            "AppProject" if text(object, "/metadata/name") != "default" => {
                let name = text(object, "/metadata/name").to_owned();
                work.notes.push(Note {
                    application: format!("AppProject {name}"),
                    field: String::new(),
                    text: format!(
                        "RBAC takes its place: create the ServiceAccount {} in the namespace of the new objects, with the \
                         rights that the project gives",
                        source::named(&name)
                    ),
                });
            }
            _ => {}
        }
    }
    Imported {
        sources: work.sources.objects(),
        applications: work.applications,
        notes: work.notes,
    }
}

struct Work<'a> {
    namespace: &'a str,
    sources: Sources,
    applications: BTreeMap<String, Vec<Value>>,
    notes: Vec<Note>,
}

/// The notes of one Application.
pub(crate) struct Notes<'a> {
    application: String,
    notes: &'a mut Vec<Note>,
}

impl Notes<'_> {
    pub(crate) fn add(&mut self, field: &str, text: impl Into<String>) {
        self.notes.push(Note {
            application: self.application.clone(),
            field: field.to_owned(),
            text: text.into(),
        });
    }
}

impl Work<'_> {
    fn application(&mut self, application: &Value) {
        let mut name = text(application, "/metadata/name").to_owned();
        let is_taken = self.applications.contains_key(&name);
        if is_taken {
            name = format!("{name}-{}", text(application, "/metadata/namespace"));
        }
        let mut notes = Notes {
            application: name.clone(),
            notes: &mut self.notes,
        };
        if is_taken {
            notes.add(
                "metadata.name",
                "an Application of another namespace has the same name: its namespace is added",
            );
        }
        let all: Vec<Value> = match application.pointer("/spec/sources") {
            Some(Value::Array(sources)) if !sources.is_empty() => sources.clone(),
            _ => vec![application["spec"]["source"].clone()],
        };
        if application["spec"]["sourceHydrator"].is_object() {
            notes.add(
                "sourceHydrator",
                "manifests are not rendered into a branch: the dry source is applied",
            );
        }
        let made: Vec<&Value> = all
            .iter()
            .filter(|one| one["ref"].is_null() || !one["path"].is_null() || !one["chart"].is_null())
            .collect();
        let mut objects = Vec::new();
        for (number, one) in made.iter().enumerate() {
            let own = match made.len() {
                1 => name.clone(),
                _ => format!("{name}-{}", part(one, number)),
            };
            let is_chart = !text(one, "/chart").is_empty() || one["helm"].is_object();
            let source = self.sources.add(one, self.namespace, &mut notes);
            let mut object = match is_chart {
                true => release::release(one, &source, &mut notes),
                false => kustomization::kustomization(one, &source, &mut notes),
            };
            object["metadata"]["name"] = own.into();
            object["metadata"]["namespace"] = self.namespace.into();
            sync::apply(application, &mut object, &mut objects, &mut notes);
            objects.push(object);
        }
        if made.is_empty() {
            notes.add("source", "there is none: nothing is made of it");
            return;
        }
        self.applications.entry(name).or_default().extend(objects);
    }
}

/// A word for one of several sources.
fn part(source: &Value, number: usize) -> String {
    let words = [
        text(source, "/name"),
        text(source, "/chart"),
        plain_path(source).rsplit('/').next().unwrap_or_default(),
    ];
    let word = words.into_iter().find(|word| !word.is_empty());
    word.map_or_else(|| (number + 1).to_string(), source::named)
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

/// The folder of a source as `spec.path` has it: `./deploy/web`.
pub(crate) fn folder(source: &Value) -> String {
    format!("./{}", plain_path(source))
}

/// The folder of a source, from its root: `deploy/web`; empty for the root.
pub(crate) fn plain_path(source: &Value) -> &str {
    let path = text(source, "/path").trim_start_matches("./").trim_matches('/');
    if path == "." { "" } else { path }
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

#[cfg(test)]
mod tests;
