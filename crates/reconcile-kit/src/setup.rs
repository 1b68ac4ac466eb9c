//! Set-up of a delivering controller, before its first reconcile.

use std::sync::Arc;

use api::facts::HasFacts;
use api::meta::Delivers;
use artifact::client::ClientOptions;
use cluster_access::artifact_access;
use cluster_access::targets::{Options, Targets};
use controller_kit::Context;
use controller_kit::queue::Queue;
use controller_kit::runtime::Cache;
use futures::channel::mpsc::UnboundedReceiver;
use futures::future::BoxFuture;
use kube::Resource;
use kube::core::{NamespaceResourceScope, Selector};
use kube::runtime::reflector::Store;
use kube_apply::Drift;
use workload_identity::Identities;

use crate::base::{Base, is_in};
use crate::flags::DeliveryFlags;
use crate::references::References;

/// Set-up made from flags, whatever the kind.
pub struct Setup {
    /// Identities of the controller and its objects elsewhere.
    pub identities: Arc<Identities>,
    /// Where objects are delivered, and as whom.
    pub targets: Targets,
    /// Changes by others to delivered objects.
    pub drifts: UnboundedReceiver<Drift>,
    /// Fetches artifacts.
    pub artifacts: artifact::client::Client,
    /// Keeps the credentials for the artifact service fresh. It never ends.
    pub credentials: BoxFuture<'static, ()>,
}

impl Setup {
    /// Makes it. `object_level` says whether objects may be ServiceAccounts elsewhere.
    ///
    /// # Errors
    ///
    /// When the artifact service cannot be called as the flags say.
    pub fn new(
        kit: &Context,
        flags: &DeliveryFlags,
        apply: kube_apply::Settings,
        artifacts: ClientOptions,
        object_level: bool,
    ) -> Result<Self, artifact::client::Error> {
        let (artifacts, credentials) = artifact_access::supplied(artifacts, &flags.artifact, kit);
        let identities = Identities::new(kit.client.clone(), flags.common.token, object_level);
        let identities = Arc::new(identities.keeping(&flags.artifact.artifact_token_audience));
        let asked = Arc::clone(&identities);
        kit.metrics.token_cache(move || asked.token_cache());
        let options = Options {
            kubeconfig: flags.kubeconfig,
            client: flags.common.client.clone(),
            name: kit.name,
            metrics: kit.metrics.rest().clone(),
            default_account: flags.default_service_account.clone(),
            identities: Arc::clone(&identities),
            remote_account: flags.default_kubeconfig_service_account.clone(),
        };
        let (targets, drifts) = Targets::new(kit.client.clone(), apply, options);
        Ok(Self {
            identities,
            targets,
            drifts,
            artifacts: artifact::client::Client::new(artifacts)?,
            credentials,
        })
    }
}

/// Returns what all reconciles of a kind share, and has its objects counted. `manager` is the field manager of what is written into its objects.
pub fn base<K>(
    kit: Context,
    flags: &DeliveryFlags,
    objects: Store<K>,
    targets: Targets,
    shard: Selector,
    manager: &'static str,
) -> Base<K>
where
    K: Delivers + HasFacts + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + Send + Sync + 'static,
{
    let ours = shard.clone();
    kit.metrics
        .objects(objects.clone(), move |object: &K| is_in(&ours, object));
    Base {
        objects: Cache::new(objects),
        references: References::default(),
        queue: Queue::new(&K::kind(&()).to_lowercase(), flags.common.rate, &kit.metrics),
        targets,
        events: kit.recorder,
        shard,
        jitter_percentage: flags.common.jitter.interval_jitter_percentage,
        metrics: kit.metrics,
        client: kit.client,
        manager,
    }
}
