//! Rules of a cluster that controllers obey, such as its Freezes: all objects of one kind, as they are and as they were.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use futures::stream::{BoxStream, StreamExt as _};
use kube::core::NamespaceResourceScope;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use crate::flags::WatchFlags;
use crate::runtime::{scoped_api, watch_changes};

/// How often it is looked whether the kind is served, while it is not known.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Looks after which a warning says that the list has not come.
const TELL_AFTER: u32 = 10;

/// All objects of a kind. While the API server cannot be reached they are as they were.
pub struct Rules<K>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    store: Store<K>,
    api: Api<K>,
    /// Each as it was: who leaves its reach is concerned, too.
    before: RwLock<HashMap<ObjectRef<K>, Arc<K>>>,
}

/// Rules that changed.
pub type Changes<K> = BoxStream<'static, ObjectRef<K>>;

impl<K> Rules<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug,
    K: DeserializeOwned + Send + Sync + 'static,
    ObjectRef<K>: Hash + Eq,
{
    /// Watches them. The stream must be polled by [`follow`](Self::follow).
    pub fn new(client: &Client, flags: &WatchFlags) -> (Self, Changes<K>) {
        let (store, changes) = watch_changes(
            scoped_api(client, flags),
            watcher::Config::default(),
            |object: &K| object.meta().resource_version.clone(),
        );
        let rules = Self {
            store,
            api: scoped_api(client, flags),
            before: RwLock::default(),
        };
        (rules, changes.boxed())
    }

    /// Waits until they are known. Where the kind is not installed there are none; `then` says what that means.
    pub async fn wait_until_ready(&self, then: &str) {
        let (kind, group) = (K::kind(&()), K::group(&()));
        let (client, version) = (self.api.clone().into_client(), K::api_version(&()));
        // By discovery, which everyone may read. A list that is forbidden says nothing about whether the kind is installed.
        let is_missing = async {
            for number in 1_u32.. {
                match client.list_api_group_resources(&version).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => break,
                    Ok(served) if served.resources.iter().all(|served| served.kind != *kind) => break,
                    _ => tokio::time::sleep(LOOK_AGAIN).await,
                }
                if number.is_multiple_of(TELL_AFTER) {
                    tracing::warn!(
                        "waiting for the list of {kind} of {group}: may this controller list and watch them?"
                    );
                }
            }
        };
        tokio::select! {
            // It ends with the watch, and the process with that.
            _ = self.store.wait_until_ready() => {}
            () = is_missing => {
                tracing::warn!("the kind {kind} of {group} is not installed: {then}");
            }
        }
    }

    /// Returns all that there are.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.store.state()
    }

    /// Calls `changed` for each change, with the rule as it is and as it was.
    pub async fn follow(&self, mut changes: Changes<K>, changed: impl Fn(&[Arc<K>])) {
        while let Some(key) = changes.next().await {
            let now = self.store.get(&key);
            let before = match (&now, self.before.write()) {
                (Some(now), Ok(mut known)) => known.insert(key, Arc::clone(now)),
                (None, Ok(mut known)) => known.remove(&key),
                (_, Err(_)) => None,
            };
            let both: Vec<_> = now.into_iter().chain(before).collect();
            changed(&both);
        }
    }
}
