//! Context that all reconciles share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::delivery::EnvironmentPolicy;
use api::flux_operator::{ResourceSet, ResourceSetInputProvider};
use api::source::ExternalArtifact;
use cluster_access::targets::Targets;
use controller_kit::ObjectKey;
use controller_kit::queue::Queue;
use controller_kit::record::Writer;
use kube::Client;
use kube::core::Selector;
use kube::runtime::reflector::{ObjectRef, Store};
use manifest::ObjectId;
use reconcile_kit::base::is_in;
use reconcile_kit::freezes::Freezes;
use remote_access::Reader;
use remote_access::identity::Identities;
use resource_set::environment::Request;
use resource_set::references::Reference;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use transport::http;
use verification_policy::images::Judge;

use crate::environment::Environments;

/// Context that all reconciles share. Holds credentials of no object.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) sets: Writer<ResourceSet>,
    pub(crate) set_queue: Queue<ObjectKey>,
    pub(crate) providers: Writer<ResourceSetInputProvider>,
    pub(crate) provider_queue: Queue<ObjectKey>,
    pub(crate) artifacts: Store<ExternalArtifact>,
    pub(crate) environments: Environments,
    pub(crate) targets: Targets,
    pub(crate) clients: http::Clients,
    /// What is known of registries.
    pub(crate) registries: oci_client::registry::Memory,
    pub(crate) identities: Identities,
    pub(crate) memory: Memory,
    pub(crate) freezes: Freezes,
    pub(crate) images: Judge,
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

    /// The EnvironmentPolicies that count for a ResourceSet.
    pub(crate) fn policies_of(&self, set: &ObjectKey) -> Vec<Arc<EnvironmentPolicy>> {
        let cache = &self.environments.writer.cache;
        let all = cache.store().state().into_iter();
        // As we wrote them: what is admitted now must not wait for the watch.
        let newest = all.filter_map(|policy| cache.get(&ObjectRef::from_obj(&*policy)));
        let of_set = newest.filter(|policy| {
            policy.metadata.namespace.as_ref() == Some(&set.namespace)
                && policy.spec.resource_set_ref.name == set.name
                && policy.metadata.deletion_timestamp.is_none()
                && !policy.spec.suspend
                && self.is_ours(&**policy)
        });
        of_set.collect()
    }

    /// Has the EnvironmentPolicies of a ResourceSet reconciled.
    pub(crate) fn wake_policies(&self, set: &ObjectKey) {
        for policy in self.policies_of(set) {
            self.environments.queue.add(ObjectKey::from_object(&*policy));
        }
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
    /// Pull requests of the last run.
    requests: Vec<Request>,
    /// Why that failed, if it did.
    failure: Option<String>,
    /// What its images do not meet, though they are delivered, as it was reported.
    warned: Vec<String>,
    /// What was applied last.
    applied: Option<String>,
    /// What was applied for pull requests, whenever that was.
    made: HashMap<(String, u64), Arc<Made>>,
}

/// The environment of a pull request, as it was applied.
pub(crate) struct Made {
    pub(crate) commit: String,
    /// Of the objects, as templates made them.
    pub(crate) digest: u64,
    /// With the versions of their API.
    pub(crate) objects: Vec<(ObjectId, String)>,
    /// Kustomizations that apply this commit.
    pub(crate) followers: Vec<ObjectId>,
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

    /// A run begins, with these pull requests.
    pub(crate) fn begin(&self, set: &ObjectKey, requests: Vec<Request>) {
        let mut all = self.lock();
        let entry = all.entry(set.clone()).or_default();
        let is_known = |(provider, number): &(String, u64)| {
            requests
                .iter()
                .any(|request| (&request.provider, request.number) == (provider, *number))
        };
        entry.made.retain(|key, _| is_known(key));
        (entry.requests, entry.failure) = (requests, None);
    }

    /// What images do not meet, though they are delivered. Returns whether that is news.
    pub(crate) fn warned(&self, set: &ObjectKey, warnings: &[String]) -> bool {
        let mut all = self.lock();
        let entry = all.entry(set.clone()).or_default();
        let is_news = entry.warned != warnings;
        entry.warned = warnings.to_vec();
        is_news && !warnings.is_empty()
    }

    /// A run failed.
    pub(crate) fn failed(&self, set: &ObjectKey, message: &str) {
        self.lock().entry(set.clone()).or_default().failure = Some(message.to_owned());
    }

    /// Why the last run failed, if it did, and was about this commit.
    pub(crate) fn failure(&self, set: &ObjectKey, request: &Request) -> Option<String> {
        let all = self.lock();
        let entry = all.get(set)?;
        entry.failure.clone().filter(|_| entry.requests.contains(request))
    }

    /// A revision was applied.
    pub(crate) fn applied(&self, set: &ObjectKey, revision: &str) {
        self.lock().entry(set.clone()).or_default().applied = Some(revision.to_owned());
    }

    /// The revision that was applied last, if that was since the start of this process.
    pub(crate) fn applied_of(&self, set: &ObjectKey) -> Option<String> {
        self.lock().get(set)?.applied.clone()
    }

    /// Environments were applied.
    pub(crate) fn made(&self, set: &ObjectKey, made: Vec<(Request, Arc<Made>)>) {
        let mut all = self.lock();
        let entry = all.entry(set.clone()).or_default();
        let made = made.into_iter();
        entry
            .made
            .extend(made.map(|(request, made)| ((request.provider, request.number), made)));
    }

    /// What was applied for a pull request at this commit.
    pub(crate) fn made_of(&self, set: &ObjectKey, request: &Request) -> Option<Arc<Made>> {
        let key = (request.provider.clone(), request.number);
        let made = self.lock().get(set)?.made.get(&key).cloned();
        made.filter(|made| made.commit == request.commit)
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
