//! What an object wants to have applied, and how that differs from what another one wants, or wanted in another revision.

use std::collections::BTreeMap;

use delivery_graph::object::{self, text};
use flux_spec::release::names;
use helm_action::Storage;
use kube_apply::{FieldChanges, changes};
use manifest::Object;
use serde_json::Value;

use crate::report::{Action, Entry, Field, Section};
use crate::subject::{Compared, Subject};
use crate::world::World;
use crate::{built, kustomization, release};

/// So many fields of one object are told one by one.
const FIELDS: usize = 500;

/// Group, kind, namespace and name. The namespace and the parts of the name that an object gives to all that it applies are left out, so
/// that those of two environments are the same.
type Place = (String, String, String, String);

/// What an object wants to have applied.
pub struct Desired {
    objects: BTreeMap<Place, (String, Value)>,
    is_confidential: bool,
    /// What else there is to know.
    pub notes: Vec<String>,
    /// The folder, chart or revision that it was made of.
    pub from: String,
}

/// The namespace and the parts of names that an object gives to all that it applies.
#[derive(Default)]
struct Home {
    namespace: String,
    prefix: String,
    suffix: String,
}

impl Home {
    fn place(&self, object: &Value) -> Place {
        let id = object::id(object);
        let name = id.name.strip_prefix(&self.prefix).unwrap_or(&id.name);
        let name = name.strip_suffix(&self.suffix).unwrap_or(name);
        // What names none gets that of the home, or has none at all.
        let namespace = match id.namespace == self.namespace {
            true => String::new(),
            false => id.namespace,
        };
        (id.group, id.kind, namespace, name.to_owned())
    }
}

impl Desired {
    /// What an object wants now.
    ///
    /// # Errors
    /// When it cannot be built.
    pub async fn now(world: &World, subject: &Subject) -> Result<Self, String> {
        let mut compared = Compared::new(subject, false);
        let (objects, home) = match text(&subject.object, "/kind") {
            "HelmRelease" => {
                let rendered = release::rendered(world, subject, &mut compared).await?;
                let home = of_release(&rendered.object);
                let mut objects = rendered.previewed.objects;
                objects.extend(rendered.previewed.definitions);
                (objects, home)
            }
            _ => {
                let object = kustomization::read(subject, &compared)?;
                let folder = kustomization::folder(world, subject, &object)?;
                compared.section.from = format!("./{folder} of {}", world.content.place());
                let built = built::build(world, &object, &folder, false).await?;
                compared.is_confidential = built.is_confidential;
                compared.section.notes.extend(built.notes);
                let closed = built.closed.iter();
                compared
                    .section
                    .notes
                    .extend(closed.map(|closed| format!("{} is not compared: {}", closed.id, closed.why)));
                let target = object.spec.target_namespace.clone();
                let home = Home {
                    namespace: target.unwrap_or_else(|| object::namespace(&subject.object).to_owned()),
                    prefix: object.spec.name_prefix.clone().unwrap_or_default(),
                    suffix: object.spec.name_suffix.clone().unwrap_or_default(),
                };
                (built.objects, home)
            }
        };
        Ok(Self {
            objects: placed(objects, &home),
            is_confidential: compared.is_confidential,
            notes: compared.section.notes,
            from: compared.section.from,
        })
    }

    /// What a HelmRelease wanted in a revision that Helm has a record of.
    ///
    /// # Errors
    /// When there is none, or it may not be read.
    pub async fn at(world: &World, subject: &Subject, revision: i64) -> Result<Self, String> {
        let wrong = |error: serde_json::Error| format!("failed to read it: {error}");
        let release = serde_json::from_value(subject.object.clone()).map_err(wrong)?;
        let storage = Storage::new(world.reader.client(), &names::storage_namespace(&release));
        let name = names::release_name(&release);
        let failed = |error| {
            format!(
                "revision {revision} of the release: {}",
                error_chain::chain(&error)
            )
        };
        let record = storage.get(&name, revision).await.map_err(failed)?;
        let absent = || {
            format!(
                "Helm has no record of revision {revision} of {}/{name}",
                storage.namespace()
            )
        };
        let record = record.ok_or_else(absent)?;
        let objects = manifest::read_objects(&record.release.manifest, "manifest");
        let objects = objects.map_err(|error| format!("revision {revision} of the release: {error}"))?;
        Ok(Self {
            objects: placed(objects, &of_release(&release)),
            is_confidential: false,
            notes: Vec::new(),
            from: format!("revision {revision} of {}/{name}", record.release.namespace),
        })
    }

    /// How another one differs: objects that only that one has are `Created`, those that it lacks are `Pruned`.
    pub fn compared_with(&self, other: &Self) -> Section {
        let mut section = Section::default();
        let is_confidential = self.is_confidential || other.is_confidential;
        let mut places: Vec<&Place> = self.objects.keys().chain(other.objects.keys()).collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            let (before, after) = (self.objects.get(place), other.objects.get(place));
            let (action, shown) = match (before, after) {
                (None, Some((id, _))) => (Action::Created, id),
                (Some((id, _)), None) => (Action::Pruned, id),
                (_, Some((id, _))) => (Action::Changed, id),
                (None, None) => continue,
            };
            let null = Value::Null;
            let value = |side: Option<&'_ (String, Value)>| side.map_or(&null, |(_, value)| value).clone();
            let (before, after) = (value(before), value(after));
            let mut entry = Entry::new(shown.clone(), action, "");
            if action == Action::Changed {
                let found = FieldChanges::up_to(FIELDS, &before, &after, "", is_confidential);
                if found.is_empty() && same_labels(&before, &after) {
                    section.unchanged += 1;
                    continue;
                }
                entry.more_fields = found.more;
                entry.fields = found.fields.into_iter().map(Field::from).collect();
            }
            entry.states = Box::new(changes::masked(&before, &after, is_confidential));
            section.objects.push(entry);
        }
        for (desired, word) in [(self, "from"), (other, "to")] {
            let notes = desired.notes.iter();
            section.notes.extend(notes.map(|note| format!("{word}: {note}")));
        }
        section
    }
}

fn same_labels(before: &Value, after: &Value) -> bool {
    let metadata = |object: &Value, field: &str| object["metadata"][field].clone();
    ["labels", "annotations"]
        .into_iter()
        .all(|field| metadata(before, field) == metadata(after, field))
}

fn of_release(release: &api::helm::HelmRelease) -> Home {
    Home {
        namespace: names::release_namespace(release),
        prefix: names::release_name(release),
        suffix: String::new(),
    }
}

fn placed(objects: Vec<Object>, home: &Home) -> BTreeMap<Place, (String, Value)> {
    let placed = objects.into_iter().map(|object| {
        let value = Value::Object(object.value().clone());
        (home.place(&value), (object.id().to_string(), value))
    });
    placed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn desired(home: &Home, objects: &[Value]) -> Desired {
        let objects = objects.iter().map(|value| match value.clone() {
            Value::Object(map) => Object::new(map, None),
            other => panic!("{other}"),
        });
        Desired {
            objects: placed(objects.collect(), home),
            is_confidential: false,
            notes: Vec::new(),
            from: String::new(),
        }
    }

    fn map(namespace: &str, name: &str, word: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name}, "data": {"word": word}})
    }

    #[test]
    fn environments_are_compared_by_what_is_the_same_in_both() {
        let home = |namespace: &str, prefix: &str| Home {
            namespace: namespace.to_owned(),
            prefix: prefix.to_owned(),
            suffix: String::new(),
        };
        let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"key": value}});
        let staging = desired(
            &home("staging", "st-"),
            &[
                map("staging", "st-app", "a"),
                map("staging", "st-same", "x"),
                map("shared", "st-old", "a"),
                secret("hunter1"),
            ],
        );
        let production = desired(
            &home("production", ""),
            &[
                map("production", "app", "b"),
                map("production", "same", "x"),
                map("production", "new", "a"),
                secret("hunter2"),
            ],
        );
        let section = staging.compared_with(&production);
        let told: Vec<_> = section
            .objects
            .iter()
            .map(|entry| (entry.action, entry.object.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (Action::Changed, "ConfigMap/production/app"),
                (Action::Created, "ConfigMap/production/new"),
                (Action::Pruned, "ConfigMap/shared/st-old"),
                (Action::Changed, "Secret/s"),
            ]
        );
        let field = &section.objects[0].fields[0];
        assert_eq!(
            (field.path.as_str(), field.old.as_deref(), field.new.as_deref()),
            ("data.word", Some("\"a\""), Some("\"b\""))
        );
        assert_eq!(section.unchanged, 1);
        let shown = json!(section).to_string() + &section.objects[3].states.1.to_string();
        assert!(!shown.contains("hunter"), "{shown}");
    }
}
