//! Applications and ApplicationSets of Argo CD as sources, Kustomizations and HelmReleases. Pure.
//!
//! | module | what it is |
//! |---|---|
//! | `application_set` | the Applications that an ApplicationSet makes |
//! | `generators` | the sets of parameters that it makes them of |
//! | `checkouts` | the repositories that generators look into |
//! | `templates` | how parameters are filled in |
//! | `source` | where an Application comes from: GitRepositories, HelmRepositories, OCIRepositories |
//! | `kustomization` | what it applies from a folder |
//! | `release` | what it installs of a chart |
//! | `sync` | when, and with which options |
//!
//! What has no counterpart, or works in another way, is a [`Note`]: nothing is left out in silence.

mod application_set;
mod checkouts;
mod generators;
mod kustomization;
mod parameters;
mod release;
mod source;
mod sync;
mod templates;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Imported, Note, text};
pub use checkouts::Checkouts;
use source::Sources;

/// Imports all Applications and ApplicationSets among some objects; the objects are made in `namespace`.
pub fn import(objects: &[Value], namespace: &str, checkouts: &dyn Checkouts) -> Imported {
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
                let made = application_set::applications(object, objects, checkouts);
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
                        crate::named(&name)
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
    word.map_or_else(|| (number + 1).to_string(), crate::named)
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

#[cfg(test)]
mod tests;
