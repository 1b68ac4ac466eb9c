//! Context that all reconciles share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::flux_operator::{ResourceSet, ResourceSetInputProvider};
use api::source::ExternalArtifact;
use cluster_access::targets::Targets;
use controller_kit::ObjectKey;
use controller_kit::queue::Queue;
use controller_kit::record::Writer;
use kube::Client;
use kube::core::Selector;
use kube::runtime::reflector::Store;
use reconcile_kit::base::is_in;
use remote_access::Reader;
use remote_access::identity::Identities;
use resource_set::references::Reference;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use transport::http;

/// Context that all reconciles share. Holds credentials of no object.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) sets: Writer<ResourceSet>,
    pub(crate) set_queue: Queue<ObjectKey>,
    pub(crate) providers: Writer<ResourceSetInputProvider>,
    pub(crate) provider_queue: Queue<ObjectKey>,
    pub(crate) artifacts: Store<ExternalArtifact>,
    pub(crate) targets: Targets,
    pub(crate) clients: http::Clients,
    /// What is known of registries.
    pub(crate) registries: oci_client::registry::Memory,
    pub(crate) identities: Identities,
    pub(crate) memory: Memory,
    /// Which objects are ours (`--watch-label-selector`).
    pub(crate) shard: Selector,
    /// Whether providers see only their own namespace.
    pub(crate) is_locked: bool,
    /// Namespace of this controller, which is never deleted.
    pub(crate) own_namespace: String,
    pub(crate) jitter_percentage: u8,
    /// Ends with the process.
    pub(crate) shutdown: CancellationToken,
}

impl Context {
    /// Reads what objects of a namespace refer to.
    pub(crate) fn reader(&self, namespace: &str) -> Reader {
        Reader::new(self.client.clone(), self.identities.clone(), namespace)
    }

    /// Returns whether an object is in our shard.
    pub(crate) fn is_ours<K: kube::Resource>(&self, object: &K) -> bool {
        is_in(&self.shard, object)
    }

    /// Ends a wait of a ResourceSet, and has it reconciled.
    pub(crate) fn wake(&self, set: ObjectKey) {
        self.memory.interrupt(&set);
        self.set_queue.add(set);
    }
}

/// What is remembered of ResourceSets. All of it may be lost.
#[derive(Default)]
pub(crate) struct Memory(Mutex<HashMap<ObjectKey, Entry>>);

#[derive(Default)]
struct Entry {
    /// ConfigMaps and Secrets that its objects take data from.
    references: Vec<Reference>,
    /// Ends the wait that is on.
    interrupt: Arc<Notify>,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn forget(&self, set: &ObjectKey) {
        self.lock().remove(set);
    }

    pub(crate) fn refers(&self, set: &ObjectKey, references: Vec<Reference>) {
        self.lock().entry(set.clone()).or_default().references = references;
    }

    /// The ResourceSets whose objects take data from there.
    pub(crate) fn users(&self, reference: &Reference) -> Vec<ObjectKey> {
        let all = self.lock();
        let users = all
            .iter()
            .filter(|(_, entry)| entry.references.contains(reference));
        users.map(|(set, _)| set.clone()).collect()
    }

    /// What ends waits of a ResourceSet from now on: what was said before does not count.
    pub(crate) fn fresh_interrupt(&self, set: &ObjectKey) -> Arc<Notify> {
        let interrupt = Arc::new(Notify::new());
        self.lock().entry(set.clone()).or_default().interrupt = Arc::clone(&interrupt);
        interrupt
    }

    fn interrupt(&self, set: &ObjectKey) {
        if let Some(entry) = self.lock().get(set) {
            entry.interrupt.notify_one();
        }
    }
}
