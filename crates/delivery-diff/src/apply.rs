//! Computes what applying objects would change and what would be pruned: the same for Kustomizations and
//! HelmReleases.

use std::collections::{BTreeSet, HashMap};

use delivery_graph::object;
use kube_apply::{
    Class, CommonMetadata, Engine, Expected, Inventory, Means, ObjectError, Owner, Prepared, Preview, Step,
};
use manifest::{Object, ObjectId};
use serde_json::Value;

use crate::built::Closed;
use crate::report::{Action, Entry};
use crate::subject::{Compared, Subject, is_deliverer};
use crate::world::World;

/// Returns the owner of these objects.
pub(crate) fn owner(subject: &Subject) -> Owner {
    Owner {
        namespace: object::namespace(&subject.object).to_owned(),
        name: object::name(&subject.object).to_owned(),
    }
}

/// Objects that may be asked about, and what else would be applied with them.
pub(crate) struct Ready {
    pub(crate) prepared: Prepared,
    manifests: HashMap<ObjectId, Value>,
}

/// Prepares what can be; what cannot is noted, and holds up nothing else.
pub(crate) async fn prepare(
    world: &mut World,
    engine: &Engine,
    owner: &Owner,
    mut objects: Vec<Object>,
    common: &CommonMetadata,
    compared: &mut Compared,
) -> Result<Ready, String> {
    let manifests: HashMap<_, _> = objects
        .iter()
        .map(|object| (object.id(), Value::Object(object.value().clone())))
        .collect();
    loop {
        let error = match engine.prepare(owner, objects.clone(), common).await {
            Ok(prepared) => {
                let is_confidential = compared.is_confidential;
                return Ok(Ready {
                    prepared: prepared.confidential(|_| is_confidential),
                    manifests,
                });
            }
            Err(error) => error,
        };
        let refused: BTreeSet<ObjectId> = error.errors.iter().map(|error| error.id.clone()).collect();
        let before = objects.len();
        objects.retain(|object| !refused.contains(&object.id()));
        if objects.len() == before {
            return Err(compared.hide_quotes("its objects are not valid", error));
        }
        for error in error.errors {
            let preview = refusal(world, error, &manifests, compared.is_confidential);
            world.plan(&preview);
            compared.add(preview);
        }
    }
}

/// Asks about everything.
pub(crate) async fn preview(
    world: &mut World,
    engine: &Engine,
    ready: &Ready,
    (force, means): (bool, Means<'_>),
    compared: &mut Compared,
) {
    for mut preview in engine.preview(&ready.prepared, force, means).await {
        if let Err(error) = preview.expected {
            preview.expected = foreseen(world, error, &ready.manifests).map_err(|error| *error);
        }
        world.plan(&preview);
        compared.add(preview);
    }
}

fn refusal(
    world: &World,
    error: ObjectError,
    manifests: &HashMap<ObjectId, Value>,
    is_confidential: bool,
) -> Preview {
    let manifest = manifests.get(&error.id);
    let api_version = manifest.and_then(|manifest| manifest.get("apiVersion")?.as_str());
    Preview {
        id: error.id.clone(),
        gvk: manifest::GroupVersionKind::new(api_version.unwrap_or_default(), &error.id.kind),
        origin: error.origin.clone(),
        is_confidential,
        expected: foreseen(world, error, manifests).map_err(|error| *error),
    }
}

/// Accepts an object whose missing parts are created by this same change: it would be created.
fn foreseen(
    world: &World,
    error: ObjectError,
    manifests: &HashMap<ObjectId, Value>,
) -> Result<Expected, Box<ObjectError>> {
    let is_missing = matches!(error.class, Class::NotFound | Class::NotServed)
        && matches!(error.step, Step::Prepare | Step::DryRun);
    match manifests.get(&error.id) {
        Some(manifest) if is_missing && world.brings_what_it_needs(&error.id) => {
            Ok(Expected::Created(manifest.clone()))
        }
        _ => Err(Box::new(error)),
    }
}

/// Objects that were applied and are not any more.
pub(crate) fn stale(compared: &Compared, old: &Inventory, closed: &[Closed]) -> Vec<(ObjectId, String)> {
    let new: Inventory = compared
        .built
        .iter()
        .map(|id| (id.clone(), String::new()))
        .collect();
    let mut stale = kube_apply::inventory::diff(old, &new);
    // What is made of an encrypted file may be there under another hash of its content.
    stale.retain(|(id, _)| !closed.iter().any(|other| is_same_but_hash(id, &other.id)));
    stale
}

fn is_same_but_hash(id: &ObjectId, other: &ObjectId) -> bool {
    let base = |name: &str| name.rsplit_once('-').map(|(base, _)| base.to_owned());
    let is_same_kind = id.kind == other.kind && id.group == other.group && id.namespace == other.namespace;
    is_same_kind
        && (id.name == other.name || (base(&id.name).is_some() && base(&id.name) == base(&other.name)))
}

/// Notes that an object would be deleted; what it applied itself is looked at later.
pub(crate) async fn prune(world: &mut World, id: ObjectId, compared: &mut Compared) {
    let entry = Entry::new(id.to_string(), Action::Pruned, "");
    if is_deliverer(&id)
        && let Ok(Some(live)) = world.reader.get(&id).await
    {
        compared.gone.push(live);
    }
    world.plan_gone(&id);
    compared.section.objects.push(entry);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_of_content_does_not_tell_objects_apart() {
        let id = |name: &str| ObjectId {
            group: String::new(),
            kind: "Secret".to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        };
        assert!(is_same_but_hash(&id("keys-2m5k8f7b9c"), &id("keys-9t4f6d2k5h")));
        assert!(is_same_but_hash(&id("keys"), &id("keys")));
        assert!(!is_same_but_hash(&id("keys"), &id("other")));
        assert!(!is_same_but_hash(&id("keys-2m5k8f7b9c"), &id("other-2m5k8f7b9c")));
    }
}
