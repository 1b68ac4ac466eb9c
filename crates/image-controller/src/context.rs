//! Context that all reconciles share.

use std::time::Duration;

use api::image::{ImagePolicy, ImageRepository, ImageUpdateAutomation};
use api::source::GitRepository;
use controller_kit::ObjectKey;
use controller_kit::queue::Queue;
use controller_kit::runtime::Cache;
use git_client::Algorithms;
use git_writer::branch::Workshop;
use git_writer::turns::Writers;
use kube::Client;
use remote_access::Reader;
use remote_access::identity::Identities;
use transport::http;

use crate::automation::{branch::heads::Heads, kept, scope::Scopes};
use crate::delivery::Delivery;
use crate::metrics::Meters;
use crate::pauses::Pauses;
use crate::tags;
use controller_kit::record::Writer;

/// Context that all reconciles share. Holds credentials of no object.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) repositories: Writer<ImageRepository>,
    pub(crate) policies: Writer<ImagePolicy>,
    pub(crate) automations: Writer<ImageUpdateAutomation>,
    pub(crate) sources: Cache<GitRepository>,
    /// What becomes of what was pushed.
    pub(crate) deliveries: Cache<Delivery>,
    /// To wake what builds upon a change.
    pub(crate) queues: Queues,
    pub(crate) tags: tags::Store,
    pub(crate) clients: http::Clients,
    pub(crate) registries: oci_client::registry::Memory,
    pub(crate) meters: Meters,
    /// Pauses that registries asked for, and the budget of each.
    pub(crate) pauses: Pauses,
    pub(crate) sigstore: oci_verify::SigstoreRoot,
    pub(crate) identities: Identities,
    pub(crate) ssh_algorithms: Algorithms,
    /// Where fetched objects of Git go.
    pub(crate) workshop: Workshop,
    pub(crate) writers: Writers,
    pub(crate) kept: kept::Store,
    pub(crate) heads: Heads,
    pub(crate) scopes: Scopes,
    /// A push branch that holds nothing but our commit is made anew.
    pub(crate) replaces_push_branches: bool,
    pub(crate) requeue_dependency: Duration,
    pub(crate) no_cross_namespace_refs: bool,
    pub(crate) jitter_percentage: u8,
}

/// The work of each kind.
#[derive(Clone)]
pub(crate) struct Queues {
    pub(crate) repositories: Queue<ObjectKey>,
    pub(crate) policies: Queue<ObjectKey>,
    pub(crate) automations: Queue<ObjectKey>,
}

impl Context {
    /// Reads what objects of a namespace refer to.
    pub(crate) fn reader(&self, namespace: &str) -> Reader {
        Reader::new(self.client.clone(), self.identities.clone(), namespace)
    }

    /// Wakes the policies that choose among the tags of a repository.
    pub(crate) fn wake_policies(&self, repository: &ObjectKey) {
        for policy in self.policies.cache.store().state() {
            let key = ObjectKey::from_object(&*policy);
            if crate::policy::repository_of(&policy) == *repository {
                self.queues.policies.add(key);
            }
        }
    }

    /// Wakes the automations that follow policies of a namespace.
    pub(crate) fn wake_automations(&self, namespace: &str) {
        for automation in self.automations.cache.store().state() {
            if crate::automation::chosen::follows(&automation, namespace) {
                self.queues.automations.add(ObjectKey::from_object(&*automation));
            }
        }
    }
}
