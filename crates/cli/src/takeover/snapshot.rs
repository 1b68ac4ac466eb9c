//! Which objects there are, by UID and generation: those of Flux's kinds, what these have delivered, and the revisions of Helm
//! releases.

use std::collections::{BTreeMap, HashMap};

use delivery_graph::kind;
use delivery_graph::object::{self, text};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, PartialObjectMeta};
use kube::{Api, Client, ResourceExt as _};
use kube_apply::mapper::RestMapper;
use manifest::{GroupVersionKind, ObjectId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cluster::{Cluster, Failure};
use crate::platform::Platform;

/// An object of Flux's kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Declared {
    pub(crate) uid: String,
    pub(crate) generation: i64,
    pub(crate) ready: bool,
    /// No one looks at it.
    pub(crate) suspended: bool,
}

/// An object that was delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Delivered {
    pub(crate) uid: String,
    pub(crate) generation: i64,
}

/// All of them. Keys are ids as inventories have them, and NAMESPACE/NAME of releases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) objects: BTreeMap<String, Declared>,
    pub(crate) inventory: BTreeMap<String, Delivered>,
    pub(crate) releases: BTreeMap<String, i64>,
    /// How many deliver to other clusters, which are not looked at.
    pub(crate) elsewhere: usize,
}

/// Kinds that are read at the same time.
const AT_ONCE: usize = 4;
/// Objects of a page.
const PAGE: u32 = 500;

impl Snapshot {
    pub(crate) async fn take(cluster: &Cluster, platform: &Platform) -> Result<Self, Failure> {
        let mut all = Vec::new();
        for kind in &kind::ALL {
            all.extend(cluster.list(kind, None, None).await?.unwrap_or_default());
        }
        let objects = all
            .iter()
            .map(|object| (object::id(object).inventory_id(), declared(object)));
        let delivered = entries(&all);
        let mapper = platform.engine.mapper();
        let reads = delivered
            .into_iter()
            .map(|(gvk, ids)| of_kind(&platform.client, mapper, gvk, ids));
        let found: Vec<BTreeMap<String, Delivered>> =
            stream::iter(reads).buffered(AT_ONCE).try_collect().await?;
        Ok(Self {
            objects: objects.collect(),
            inventory: found.into_iter().flatten().collect(),
            releases: releases(&platform.client, &all).await?,
            elsewhere: all.iter().filter(|object| is_elsewhere(object)).count(),
        })
    }
}

fn declared(object: &Value) -> Declared {
    Declared {
        uid: text(object, "/metadata/uid").to_owned(),
        generation: generation(object),
        ready: object::is_ready(object),
        suspended: object::is_suspended(object),
    }
}

fn generation(object: &Value) -> i64 {
    let generation = object.pointer("/metadata/generation");
    generation.and_then(Value::as_i64).unwrap_or_default()
}

fn is_elsewhere(object: &Value) -> bool {
    object.pointer("/spec/kubeConfig").is_some()
}

/// Objects that an object has delivered to this cluster: ids and versions.
pub(crate) fn inventory(object: &Value) -> Vec<(ObjectId, String)> {
    if is_elsewhere(object) {
        return Vec::new();
    }
    let entries = object::list(object, "/status/inventory/entries").iter();
    let read = entries.filter_map(|entry| {
        let id = ObjectId::parse_inventory_id(text(entry, "/id")).ok()?;
        Some((id, text(entry, "/v").to_owned()))
    });
    read.collect()
}

fn entries(objects: &[Value]) -> HashMap<GroupVersionKind, Vec<ObjectId>> {
    let mut found: HashMap<GroupVersionKind, Vec<ObjectId>> = HashMap::new();
    for (id, version) in objects.iter().flat_map(inventory) {
        let gvk = GroupVersionKind {
            group: id.group.clone(),
            version,
            kind: id.kind.clone(),
        };
        found.entry(gvk).or_default().push(id);
    }
    found
}

/// Those of a kind that are there. One list costs less than a question for each, and only metadata is asked for.
async fn of_kind(
    client: &Client,
    mapper: &RestMapper,
    gvk: GroupVersionKind,
    ids: Vec<ObjectId>,
) -> Result<BTreeMap<String, Delivered>, Failure> {
    let failed = |why: String| Failure::Request {
        what: format!("look at the objects of kind {}", gvk.kind),
        why,
    };
    let resource = mapper.resolve_any_version(&gvk).await;
    let Some(resource) = resource.map_err(|error| failed(error.to_string()))? else {
        return Ok(BTreeMap::new());
    };
    let wanted: std::collections::HashSet<(&str, &str)> = ids
        .iter()
        .map(|id| (id.namespace.as_str(), id.name.as_str()))
        .collect();
    let api: Api<kube::api::DynamicObject> = Api::all_with(client.clone(), &resource.api);
    let mut found = BTreeMap::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let listed = api.list_metadata(&page).await;
        let listed =
            listed.map_err(|error| Failure::request(format!("list {}", resource.api.plural), error))?;
        for object in &listed.items {
            let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
            if wanted.contains(&(namespace.as_str(), name.as_str())) {
                let id = ObjectId {
                    group: gvk.group.clone(),
                    kind: gvk.kind.clone(),
                    namespace,
                    name,
                };
                found.insert(id.inventory_id(), delivered(object));
            }
        }
        match listed.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(found),
        }
    }
}

fn delivered<K>(object: &PartialObjectMeta<K>) -> Delivered {
    Delivered {
        uid: object.metadata.uid.clone().unwrap_or_default(),
        generation: object.metadata.generation.unwrap_or_default(),
    }
}

/// The newest revisions of the releases that HelmReleases have made in this cluster, by the labels of Helm's records.
async fn releases(client: &Client, objects: &[Value]) -> Result<BTreeMap<String, i64>, Failure> {
    let of_helm = |object: &&Value| text(object, "/kind") == "HelmRelease" && !is_elsewhere(object);
    let named: Vec<(&str, &str)> = objects
        .iter()
        .filter(of_helm)
        .map(|object| {
            (
                text(object, "/status/storageNamespace"),
                text(object, "/status/history/0/name"),
            )
        })
        .filter(|(_, name)| !name.is_empty())
        .collect();
    if named.is_empty() {
        return Ok(BTreeMap::new());
    }
    let secrets: Api<Secret> = Api::all(client.clone());
    let selected = ListParams::default().labels("owner=helm");
    let listed = secrets.list_metadata(&selected).await;
    let listed = listed.map_err(|error| Failure::request("list the records of helm", error))?;
    let mut found = BTreeMap::new();
    for record in &listed.items {
        let label = |key: &str| record.labels().get(key).map(String::as_str).unwrap_or_default();
        let namespace = record.namespace().unwrap_or_default();
        let (name, version) = (label("name"), label("version").parse().unwrap_or(0_i64));
        if named.contains(&(namespace.as_str(), name)) {
            let newest: &mut i64 = found.entry(format!("{namespace}/{name}")).or_default();
            *newest = version.max(*newest);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_delivered_to_other_clusters_is_not_looked_at() {
        let status = json!({"inventory": {"entries": [{"id": "n_a_apps_Deployment", "v": "v1"}, {"id": "x", "v": "v1"}]}});
        let here = json!({"kind": "Kustomization", "status": status});
        let there = json!({"kind": "Kustomization", "spec": {"kubeConfig": {}}, "status": status});
        assert_eq!(inventory(&here).len(), 1);
        assert_eq!(inventory(&there), []);
        let all = entries(&[here, there]);
        assert_eq!(all[&GroupVersionKind::new("apps/v1", "Deployment")].len(), 1);
    }
}
