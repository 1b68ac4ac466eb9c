//! Context that all reconciles of a kind share.

use std::sync::Arc;

use artifact::store::Store;
use controller_kit::events::Recorder;
use controller_kit::metrics::Metrics;
use controller_kit::runtime::Cache;
use kube::Client;
use tokio_util::sync::CancellationToken;
use verification_policy::sources::Judge;

use super::fetch::Fetcher;
use super::secrets_read::SecretsRead;
use super::store::AdvertisedAddress;
use crate::backup::Backup;
use crate::kind::Kind;
use crate::metrics::FetchesOfKind;

/// Context that all reconciles of a kind share.
pub(crate) struct Context<K: Kind> {
    pub(crate) client: Client,
    pub(crate) cache: Cache<K>,
    pub(crate) store: Store,
    pub(crate) fetcher: Fetcher,
    /// The VerificationPolicies of the cluster.
    pub(crate) policies: Arc<Judge>,
    /// A copy of what the store has.
    pub(crate) backup: Option<Backup>,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: Metrics,
    pub(crate) fetches: FetchesOfKind,
    pub(crate) address: AdvertisedAddress,
    pub(crate) field_manager: String,
    pub(crate) jitter_percentage: u8,
    pub(crate) secrets_read: SecretsRead,
    /// Cancelled when the process is to end; a fetch is given up then.
    pub(crate) shutdown: CancellationToken,
}
