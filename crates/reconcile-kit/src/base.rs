//! Context that all reconciles of a kind share.

use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use api::meta::Delivers;
use cluster_access::targets::{Placement, Targets};
use controller_kit::ObjectKey;
use controller_kit::events::Recorder;
use controller_kit::jitter;
use controller_kit::metrics::Metrics;
use controller_kit::queue::Queue;
use controller_kit::runtime::Cache;
use kube::core::{NamespaceResourceScope, Selector, SelectorExt as _};
use kube::{Client, Resource};
use kube_apply::Owner;
use serde::Serialize;

use crate::dependencies;
use crate::references::{References, Target};

/// Context that all reconciles of a kind share, whatever the kind does.
pub struct Base<K: Resource<DynamicType = ()> + Clone + 'static> {
    /// The connection to the API server.
    pub client: Client,
    /// All objects of the kind in scope, of all shards: one may depend on another's. With our own newest writes.
    pub objects: Cache<K>,
    /// What they refer to.
    pub references: References,
    /// Queue of objects to reconcile.
    pub queue: Queue<ObjectKey>,
    /// Where objects are delivered, and as whom.
    pub targets: Targets,
    /// Publishes Kubernetes Events.
    pub events: Recorder,
    /// Which objects are ours (`--watch-label-selector`).
    pub shard: Selector,
    /// By how many percent intervals are spread.
    pub jitter_percentage: u8,
    /// Metrics.
    pub metrics: Metrics,
    /// The field manager of what we write into our objects.
    pub manager: &'static str,
}

impl<K> Base<K>
where
    K: Delivers + Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + 'static,
{
    /// Returns whether an object is in our shard.
    pub fn is_ours(&self, object: &K) -> bool {
        is_in(&self.shard, object)
    }

    /// Returns an object of our shard as the watch has seen it.
    pub fn object(&self, key: &ObjectKey) -> Option<Arc<K>> {
        let object = self.objects.get(&key.object_ref())?;
        self.is_ours(&object).then_some(object)
    }

    /// Returns the objects of our shard that are concerned by something.
    pub fn concerned(&self, is_concerned: impl Fn(&K) -> bool) -> Vec<ObjectKey> {
        let objects = self.objects.store().state().into_iter();
        objects
            .filter(|object| is_concerned(object) && self.is_ours(object))
            .map(|object| ObjectKey::from_object(&*object))
            .collect()
    }

    /// Notes what an object depends on and is made of, as it is now; nothing if it is gone.
    pub fn note(&self, key: &ObjectKey, object: Option<&K>, source: Option<Target>) {
        let depends_on = object.into_iter().flat_map(dependencies::keys);
        let targets = depends_on.map(Target::Object).chain(source);
        self.references.note(key, targets.collect());
    }

    /// Returns the objects of our shard that depend on something or are made of it.
    pub fn users(&self, target: &Target) -> Vec<Arc<K>> {
        let users = self.references.users(target).into_iter();
        users.filter_map(|key| self.object(&key)).collect()
    }

    /// Drops what is known of an object that is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.metrics
            .forget_object(&K::kind(&()), &key.namespace, &key.name);
        self.targets.forget(&owner(key));
    }

    /// Records how long a reconcile took.
    pub fn observe(&self, key: &ObjectKey, took: Duration) {
        self.metrics
            .observe_reconcile(&K::kind(&()), &key.namespace, &key.name, took);
    }

    /// Spreads an interval.
    pub fn jittered(&self, interval: Duration) -> Duration {
        jitter::jitter(interval, self.jitter_percentage, jitter::random())
    }
}

/// Returns whether an object is in a shard.
pub fn is_in<K: Resource>(shard: &Selector, object: &K) -> bool {
    let unlabelled = BTreeMap::new();
    shard.matches(object.meta().labels.as_ref().unwrap_or(&unlabelled))
}

/// Returns an object as the owner of what is delivered for it.
pub fn owner(key: &ObjectKey) -> Owner {
    Owner {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
    }
}

/// Returns what of an object says where its objects are, and as whom they are made.
pub fn placement<K: Delivers>(object: &K) -> Placement<'_> {
    Placement {
        namespace: object.meta().namespace.as_deref().unwrap_or_default(),
        service_account: object.service_account(),
        kube_config: object.kube_config(),
    }
}

/// Returns a digest of what a person sees of an object: all that an expression may look at.
pub fn digest<K: Resource + Clone + Serialize>(object: &K) -> u64 {
    let mut object = object.clone();
    object.meta_mut().managed_fields = None;
    object.meta_mut().resource_version = None;
    let mut hasher = std::hash::DefaultHasher::new();
    serde_json::to_string(&object)
        .unwrap_or_default()
        .hash(&mut hasher);
    hasher.finish()
}
