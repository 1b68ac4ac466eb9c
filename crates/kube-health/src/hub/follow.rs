//! The task behind a shared watch: follows the stream and reduces each object to what a wait needs to know.
//!
//! Gone versions, lost connections and kinds that are not served yet are retried with backoff; a refusal ends the
//! watch, and so does having had no subscribers for a while.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::TryStreamExt;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{ApiResource, DynamicObject, Selector, TypeMeta};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use serde_json::Value;

use super::Inner;
use super::watch::{ObjectKey, SharedWatch};
use crate::compute::BuiltIn;
use crate::custom::Custom;
use crate::kinds;
use crate::resolve::{Resolve, Resolved};
use crate::text::one_line;
use crate::verdict::{Rule, Status};
use crate::wait::Seen;

/// Wait between attempts to resolve a kind: doubled from the first to the second.
const RESOLVE_BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));
/// Characters of an error that are kept.
const TROUBLE_LIMIT: usize = 300;

/// Follows a watch until no one has needed it for `linger`, or the API server refuses it.
pub(super) async fn run(
    watch: Arc<SharedWatch>,
    hub: Weak<Inner>,
    client: Client,
    resolver: Arc<dyn Resolve>,
    linger: Duration,
) {
    let end = End { watch: &watch, hub };
    let mut following = pin!(follow(&watch, client, resolver.as_ref()));
    loop {
        tokio::select! {
            why = &mut following => return end.refused(why),
            () = watch.unused_for(linger) => {
                if end.hub.upgrade().is_none_or(|hub| hub.close_if_unused(&watch)) {
                    return;
                }
            }
        }
    }
}

/// However the task ends, by panic too: no one finds the watch any more, and no one goes on waiting for it.
struct End<'a> {
    watch: &'a Arc<SharedWatch>,
    hub: Weak<Inner>,
}

impl End<'_> {
    fn refused(&self, why: String) {
        // Out of the hub first: whoever wakes up and waits again gets a new watch.
        if let Some(hub) = self.hub.upgrade() {
            hub.close(self.watch);
        }
        self.watch.refuse(why);
    }
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.refused("the watch has ended".to_owned());
    }
}

/// Follows a watch for ever; returns why it never can.
async fn follow(watch: &SharedWatch, client: Client, resolver: &dyn Resolve) -> String {
    let key = watch.key();
    let Resolved { resource, namespaced } = resolve(watch, resolver).await;
    if !namespaced {
        watch.set_cluster_scope();
    }
    let api: Api<DynamicObject> = match (namespaced, key.namespace.as_str()) {
        (true, "") if !key.name.is_empty() => {
            return "its kind is namespaced, but no namespace is given".to_owned();
        }
        (true, "") | (false, _) => Api::all_with(client, &resource),
        (true, namespace) => Api::namespaced_with(client, namespace, &resource),
    };
    let mut events = pin!(watcher(api, key.config()).default_backoff());
    let mut relisted = HashMap::new();
    loop {
        match events.try_next().await {
            Ok(Some(event)) => take(watch, &resource, event, &mut relisted),
            Ok(None) => return "the watch has ended".to_owned(),
            Err(error) => {
                if let Some(why) = refusal(&error) {
                    return format!("cannot list and watch {}: {why}", described(&resource));
                }
                watch.set_trouble(one_line(&error.to_string(), TROUBLE_LIMIT));
            }
        }
    }
}

async fn resolve(watch: &SharedWatch, resolver: &dyn Resolve) -> Resolved {
    let (mut delay, limit) = RESOLVE_BACKOFF;
    loop {
        match resolver.resolve(&watch.key().gvk).await {
            Ok(resolved) => return resolved,
            Err(error) => watch.set_trouble(one_line(&error_chain::chain(error.as_ref()), TROUBLE_LIMIT)),
        }
        tokio::time::sleep(delay).await;
        delay = limit.min(delay * 2);
    }
}

/// Forbidden, or not a thing that can be watched: no retry within a wait changes that.
fn refusal(error: &watcher::Error) -> Option<String> {
    let (watcher::Error::InitialListFailed(kube::Error::Api(status))
    | watcher::Error::WatchStartFailed(kube::Error::Api(status))
    | watcher::Error::WatchFailed(kube::Error::Api(status))
    | watcher::Error::WatchError(status)) = error
    else {
        return None;
    };
    matches!(status.code, 403 | 405).then(|| one_line(&status.message, TROUBLE_LIMIT))
}

/// `deployments.apps`, as RBAC and kubectl name it.
fn described(resource: &ApiResource) -> String {
    if resource.group.is_empty() {
        resource.plural.clone()
    } else {
        format!("{}.{}", resource.plural, resource.group)
    }
}

fn take(
    watch: &SharedWatch,
    resource: &ApiResource,
    event: watcher::Event<DynamicObject>,
    relisted: &mut HashMap<ObjectKey, Arc<Seen>>,
) {
    let rule = watch.key().rule.as_deref();
    match event {
        watcher::Event::Init => {
            relisted.clear();
            watch.list_begins();
        }
        watcher::Event::InitApply(object) => {
            let (key, seen) = reduce(object, resource, rule);
            relisted.insert(key, Arc::new(seen));
        }
        watcher::Event::InitDone => watch.listed(std::mem::take(relisted)),
        watcher::Event::Apply(object) => {
            let (key, seen) = reduce(object, resource, rule);
            watch.changed(key, Arc::new(seen), true);
        }
        watcher::Event::Delete(object) => {
            let (key, seen) = reduce(object, resource, rule);
            watch.changed(key, Arc::new(seen), false);
        }
    }
}

/// Keeps of an object what a wait needs.
fn reduce(mut object: DynamicObject, resource: &ApiResource, rule: Option<&Custom>) -> (ObjectKey, Seen) {
    object.metadata.managed_fields = None;
    // Objects of a list come without their types.
    object.types = Some(TypeMeta {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
    });
    let metadata = &mut object.metadata;
    let key = ObjectKey {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
    };
    let version = metadata
        .resource_version
        .as_deref()
        .and_then(|version| version.parse().ok());
    let (generation, uid) = (metadata.generation, metadata.uid.clone());
    let value = serde_json::to_value(object).unwrap_or_default();
    let now = Timestamp::now();
    let verdict = rule.map_or_else(|| BuiltIn.verdict(&value, now), |rule| rule.verdict(&value, now));
    let pods = pods_of(resource, &value).filter(|_| rule.is_none() && verdict.status == Status::InProgress);
    // A Pod that finds no node may yet find one: a cluster autoscaler takes longer than kstatus's window.
    let is_pod = resource.group.is_empty() && resource.kind == "Pod";
    let fails_owner =
        is_pod && verdict.status == Status::Failed && kinds::pod::unschedulable(&value).is_none();
    (
        key,
        Seen {
            verdict,
            generation,
            uid,
            version,
            pods,
            fails_owner,
        },
    )
}

/// StatefulSets and ReplicaSets never say that they have failed; kstatus looks at their Pods.
fn pods_of(resource: &ApiResource, object: &Value) -> Option<String> {
    if resource.group != "apps" || !matches!(resource.kind.as_str(), "StatefulSet" | "ReplicaSet") {
        return None;
    }
    let selector: LabelSelector = serde_json::from_value(object.pointer("/spec/selector")?.clone()).ok()?;
    let selector = Selector::try_from(selector).ok()?.to_string();
    (!selector.is_empty()).then_some(selector)
}
