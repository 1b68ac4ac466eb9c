//! From watches to queues: what the API server tells, kept in a store, and the keys that it concerns.
//!
//! In: an `Api` and what to look at. Out: a store that is always up to date, and a stream of the objects that
//! changed in a way that matters. What our own status patches change does not matter, so they trigger nothing.
//! The stream has to be polled for the store to fill.
//!
//! A list is decoded as a whole; without care one object that cannot be read (its CRD is more lenient than its type, or
//! someone wrote its status by hand) would hide all others. So each is decoded by itself, and one that cannot be read is
//! logged and left out.

mod cache;
mod changes;
mod request;

use std::fmt::Debug;

use futures::future::ready;
use futures::{Stream, StreamExt as _};
use kube::core::{DeserializeGuard, NamespaceResourceScope};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

pub use cache::Cache;
pub use changes::ReconcileTrigger;

use crate::flags::WatchFlags;
use changes::Changes;

pub use request::{requested_at, should_reconcile_now};

/// kubectl keeps the whole manifest here; no one but kubectl reads it.
const LAST_APPLIED_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The objects of a kind in the scope of the flags: all namespaces or the one that this process runs in.
pub fn scoped_api<K>(client: &Client, flags: &WatchFlags) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match flags.namespace() {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// Watches the objects that are to be reconciled: with `--watch-label-selector`, and as Flux's predicates have
/// it, an object comes when it is new, its spec changed, it is being deleted, it is gone, or its annotation
/// `reconcile.fluxcd.io/requestedAt` got a new value.
pub fn watch_into_store<K>(
    api: Api<DeserializeGuard<K>>,
    flags: &WatchFlags,
) -> (Store<K>, impl Stream<Item = ObjectRef<K>> + Send + 'static)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    watch_into_store_noting(api, flags, &[])
}

/// Like [`watch_into_store`]; objects come when one of these annotations changes, too.
pub fn watch_into_store_noting<K>(
    api: Api<DeserializeGuard<K>>,
    flags: &WatchFlags,
    annotations: &'static [&'static str],
) -> (Store<K>, impl Stream<Item = ObjectRef<K>> + Send + 'static)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let config = selecting(&flags.watch_label_selector);
    watch_changes(api, config, move |object: &K| {
        let noted = annotations
            .iter()
            .map(|name| object.annotations().get(*name).cloned());
        Some((ReconcileTrigger::from_object(object), noted.collect::<Vec<_>>()))
    })
}

/// Watches with any idea of what matters: an object comes when `fingerprint` gives another value than before,
/// and when it is new or gone. An object without a fingerprint (None) is kept in the store and never comes.
///
/// For a source that others depend on, for example, the fingerprint is the digest of its artifact.
pub fn watch_changes<K, F>(
    api: Api<DeserializeGuard<K>>,
    config: watcher::Config,
    fingerprint: impl Fn(&K) -> Option<F> + Send + 'static,
) -> (Store<K>, impl Stream<Item = ObjectRef<K>> + Send + 'static)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    F: PartialEq + Send + 'static,
{
    watch_lightened(api, config, |_| {}, fingerprint)
}

fn watch_lightened<K, F>(
    api: Api<DeserializeGuard<K>>,
    config: watcher::Config,
    lighten: fn(&mut K),
    fingerprint: impl Fn(&K) -> Option<F> + Send + 'static,
) -> (Store<K>, impl Stream<Item = ObjectRef<K>> + Send + 'static)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    F: PartialEq + Send + 'static,
{
    let events = watcher(api, config)
        .default_backoff()
        .filter_map(|event| ready(event.map(readable).transpose()));
    store_and_touched(events.modify(strip).modify(lighten), fingerprint)
}

/// Like [`watch_into_store`], without what `lighten` takes out of each object before it is kept.
pub fn watch_into_store_without<K>(
    api: Api<DeserializeGuard<K>>,
    flags: &WatchFlags,
    lighten: fn(&mut K),
) -> (Store<K>, impl Stream<Item = ObjectRef<K>> + Send + 'static)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let config = selecting(&flags.watch_label_selector);
    watch_lightened(api, config, lighten, |object: &K| {
        Some(ReconcileTrigger::from_object(object))
    })
}

/// Unpacks an event; None if its object cannot be read.
fn readable<K>(event: watcher::Event<DeserializeGuard<K>>) -> Option<watcher::Event<K>>
where
    K: Resource<DynamicType = ()>,
{
    Some(match event {
        watcher::Event::Apply(object) => watcher::Event::Apply(unguarded(object)?),
        watcher::Event::InitApply(object) => watcher::Event::InitApply(unguarded(object)?),
        watcher::Event::Delete(object) => watcher::Event::Delete(unguarded(object)?),
        watcher::Event::Init => watcher::Event::Init,
        watcher::Event::InitDone => watcher::Event::InitDone,
    })
}

fn unguarded<K: Resource<DynamicType = ()>>(object: DeserializeGuard<K>) -> Option<K> {
    let invalid = match object.0 {
        Ok(object) => return Some(object),
        Err(invalid) => invalid,
    };
    let (namespace, name) = (
        invalid.metadata.namespace.unwrap_or_default(),
        invalid.metadata.name.unwrap_or_default(),
    );
    tracing::error!(kind = %K::kind(&()), namespace, name, error = invalid.error, "an object cannot be read and is left out");
    None
}

/// A watch of the objects that a label selector selects; all if it is empty.
pub fn selecting(label_selector: &str) -> watcher::Config {
    if label_selector.is_empty() {
        watcher::Config::default()
    } else {
        watcher::Config::default().labels(label_selector)
    }
}

/// Drops what is not read and takes half the memory of a store (kube-rs/kube#1210).
pub fn strip<K: Resource>(object: &mut K) {
    object.meta_mut().managed_fields = None;
    if object.meta().annotations.is_some() {
        object.annotations_mut().remove(LAST_APPLIED_ANNOTATION);
    }
}

fn store_and_touched<K, F>(
    events: impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send + 'static,
    fingerprint: impl Fn(&K) -> Option<F> + Send + 'static,
) -> (Store<K>, impl Stream<Item = ObjectRef<K>> + Send + 'static)
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static,
    F: PartialEq + Send + 'static,
{
    let (store, mut writer) = reflector::store();
    let mut changes = Changes::new(fingerprint);
    let mut failing = false;
    let touched = events.flat_map(move |event| {
        let touched = match event {
            Ok(event) => {
                failing = false;
                // First the store, then the key: who gets the key finds the object.
                writer.apply_watcher_event(&event);
                changes.touched(&event)
            }
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    let kind = K::kind(&());
                    tracing::warn!(%kind, %error, "a watch failed; it is tried again");
                }
                Vec::new()
            }
        };
        futures::stream::iter(touched)
    });
    (store, touched)
}

#[cfg(test)]
mod tests;
