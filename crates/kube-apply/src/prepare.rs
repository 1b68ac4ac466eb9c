//! Turns manifests into what is applied: labelled, normalised, placed in their namespaces, in order, with digests.
//!
//! Kinds are resolved here, so that the inventory is known, and can be recorded, before anything is written. All that is
//! wrong with the manifests themselves is found here, for all of them at once.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use manifest::order::compare_for_apply;
use manifest::{GroupVersionKind, Object, ObjectId, Origin};
use serde_json::Value;

use crate::Engine;
use crate::failure::{ApplyError, Class, Failure, ObjectError, Step, failure};
use crate::fingerprint::Digest;
use crate::ignore::{Candidates, IgnoreRules, Ignored};
use crate::inventory::Inventory;
use crate::managed::Applying;
use crate::mapper::{self, Definition, Resource};
use crate::normalize::normalize;
use crate::policy::Policy;
use crate::request::Address;
use crate::settings::{CommonMetadata, Owner, Settings};
use crate::stage::Stage;

/// Objects of one owner, ready to be applied.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub(crate) owner: Owner,
    /// In the order in which they are applied.
    pub(crate) items: Vec<Item>,
}

/// One object, ready to be applied.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) object: Object,
    pub(crate) id: ObjectId,
    pub(crate) gvk: GroupVersionKind,
    pub(crate) stage: Stage,
    pub(crate) policy: Policy,
    pub(crate) digest: Digest,
    /// Kubernetes deletes it by itself when it is finished.
    pub(crate) expires: bool,
    pub(crate) resource: Arc<Resource>,
    /// Its values are not to be told.
    pub(crate) is_confidential: bool,
    /// Rules that may leave fields of it to others.
    pub(crate) ignore: Option<Arc<Candidates>>,
    /// False when only a CRD of the same set knows the kind.
    pub(crate) is_served: bool,
}

impl Prepared {
    /// Returns whose objects these are.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Returns what the inventory is after these are applied.
    pub fn inventory(&self) -> Inventory {
        self.items
            .iter()
            .map(|item| (item.id.clone(), item.gvk.version.clone()))
            .collect()
    }

    /// Leaves fields of the objects to others.
    #[must_use]
    pub fn ignoring(mut self, rules: &IgnoreRules) -> Self {
        for item in &mut self.items {
            if let Some(candidates) = rules.candidates(&item.object) {
                item.digest = candidates.digest(item.digest);
                item.ignore = Some(Arc::new(candidates));
            }
        }
        self
    }

    /// Leaves objects out.
    #[must_use]
    pub fn without(mut self, objects: &BTreeSet<ObjectId>) -> Self {
        self.items.retain(|item| !objects.contains(&item.id));
        self
    }

    /// Marks objects whose values are not to be told, as those of Secrets never are: what was decrypted, or made of
    /// Secrets.
    #[must_use]
    pub fn confidential(mut self, is_confidential: impl Fn(&ObjectId) -> bool) -> Self {
        for item in &mut self.items {
            item.is_confidential = is_confidential(&item.id);
        }
        self
    }

    /// Iterates over ids and kinds in the order in which they are applied.
    pub fn objects(&self) -> impl Iterator<Item = (&ObjectId, &GroupVersionKind)> {
        self.items.iter().map(|item| (&item.id, &item.gvk))
    }

    /// Iterates over the objects in the order in which they are applied, with whether their values are secret.
    pub fn manifests(&self) -> impl Iterator<Item = (&ObjectId, &Object, bool)> {
        self.items
            .iter()
            .map(|item| (&item.id, &item.object, item.is_confidential))
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether there is nothing to apply.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl Item {
    pub(crate) fn address(&self) -> Address {
        let (namespace, name) = (self.id.namespace.clone(), self.id.name.clone());
        Address {
            resource: Arc::clone(&self.resource),
            namespace,
            name,
        }
    }

    pub(crate) fn applying(&self, ignored: Option<Arc<Ignored>>) -> Applying {
        Applying {
            desired: self.digest,
            expires: self.expires,
            ignored,
        }
    }

    pub(crate) fn error(&self, step: Step, failure: Failure) -> ObjectError {
        let mut error = ObjectError::new(self.id.clone(), self.object.origin().cloned(), step, failure);
        error.reason = crate::redact::redact(&error.reason, &self.object);
        error
    }
}

impl Engine {
    /// Prepares the objects of an owner; all that is wrong with them comes back at once.
    pub async fn prepare(
        &self,
        owner: &Owner,
        objects: Vec<Object>,
        common: &CommonMetadata,
    ) -> Result<Prepared, ApplyError> {
        let definitions: Vec<_> = objects.iter().filter_map(mapper::definition).collect();
        let mut kinds = Kinds {
            engine: self,
            definitions,
            resolved: HashMap::new(),
        };
        let (mut items, mut errors) = (Vec::with_capacity(objects.len()), Vec::new());
        for mut object in objects {
            let prepared = match shape(&mut object, owner, common, self.settings()) {
                Ok(()) => kinds.place(&mut object).await,
                Err(failure) => Err(failure),
            };
            match prepared {
                Ok((resource, is_served)) => items.push(item(object, resource, is_served, self.settings())),
                Err(failure) => {
                    let origin = object.origin().cloned();
                    errors.push(ObjectError::new(object.id(), origin, Step::Prepare, failure));
                }
            }
        }
        items.sort_by(|a: &Item, b: &Item| {
            a.stage
                .cmp(&b.stage)
                .then_with(|| compare_for_apply(&a.id, &b.id))
        });
        errors.extend(remove_doubles(&mut items));
        if errors.is_empty() {
            Ok(Prepared {
                owner: owner.clone(),
                items,
            })
        } else {
            Err(ApplyError {
                errors,
                changes: Vec::new(),
            })
        }
    }
}

fn item(object: Object, resource: Arc<Resource>, is_served: bool, settings: &Settings) -> Item {
    let gvk = object.gvk();
    Item {
        id: object.id(),
        stage: Stage::new(&gvk, &settings.custom_stage_kinds),
        policy: Policy::new(&object, settings.policies()),
        digest: Digest::of_map(object.value()),
        expires: expires(&gvk, &object),
        gvk,
        object,
        resource,
        is_confidential: false,
        ignore: None,
        is_served,
    }
}

/// Returns whether it is a Job that is deleted some time after it finished. That is no drift: to run it again at once, and
/// again, is not what `ttlSecondsAfterFinished` asks for.
pub(crate) fn expires(gvk: &GroupVersionKind, object: &Object) -> bool {
    let spec = object.value().get("spec");
    gvk.group == "batch"
        && gvk.kind == "Job"
        && spec.is_some_and(|s| s.get("ttlSecondsAfterFinished").is_some())
}

/// Checks the parts of an object that every kind has, labels and normalises it. Owner labels come last: a common label
/// of the same name would cut the object off from its owner.
fn shape(
    object: &mut Object,
    owner: &Owner,
    common: &CommonMetadata,
    settings: &Settings,
) -> Result<(), Failure> {
    let invalid = |message: String| Err(Failure::new(Class::Invalid, message));
    if let Some(field) = object.missing_field() {
        return invalid(format!("{field} is missing"));
    }
    if let Some(field) = not_a_mapping(object) {
        return invalid(format!("metadata.{field} is not a mapping"));
    }
    for (field, text) in [("name", object.name()), ("namespace", object.namespace())] {
        if !is_path_segment(text) {
            return invalid(format!(
                "metadata.{field} {text:?} must not be '.' or '..' nor hold '/', '%', '?' or '#'"
            ));
        }
    }
    common
        .labels
        .iter()
        .for_each(|(key, value)| object.set_label(key, value));
    common
        .annotations
        .iter()
        .for_each(|(key, value)| object.set_annotation(key, value));
    object.set_label(&settings.name_label(), &owner.name);
    object.set_label(&settings.namespace_label(), &owner.namespace);
    normalize(object);
    Ok(())
}

fn not_a_mapping(object: &Object) -> Option<&'static str> {
    ["labels", "annotations"].into_iter().find(|field| {
        let value = object
            .value()
            .get("metadata")
            .and_then(|metadata| metadata.get(*field));
        value.is_some_and(|value| !value.is_object() && !value.is_null())
    })
}

/// Names become part of a URL, and come from tenants.
pub(crate) fn is_path_segment(name: &str) -> bool {
    !matches!(name, "." | "..")
        && !name.contains(['/', '%', '?', '#', '\\'])
        && !name.contains(char::is_control)
}

/// Kinds of one set, each resolved once.
struct Kinds<'a> {
    engine: &'a Engine,
    definitions: Vec<Definition>,
    resolved: HashMap<GroupVersionKind, (Arc<Resource>, bool)>,
}

impl Kinds<'_> {
    /// Resolves the object's kind and puts its namespace right: required where there are any, cleared where there are
    /// none.
    async fn place(&mut self, object: &mut Object) -> Result<(Arc<Resource>, bool), Failure> {
        let (resource, is_served) = self.resolve(&object.gvk()).await?;
        if !resource.namespaced {
            if let Some(Value::Object(metadata)) = object.value_mut().get_mut("metadata") {
                metadata.remove("namespace");
            }
        } else if object.namespace().is_empty() {
            return Err(Failure::new(Class::Invalid, "namespace not specified"));
        }
        Ok((resource, is_served))
    }

    async fn resolve(&mut self, gvk: &GroupVersionKind) -> Result<(Arc<Resource>, bool), Failure> {
        if let Some(found) = self.resolved.get(gvk) {
            return Ok(found.clone());
        }
        let found = match self.defined(gvk) {
            Some(resource) => match self
                .engine
                .mapper()
                .resolve_known(gvk)
                .await
                .map_err(|e| failure(&e))?
            {
                Some(served) => (served, true),
                None => (Arc::new(resource), false),
            },
            None => (
                self.engine.mapper().resolve(gvk).await.map_err(|e| failure(&e))?,
                true,
            ),
        };
        self.resolved.insert(gvk.clone(), found.clone());
        Ok(found)
    }

    /// Finds the kind among the CRDs of the set.
    fn defined(&self, gvk: &GroupVersionKind) -> Option<Resource> {
        let definition = self
            .definitions
            .iter()
            .find(|d| d.group == gvk.group && d.kind == gvk.kind)?;
        definition
            .versions
            .contains(&gvk.version)
            .then(|| definition.resource(&gvk.version))
    }
}

/// Removes objects that are there twice with the same content; with different content they would overwrite each other
/// at every apply, which is an error.
fn remove_doubles(items: &mut Vec<Item>) -> Vec<ObjectError> {
    let mut errors = Vec::new();
    items.dedup_by(|later, first| {
        if later.id != first.id {
            return false;
        }
        if later.digest != first.digest {
            let first = first.object.origin().map(Origin::to_string);
            let place = first.map(|at| format!(" (also in {at})")).unwrap_or_default();
            let failure = Failure::new(
                Class::Invalid,
                format!("is declared twice with different content{place}"),
            );
            errors.push(later.error(Step::Prepare, failure));
        }
        true
    });
    errors
}
