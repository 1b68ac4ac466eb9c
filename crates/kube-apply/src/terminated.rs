//! Waits until deleted objects are gone, by watching metadata.
//!
//! One watch per kind and namespace, whatever the number of objects: pruned objects wear the owner label.

use std::collections::{BTreeMap, HashSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, future};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use manifest::{GroupVersionKind, ObjectId};

use crate::Engine;
use crate::failure::{Class, Failure};
use crate::fingerprint::Glimpse;
use crate::mapper::Resource;
use crate::request::Address;

impl Engine {
    /// Waits until none of the objects exists. Returns those that are still there when time is up, or whose kind could
    /// not be resolved.
    pub async fn wait_terminated(
        &self,
        ids: &[(ObjectId, String)],
        timeout: Duration,
    ) -> Result<(), Vec<ObjectId>> {
        let mut groups = BTreeMap::new();
        let mut left = Vec::new();
        for (id, version) in ids {
            let gvk = GroupVersionKind {
                group: id.group.clone(),
                version: version.clone(),
                kind: id.kind.clone(),
            };
            match self.mapper().resolve_any_version(&gvk).await {
                Ok(None) => {} // no kind, no object
                Ok(Some(resource)) => {
                    let key = (id.group.clone(), id.kind.clone(), id.namespace.clone());
                    groups
                        .entry(key)
                        .or_insert_with(|| (resource, HashSet::new()))
                        .1
                        .insert(id.clone());
                }
                Err(_) => left.push(id.clone()),
            }
        }
        let client = self.requests().client();
        let label = self.settings().name_label();
        let waits = groups
            .into_values()
            .map(|(resource, ids)| wait_for_kind(client, resource, ids, &label, timeout));
        left.extend(future::join_all(waits).await.into_iter().flatten());
        if left.is_empty() { Ok(()) } else { Err(left) }
    }
}

/// Waits for objects of one kind in one namespace; returns those that are left.
async fn wait_for_kind(
    client: &Client,
    resource: Arc<Resource>,
    ids: HashSet<ObjectId>,
    label: &str,
    timeout: Duration,
) -> Vec<ObjectId> {
    let Some(namespace) = ids.iter().next().map(|id| id.namespace.clone()) else {
        return Vec::new();
    };
    let names = ids.iter().map(|id| id.name.clone()).collect();
    let config = match ids.iter().next() {
        Some(only) if ids.len() == 1 => {
            watcher::Config::default().fields(&format!("metadata.name={}", only.name))
        }
        _ => watcher::Config::default().labels(label),
    };
    let left = wait_for_names(api(client, &resource, &namespace), config, names, timeout).await;
    ids.into_iter().filter(|id| left.contains(&id.name)).collect()
}

/// Waits until one object is gone.
pub(crate) async fn wait_for_one(client: &Client, at: &Address, timeout: Duration) -> Result<(), Failure> {
    let config = watcher::Config::default().fields(&format!("metadata.name={}", at.name));
    let api = api(client, &at.resource, &at.namespace);
    if wait_for_names(api, config, HashSet::from([at.name.clone()]), timeout)
        .await
        .is_empty()
    {
        Ok(())
    } else {
        let message = format!(
            "it is still there {} s after it was deleted; a finalizer may hold it",
            timeout.as_secs()
        );
        Err(Failure::new(Class::Transient, message))
    }
}

fn api(client: &Client, resource: &Resource, namespace: &str) -> Api<Glimpse> {
    if resource.namespaced {
        Api::namespaced_with(client.clone(), namespace, &resource.api)
    } else {
        Api::all_with(client.clone(), &resource.api)
    }
}

/// Pause after a watch that failed.
const RETRY: Duration = Duration::from_millis(500);

async fn wait_for_names(
    api: Api<Glimpse>,
    config: watcher::Config,
    names: HashSet<String>,
    timeout: Duration,
) -> HashSet<String> {
    let mut left = names;
    let watch = async {
        let mut events = pin!(watcher::watcher(api, config));
        let mut listed = HashSet::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(seen)) => drop(listed.insert(seen.name().to_owned())),
                Ok(Event::InitDone) => left.retain(|name| listed.contains(name)),
                Ok(Event::Delete(seen)) => drop(left.remove(seen.name())),
                Ok(Event::Apply(_)) => {}
                Err(error) => {
                    tracing::debug!(%error, "watching objects that are being deleted");
                    tokio::time::sleep(RETRY).await;
                }
            }
            if left.is_empty() {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(timeout, watch).await;
    left
}
