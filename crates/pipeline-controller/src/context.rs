//! Context that all reconciles share.

use std::sync::Arc;

use access_review::Reviews;
use api::delivery::{AppKind, Pipeline};
use api::helm::HelmRelease;
use api::kustomize::Kustomization;
use api::notification::Receiver;
use api::source::{GitRepository, OCIRepository};
use controller_kit::ObjectKey;
use controller_kit::queue::Queue;
use controller_kit::record::Writer;
use controller_kit::runtime::Cache;
use git_client::Algorithms;
use git_writer::branch::Workshop;
use git_writer::turns::Writers;
use kube::Client;
use remote_access::Reader;
use remote_access::identity::Identities;
use transport::http;

use crate::app::{App, Facts};
use crate::change_request::Requests;
use crate::failures::Failures;
use crate::preview::Previews;
use crate::remote::Remotes;
use crate::weave::Weave;

/// Context that all reconciles share. Holds credentials of no object.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) pipelines: Writer<Pipeline>,
    pub(crate) releases: Cache<App<HelmRelease>>,
    pub(crate) kustomizations: Cache<App<Kustomization>>,
    pub(crate) artifacts: Cache<App<OCIRepository>>,
    pub(crate) repositories: Cache<App<GitRepository>>,
    pub(crate) queue: Queue<ObjectKey>,
    /// What service accounts may read.
    pub(crate) reviews: Reviews,
    pub(crate) clients: http::Clients,
    /// Webhooks; the definition of Receivers may be absent.
    pub(crate) receivers: Cache<Receiver>,
    /// Address at which they are reached.
    pub(crate) webhook_url: String,
    /// Hosts that gates may ask.
    pub(crate) gate_hosts: Vec<String>,
    pub(crate) identities: Identities,
    pub(crate) ssh_algorithms: Algorithms,
    pub(crate) workshop: Workshop,
    pub(crate) writers: Writers,
    pub(crate) failures: Failures,
    pub(crate) remotes: Arc<Remotes>,
    pub(crate) requests: Requests,
    /// What is known of Previews.
    pub(crate) previews: Previews,
    /// Pipelines of Weave GitOps, if they are served.
    pub(crate) weave: Option<Weave>,
    pub(crate) jitter_percentage: u8,
}

impl Context {
    /// Reads what objects of a namespace refer to.
    pub(crate) fn reader(&self, namespace: &str) -> Reader {
        Reader::new(self.client.clone(), self.identities.clone(), namespace)
    }

    /// An application, as far as pipelines care.
    pub(crate) fn app(&self, kind: AppKind, key: &ObjectKey) -> Option<Facts> {
        match kind {
            AppKind::HelmRelease => Some(self.releases.get(&key.object_ref())?.facts()),
            AppKind::Kustomization => Some(self.kustomizations.get(&key.object_ref())?.facts()),
            AppKind::OCIRepository => Some(self.artifacts.get(&key.object_ref())?.facts()),
            AppKind::GitRepository => Some(self.repositories.get(&key.object_ref())?.facts()),
        }
    }
}
