//! Context that all reconciles of generators share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use api::source::ExternalArtifact;
use api::source_extensions::ArtifactGenerator;
use artifact::store::Store;
use controller_kit::ObjectKey;
use controller_kit::events::Recorder;
use controller_kit::metrics::Metrics;
use controller_kit::runtime::Cache;
use kube::Client;
use prometheus_client::metrics::counter::Counter;
use tokio_util::sync::CancellationToken;
use verification_policy::sources::Judge;

use super::apply::Desired;
use crate::reconcile::fetch::Fetcher;
use crate::reconcile::store::AdvertisedAddress;

/// Flux's name of the controller of this kind: field manager, reporter of events, and a label.
pub(crate) const MANAGER: &str = "source-watcher";

/// Context that all reconciles of generators share.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) generators: Cache<ArtifactGenerator>,
    pub(crate) artifacts: Cache<ExternalArtifact>,
    pub(crate) store: Store,
    pub(crate) fetcher: Fetcher,
    /// The VerificationPolicies of the cluster.
    pub(crate) policies: Arc<Judge>,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: Metrics,
    /// Bytes of what is fetched for generators.
    pub(crate) received: Counter,
    pub(crate) address: AdvertisedAddress,
    pub(crate) no_cross_namespace_refs: bool,
    pub(crate) jitter_percentage: u8,
    pub(crate) shutdown: CancellationToken,
    pub(crate) memory: Memory,
}

/// Memory of each generator's last result. It may be lost at any time.
#[derive(Default)]
pub(crate) struct Memory(Mutex<HashMap<ObjectKey, Remembered>>);

#[derive(Clone)]
pub(super) struct Remembered {
    pub(super) uid: Option<String>,
    pub(super) generation: Option<i64>,
    pub(super) sources_digest: String,
    pub(super) desired: Arc<Vec<Desired>>,
}

impl Memory {
    pub(super) fn get(&self, key: &ObjectKey) -> Option<Remembered> {
        self.lock().get(key).cloned()
    }

    pub(super) fn set(&self, key: ObjectKey, remembered: Remembered) {
        self.lock().insert(key, remembered);
    }

    pub(super) fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ObjectKey, Remembered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
