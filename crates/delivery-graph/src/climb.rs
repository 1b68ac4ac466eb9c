//! The way up from an object: who owns it, what applied it, what that was made of, and so on to where no one did.

use std::collections::BTreeSet;

use futures::future::{BoxFuture, FutureExt as _};
use kube_health::verdict::{self, Status};
use manifest::ObjectId;
use serde_json::Value;

use crate::object::{self, list, text};
use crate::walk::{self, Finding, Lookup, State};
use crate::{Objects, kind, one_line};

pub use crate::origin::{APPLIED_BY, MADE_OF, OWNED_BY};

/// The object that applied another, as far as its labels tell.
#[derive(Debug, PartialEq, Eq)]
enum Above {
    /// Kind, name and version of what owns it.
    Owner(OwnerReference),
    /// A Kustomization or HelmRelease.
    Deliverer(ObjectId),
    Nobody,
}

#[derive(Debug, PartialEq, Eq)]
struct OwnerReference {
    api_version: String,
    kind: String,
    name: String,
}

/// Longer ways are circles.
const HIGHEST: usize = 24;

/// Climbs from an object that was read.
pub async fn climb(objects: &dyn Objects, object: &Value) -> Finding {
    let mut seen = BTreeSet::new();
    step(objects, "object", object, &mut seen).await
}

/// Climbs from an object that cannot be read, by the inventory that has it. None if none does, or none that may be read.
pub async fn climb_by_inventory(objects: &dyn Objects, id: &ObjectId) -> Option<Finding> {
    let deliverer = objects.in_an_inventory(id).await?;
    let mut seen = BTreeSet::from([id.clone()]);
    let mut found = unreadable(id, "object", "it is not read here; an inventory has it");
    found
        .because
        .push(step(objects, APPLIED_BY, &deliverer, &mut seen).await);
    Some(found)
}

fn step<'a>(
    objects: &'a dyn Objects,
    role: &'static str,
    object: &'a Value,
    seen: &'a mut BTreeSet<ObjectId>,
) -> BoxFuture<'a, Finding> {
    async move {
        let id = object::id(object);
        let mut found = about(role, &id, object);
        if !seen.insert(id.clone()) || seen.len() > HIGHEST {
            return found;
        }
        found.because.extend(made_of(objects, object, seen).await);
        match above(object) {
            Above::Owner(owner) => {
                found.because.push(owned_by(objects, &id, &owner, seen).await);
            }
            Above::Deliverer(deliverer) if deliverer == id => {}
            Above::Deliverer(deliverer) => {
                let by = applied_by(objects, &id, &deliverer, seen).await;
                found.because.push(by);
            }
            // Objects without labels may have been made by hooks of an older Flux, or have lost them.
            Above::Nobody => {
                if let Some(deliverer) = objects.in_an_inventory(&id).await {
                    found
                        .because
                        .push(step(objects, APPLIED_BY, &deliverer, seen).await);
                }
            }
        }
        found
    }
    .boxed()
}

async fn owned_by(
    objects: &dyn Objects,
    of: &ObjectId,
    owner: &OwnerReference,
    seen: &mut BTreeSet<ObjectId>,
) -> Finding {
    let (group, version) = owner
        .api_version
        .split_once('/')
        .unwrap_or(("", &owner.api_version));
    let id = ObjectId {
        group: group.to_owned(),
        kind: owner.kind.clone(),
        namespace: of.namespace.clone(),
        name: owner.name.clone(),
    };
    match objects.any(&id, version).await {
        Lookup::Found(object) => step(objects, OWNED_BY, &object, seen).await,
        Lookup::Absent => absent(&id, OWNED_BY),
        Lookup::Refused(why) => unreadable(&id, OWNED_BY, &why),
    }
}

async fn applied_by(
    objects: &dyn Objects,
    of: &ObjectId,
    deliverer: &ObjectId,
    seen: &mut BTreeSet<ObjectId>,
) -> Finding {
    match objects.of_flux(deliverer).await {
        Lookup::Found(object) => {
            let mut found = step(objects, APPLIED_BY, &object, seen).await;
            let knows_inventory = object.pointer("/status/inventory").is_some();
            if knows_inventory && !object::has_applied(&object, of) {
                let note = "its labels say so, and the inventory does not have it: it was copied, or is not applied any more";
                found.message = match found.message.is_empty() {
                    true => note.to_owned(),
                    false => format!("{note}; {}", found.message),
                };
            }
            found
        }
        Lookup::Absent => absent(deliverer, APPLIED_BY),
        Lookup::Refused(why) => unreadable(deliverer, APPLIED_BY, &why),
    }
}

/// Walks from an object of Flux down to its source.
fn made_of<'a>(
    objects: &'a dyn Objects,
    object: &'a Value,
    seen: &'a mut BTreeSet<ObjectId>,
) -> BoxFuture<'a, Vec<Finding>> {
    async move {
        let mut sources = Vec::new();
        if kind::kind_of(&object::id(object)).is_none() {
            return sources;
        }
        let links = object::links(object).into_iter();
        for link in links.filter(|link| matches!(link.word, "source" | "chart" | "included")) {
            let source = match objects.of_flux(&link.id).await {
                Lookup::Found(source) if seen.insert(link.id.clone()) => {
                    let mut found = about(MADE_OF, &link.id, &source);
                    found.because = made_of(objects, &source, seen).await;
                    found
                }
                Lookup::Found(source) => about(MADE_OF, &link.id, &source),
                Lookup::Absent => absent(&link.id, MADE_OF),
                Lookup::Refused(why) => unreadable(&link.id, MADE_OF, &why),
            };
            sources.push(source);
        }
        sources
    }
    .boxed()
}

fn absent(id: &ObjectId, role: &'static str) -> Finding {
    Finding {
        message: "does not exist".to_owned(),
        ..walk::finding(id.to_string(), role, State::Absent)
    }
}

fn unreadable(id: &ObjectId, role: &'static str, why: &str) -> Finding {
    Finding {
        message: why.to_owned(),
        ..walk::finding(id.to_string(), role, State::Unreadable)
    }
}

/// How an object is: as its conditions say if it is of Flux, else as kstatus says.
pub fn about(role: &'static str, id: &ObjectId, object: &Value) -> Finding {
    if kind::kind_of(id).is_some() {
        return Finding {
            path: text(object, "/spec/path").to_owned(),
            ..walk::about(role, id, object)
        };
    }
    let verdict = verdict::compute(object);
    let (state, reason) = match verdict.status {
        Status::Current => (State::Ready, ""),
        Status::InProgress => (State::NotReady, "InProgress"),
        Status::Failed => (State::NotReady, "Failed"),
        Status::Terminating => (State::NotReady, "Terminating"),
        Status::NotFound => (State::Absent, ""),
        Status::Unknown => (State::NotReady, "Unknown"),
    };
    let message = match state {
        State::Ready => String::new(),
        _ => one_line(&verdict.message),
    };
    Finding {
        reason: reason.to_owned(),
        message,
        ..walk::finding(id.to_string(), role, state)
    }
}

/// Reads who is above an object: who owns it if anybody does, since labels are copied to what is owned.
fn above(object: &Value) -> Above {
    let owners = list(object, "/metadata/ownerReferences");
    let controller = owners.iter().find(|owner| owner["controller"] == true);
    if let Some(owner) = controller.or(owners.first()) {
        return Above::Owner(OwnerReference {
            api_version: text(owner, "/apiVersion").to_owned(),
            kind: text(owner, "/kind").to_owned(),
            name: text(owner, "/name").to_owned(),
        });
    }
    let labels = object.pointer("/metadata/labels");
    let label = |group: &str, name: &str| {
        let found = labels.and_then(|labels| labels.get(format!("{group}/{name}"))?.as_str());
        found.map(str::to_owned)
    };
    // What a release made may be labelled by the Kustomization too that the chart's values came from.
    for (group, kind) in [
        (api::meta::HELM_GROUP, "HelmRelease"),
        (api::meta::KUSTOMIZE_GROUP, "Kustomization"),
    ] {
        if let (Some(name), Some(namespace)) = (label(group, "name"), label(group, "namespace"))
            && let Some(kind) = kind::exact(kind)
        {
            return Above::Deliverer(kind.id(&namespace, &name));
        }
    }
    Above::Nobody
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn owners_come_before_labels_and_releases_before_kustomizations() {
        let labels = json!({
            "kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"});
        let pod = json!({"metadata": {"labels": labels, "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n"},
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "controller": true}]}});
        let owner = OwnerReference {
            api_version: "apps/v1".to_owned(),
            kind: "ReplicaSet".to_owned(),
            name: "web-1".to_owned(),
        };
        assert_eq!(above(&pod), Above::Owner(owner));
        let deliverer = |object: &Value| match above(object) {
            Above::Deliverer(id) => id.to_string(),
            other => format!("{other:?}"),
        };
        let mut object = json!({"metadata": {"labels": labels}});
        assert_eq!(deliverer(&object), "Kustomization/flux-system/apps");
        for name in ["name", "namespace"] {
            object["metadata"]["labels"][format!("helm.toolkit.fluxcd.io/{name}")] = "web".into();
        }
        assert_eq!(deliverer(&object), "HelmRelease/web/web");
        assert_eq!(above(&json!({"metadata": {}})), Above::Nobody);
    }
}
