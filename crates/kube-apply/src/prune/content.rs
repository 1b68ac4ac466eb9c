//! Finds what a namespace or a custom resource definition still contains that its owner did not apply, before
//! it is pruned.
//!
//! Lists metadata, page by page, as the account that prunes. What that account may not list cannot be seen and does not
//! hold up a delete; saying that something is there would tell a tenant more than RBAC does.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use kube::core::ApiResource;
use manifest::ObjectId;

use crate::Engine;
use crate::failure::{Class, Failure};
use crate::inventory::Inventory;
use crate::mapper::Resource;
use crate::page::{Listed, PageItem};
use crate::prune::guard::{count, is_namespace, list};
use crate::settings::Owner;

/// Owners whose objects do not count.
pub(super) struct Ours<'a> {
    pub(super) owner: &'a Owner,
    /// Objects of this owner that are about to be deleted.
    pub(super) pruned: HashSet<&'a ObjectId>,
    /// Objects that this owner still applies. They must stay.
    pub(super) kept: &'a Inventory,
}

/// Content that would be lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    /// Someone else's.
    foreign: Vec<ObjectId>,
    /// The owner's own, that are still in the source.
    kept: Vec<ObjectId>,
    /// There are more than were looked at.
    unfinished: bool,
}

/// Objects that are remembered of one namespace or definition: enough to know that it is not empty.
const REMEMBERED: usize = 100;
/// Pages of one list. What is behind them is taken for foreign.
const PAGES: usize = 40;

impl Content {
    pub(super) fn is_harmless(&self) -> bool {
        self.foreign.is_empty() && self.kept.is_empty() && !self.unfinished
    }

    /// Everything that was found, as the inventory names it.
    pub(super) fn ids(&self) -> impl Iterator<Item = String> {
        self.foreign.iter().chain(&self.kept).map(ObjectId::inventory_id)
    }

    fn is_full(&self) -> bool {
        self.foreign.len() + self.kept.len() >= REMEMBERED
    }

    fn add(&mut self, other: Self) {
        self.foreign.extend(other.foreign);
        self.kept.extend(other.kept);
        self.unfinished |= other.unfinished;
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        for (ids, what) in [
            (&self.kept, "that are still applied"),
            (&self.foreign, "of others"),
        ] {
            if !ids.is_empty() {
                let names = list(ids.iter().map(ToString::to_string));
                parts.push(format!("{} {what}: {names}", count(ids.len())));
            }
        }
        if self.unfinished {
            parts.push("more than could be looked at".to_owned());
        }
        write!(f, "has {}", parts.join("; "))
    }
}

impl Engine {
    /// Looks into a namespace or a definition. `kinds` are read at first use and serve the whole prune.
    pub(super) async fn content(
        &self,
        id: &ObjectId,
        ours: &Ours<'_>,
        kinds: &mut Option<Vec<Arc<Resource>>>,
    ) -> Result<Content, Failure> {
        let kinds = match kinds {
            Some(kinds) => kinds,
            None => {
                let read = self.mapper().listable().await;
                kinds.insert(read.map_err(|error| crate::failure::failure(&error))?)
            }
        };
        if is_namespace(id) {
            self.in_namespace(&id.name, ours, kinds).await
        } else {
            let defined = kinds
                .iter()
                .find(|kind| format!("{}.{}", kind.api.plural, kind.api.group) == id.name);
            match defined {
                Some(kind) => self.of_kind(kind, "", ours).await,
                // Not served, not listable: nothing that could be seen.
                None => Ok(Content::default()),
            }
        }
    }

    async fn in_namespace(
        &self,
        namespace: &str,
        ours: &Ours<'_>,
        kinds: &[Arc<Resource>],
    ) -> Result<Content, Failure> {
        let lists = kinds
            .iter()
            .filter(|kind| kind.namespaced && !is_bookkeeping(&kind.api))
            .map(|kind| self.of_kind(kind, namespace, ours).boxed());
        let lists: Vec<BoxFuture<'_, _>> = lists.collect();
        let mut lists = futures::stream::iter(lists).buffered(self.settings().concurrency.max(1));
        let mut content = Content::default();
        while let Some(found) = lists.next().await {
            content.add(found?);
            if content.is_full() {
                content.unfinished = true;
                break;
            }
        }
        Ok(content)
    }

    /// Looks at all objects of a kind, in one namespace or (empty) in all.
    async fn of_kind(&self, kind: &Resource, namespace: &str, ours: &Ours<'_>) -> Result<Content, Failure> {
        let mut content = Content::default();
        let mut next = String::new();
        for _ in 0..PAGES {
            let page = match self.requests().page(&kind.api, namespace, &next).await {
                Ok(page) => page,
                // Not for our eyes, or gone since.
                Err(failure)
                    if matches!(
                        failure.class,
                        Class::Forbidden | Class::NotFound | Class::NotServed
                    ) =>
                {
                    return Ok(content);
                }
                Err(failure) => return Err(failure),
            };
            for PageItem { metadata } in page.items.unwrap_or_default() {
                let id = metadata.id(&kind.api);
                if ours.kept.contains(&id) {
                    content.kept.push(id);
                } else if !ours.includes(&id, &metadata)
                    && !is_generated(&id, &metadata, !namespace.is_empty())
                {
                    content.foreign.push(id);
                }
            }
            next = page.metadata.next;
            if next.is_empty() {
                return Ok(content);
            }
            if content.is_full() {
                break;
            }
        }
        content.unfinished = true;
        Ok(content)
    }
}

/// Kinds whose controllers label what they made, and delete it when they go.
const OWNERS: [(&str, &str); 2] = [
    ("kustomize.toolkit.fluxcd.io", "Kustomization"),
    ("helm.toolkit.fluxcd.io", "HelmRelease"),
];

impl Ours<'_> {
    /// Returns whether the object goes anyway: with this owner, or with something that this owner deletes.
    fn includes(&self, id: &ObjectId, metadata: &Listed) -> bool {
        if metadata.deletion_timestamp.is_some() || self.pruned.contains(id) || self.is_owner(id) {
            return true;
        }
        let owners = OWNERS
            .iter()
            .filter_map(|(group, kind)| metadata.labelled_owner(group, kind));
        let references = metadata.owner_references.iter().flat_map(|reference| {
            let group = reference
                .api_version
                .rsplit_once('/')
                .map_or("", |(group, _)| group);
            [&*id.namespace, ""].map(|namespace| ObjectId {
                group: group.to_owned(),
                kind: reference.kind.clone(),
                namespace: namespace.to_owned(),
                name: reference.name.clone(),
            })
        });
        owners
            .chain(references)
            .any(|owner| self.is_owner(&owner) || self.pruned.contains(&owner))
    }

    fn is_owner(&self, id: &ObjectId) -> bool {
        let (group, kind) = OWNERS[0];
        id.group == group
            && id.kind == kind
            && id.namespace == self.owner.namespace
            && id.name == self.owner.name
    }
}

/// Kinds that Kubernetes keeps for itself, or that only say what others are.
fn is_bookkeeping(kind: &ApiResource) -> bool {
    matches!(
        (&*kind.group, &*kind.kind),
        ("" | "events.k8s.io", "Event")
            | ("", "Endpoints")
            | ("discovery.k8s.io", "EndpointSlice")
            | ("coordination.k8s.io", "Lease")
            | ("apps", "ControllerRevision")
    )
}

/// ConfigMaps that are put into every namespace.
const DISTRIBUTED: [&str; 3] = [
    "kube-root-ca.crt",
    "openshift-service-ca.crt",
    "istio-ca-root-cert",
];

/// Returns whether no one made the object by hand. What has an owner is not counted beside its owner in a namespace; with a
/// definition, its owner stays, and would miss it.
fn is_generated(id: &ObjectId, metadata: &Listed, in_namespace: bool) -> bool {
    let is_core = |kind: &str| id.group.is_empty() && id.kind == kind;
    (in_namespace && !metadata.owner_references.is_empty())
        || (is_core("ConfigMap") && DISTRIBUTED.contains(&&*id.name))
        || (is_core("ServiceAccount") && id.name == "default")
        // A token goes with its account.
        || (is_core("Secret") && metadata.annotations.contains_key("kubernetes.io/service-account.name"))
        // Helm's record of a release, whose objects count themselves.
        || ((is_core("Secret") || is_core("ConfigMap")) && metadata.label("owner") == Some("helm"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn id(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectId {
        ObjectId {
            group: group.into(),
            kind: kind.into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Returns whether an object of the namespace `team` would be missed.
    fn missed(kind: (&str, &str), name: &str, metadata: Value, in_namespace: bool) -> bool {
        let owner = Owner {
            namespace: "flux-system".into(),
            name: "apps".into(),
        };
        let pruned = [
            id("", "ConfigMap", "team", "pruned"),
            id("helm.toolkit.fluxcd.io", "HelmRelease", "team", "web"),
            id("example.com", "Database", "team", "main"),
        ];
        let ours = Ours {
            owner: &owner,
            pruned: pruned.iter().collect(),
            kept: &Inventory::default(),
        };
        let metadata: Listed = serde_json::from_value(metadata).unwrap();
        let id = id(kind.0, kind.1, "team", name);
        !ours.includes(&id, &metadata) && !is_generated(&id, &metadata, in_namespace)
    }

    #[test]
    fn what_somebody_else_made_is_missed() {
        let map = ("", "ConfigMap");
        assert!(missed(map, "theirs", json!({}), true));
        let labels = |owner: &str| {
            json!({"labels": {"kustomize.toolkit.fluxcd.io/name": owner,
                "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}})
        };
        assert!(missed(map, "theirs", labels("other"), true));
        assert!(!missed(map, "leftover", labels("apps"), true));
        assert!(!missed(map, "pruned", json!({}), true));
        assert!(!missed(
            map,
            "going",
            json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            true
        ));
        let owner = ("kustomize.toolkit.fluxcd.io", "Kustomization");
        assert!(missed(owner, "apps", json!({}), true), "of another namespace");
    }

    #[test]
    fn what_goes_with_something_that_is_pruned_is_not_missed() {
        let of_release = |name: &str| json!({"labels": {"helm.toolkit.fluxcd.io/name": name, "helm.toolkit.fluxcd.io/namespace": "team"}});
        assert!(!missed(("apps", "Deployment"), "web", of_release("web"), true));
        assert!(missed(("apps", "Deployment"), "web", of_release("other"), true));
        let of = |kind: &str| json!({"ownerReferences": [{"apiVersion": "example.com/v1", "kind": kind, "name": "main"}]});
        let backup = ("example.com", "Backup");
        assert!(!missed(backup, "b", of("Database"), false));
        assert!(
            missed(backup, "b", of("Other"), false),
            "its owner stays and would miss it"
        );
        assert!(!missed(backup, "b", of("Other"), true), "its owner is counted");
    }

    #[test]
    fn a_list_of_nothing_may_be_null() {
        let page: crate::page::Page = serde_json::from_value(json!({"metadata": {}, "items": null})).unwrap();
        assert!(page.items.is_none() && page.metadata.next.is_empty());
    }

    #[test]
    fn what_kubernetes_and_helm_put_there_is_not_missed() {
        for (kind, name, metadata) in [
            (("", "ConfigMap"), "kube-root-ca.crt", json!({})),
            (("", "ServiceAccount"), "default", json!({})),
            (
                ("", "Secret"),
                "default-token",
                json!({"annotations": {"kubernetes.io/service-account.name": "default"}}),
            ),
            (
                ("", "Secret"),
                "sh.helm.release.v1.a.v1",
                json!({"labels": {"owner": "helm"}}),
            ),
            (
                ("", "Pod"),
                "web-1",
                json!({"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}]}),
            ),
        ] {
            assert!(!missed(kind, name, metadata, true), "{name}");
        }
        assert!(missed(("", "PersistentVolumeClaim"), "data-0", json!({}), true));
    }
}
