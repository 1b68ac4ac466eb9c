//! What all reconciles share, the watches, and the work on the queue.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use api::helm::HelmRelease;
use api::meta::{Artifact, HasConditions, ValuesKind, condition_types};
use api::source::{ExternalArtifact, HelmChart, OCIRepository, Source as SourceObject};
use cluster_access::artifact_access;
use cluster_access::targets::{self, Targets};
use controller_kit::events::Recorder as Events;
use controller_kit::flags::{ALL_CONFIGS, WatchFlags};
use controller_kit::metrics::Metrics;
use controller_kit::queue::{Backoff, Queue, Slot};
use controller_kit::runtime::{Cache, scoped_api, watch_changes};
use controller_kit::{Context as Kit, ObjectKey, access_from};
use futures::stream::Stream;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::{NamespaceResourceScope, PartialObjectMeta, Selector, SelectorExt as _};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use workload_identity::Identities;

use crate::charts::Charts;
use crate::flags::{Flags, Policy, Settings};
use crate::follow::{self, Facts};
use crate::memory::Memory;
use crate::reconcile::observe::{Caches, placement};
use crate::reconcile::reconcile;
use crate::values;

/// The kind, as metrics name it.
const KIND: &str = "HelmRelease";

/// What all reconciles share.
pub struct Context {
    /// The cluster.
    pub client: Client,
    /// What the watches have seen.
    pub caches: Caches,
    /// What earlier reconciles left.
    pub memory: Memory,
    /// Charts that were loaded.
    pub charts: Charts,
    /// What is reconciled next.
    pub queue: Queue<ObjectKey>,
    /// Where releases are made, and as whom.
    pub targets: Targets,
    /// Publishes Kubernetes Events.
    pub events: Events,
    /// What the flags allow.
    pub policy: Policy,
    /// Which HelmReleases are ours (`--watch-label-selector`).
    pub shard: Selector,
    /// ConfigMaps and Secrets that specs refer to are watched, all of them.
    pub watches_configs: bool,
    /// After how long what failed is tried again.
    pub backoff: Backoff,
    /// By how many percent intervals are spread.
    pub jitter_percentage: u8,
    /// What is measured.
    pub metrics: Metrics,
    /// Set off when the process is to end.
    pub shutdown: CancellationToken,
}

impl Context {
    /// Drops everything about an object that is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.memory.forget(key);
        self.metrics.forget_object(KIND, &key.namespace, &key.name);
        self.targets.forget(&owner(key));
    }

    /// Enqueues the HelmReleases of our shard that are concerned by something.
    pub fn enqueue(&self, concerned: impl Fn(&HelmRelease) -> bool) {
        for object in self.caches.releases.store().state() {
            if concerned(&object) && self.is_ours(&object) {
                self.wake(ObjectKey::of(&*object));
            }
        }
    }

    /// Has an object looked at. A run of it that waits is ended, if the gate for that is open.
    pub fn wake(&self, key: ObjectKey) {
        if self.policy.cancel_on_change {
            self.memory.cancel(&key);
        }
        self.queue.add(key);
    }

    /// Says whether what an object is released with, and where, comes from this ConfigMap or Secret.
    pub fn reads(&self, object: &HelmRelease, kind: ValuesKind, config: &ObjectKey) -> bool {
        let name = &config.name;
        object.metadata.namespace.as_deref() == Some(&config.namespace)
            && (values::refers_to(object, kind, name) || placement(object).refers_to(kind, name))
    }

    /// Says whether an object is in our shard.
    pub fn is_ours(&self, object: &HelmRelease) -> bool {
        let unlabelled = BTreeMap::new();
        self.shard
            .matches(object.metadata.labels.as_ref().unwrap_or(&unlabelled))
    }

    /// Records how long a reconcile took.
    pub fn observe(&self, key: &ObjectKey, took: Duration) {
        self.metrics
            .observe_reconcile(KIND, &key.namespace, &key.name, took);
    }

    /// Spreads an interval.
    pub fn jittered(&self, interval: Duration) -> Duration {
        controller_kit::jitter::jitter(interval, self.jitter_percentage, controller_kit::jitter::random())
    }
}

/// An object, as the owner of what is released for it.
pub fn owner(key: &ObjectKey) -> kube_apply::Owner {
    kube_apply::Owner {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
    }
}

/// What of a source matters: its artifact, or why it has none, and who may refer to it.
#[derive(PartialEq)]
pub struct SourceFacts {
    artifact: Option<(String, String, String)>,
    access_from: Option<String>,
    /// As it stands in the way of the artifact.
    state: Option<(bool, String)>,
    generation: Option<i64>,
    deleting: bool,
}

impl SourceFacts {
    fn of<K: SourceObject>(source: &K) -> Self {
        let artifact = source.artifact().map(|artifact: &Artifact| {
            let Artifact {
                revision,
                digest,
                url,
                ..
            } = artifact;
            (revision.clone(), digest.clone(), url.clone())
        });
        let condition = |type_: &str| source.condition(type_).filter(|c| c.status == "True");
        let observed = source.status().and_then(HasConditions::observed_generation);
        let is_current = observed == source.meta().generation;
        let ready = source.condition(condition_types::READY);
        let trouble = condition(condition_types::STALLED)
            .or(ready.filter(|ready| ready.status == "False" && (artifact.is_none() || !is_current)));
        Self {
            artifact,
            access_from: source.annotations().get(access_from::ANNOTATION).cloned(),
            state: Some((is_current, trouble.map(|c| c.message.clone()).unwrap_or_default())),
            generation: source.meta().generation,
            deleting: source.meta().deletion_timestamp.is_some(),
        }
    }
}

/// Watches and reconciles until the process is told to stop.
pub async fn run(flags: Flags, kit: Kit) -> anyhow::Result<()> {
    let settings = Settings::of(&flags)?;
    let watch = flags.watch.clone();
    let (releases, releases_changed) = watch_changes(
        scoped_api(&kit.client, &watch),
        watcher::Config::default(),
        |object| Some(Facts::of(object)),
    );
    let (charts, charts_changed) = watch_sources::<HelmChart>(&kit.client, &watch);
    let (oci_repositories, oci_changed) = watch_sources::<OCIRepository>(&kit.client, &watch);
    let (external, external_changed) = watch_sources::<ExternalArtifact>(&kit.client, &watch);
    let (artifacts, credentials) = artifact_access::supplied(settings.artifacts, &flags.artifact, &kit);
    let object_level = settings.policy.object_level_identity;
    let identities = Identities::new(kit.client.clone(), flags.token, object_level);
    let identities = Arc::new(identities.keeping(&flags.artifact.artifact_token_audience));
    let asked = Arc::clone(&identities);
    kit.metrics.token_cache(move || asked.token_cache());
    let options = targets::Options {
        kubeconfig: flags.kubeconfig,
        client: flags.client.clone(),
        metrics: kit.metrics.rest().clone(),
        default_account: flags.default_service_account.clone(),
        identities,
        remote_account: flags.default_kubeconfig_service_account.clone(),
    };
    let (targets, drifts) = Targets::new(kit.client.clone(), settings.apply, options);
    let artifacts = artifact::client::Client::new(artifacts)?;
    let tracks_digests = !settings.policy.ignore_chart_digest;
    let context = Arc::new(Context {
        caches: Caches {
            releases: Cache::new(releases),
            charts,
            oci_repositories,
            external_artifacts: external,
        },
        memory: Memory::default(),
        charts: Charts::new(artifacts, flags.chart_cache_bytes, tracks_digests),
        queue: Queue::new("helmrelease", flags.rate, &kit.metrics),
        targets,
        events: kit.recorder,
        policy: settings.policy,
        backoff: flags.rate.into(),
        shard: settings.shard,
        watches_configs: settings.watched_configs.as_deref() == Some(ALL_CONFIGS),
        jitter_percentage: flags.jitter.interval_jitter_percentage,
        metrics: kit.metrics,
        shutdown: kit.token.clone(),
        client: kit.client,
    });
    let ours = Arc::clone(&context);
    let releases = context.caches.releases.store().clone();
    context
        .metrics
        .objects(releases, move |object| ours.is_ours(object));
    let configs = settings.watched_configs;
    let config_maps: Api<PartialObjectMeta<ConfigMap>> = scoped_api(&context.client, &watch);
    let secrets: Api<PartialObjectMeta<Secret>> = scoped_api(&context.client, &watch);
    let follow = futures::future::join5(
        follow::releases(Arc::clone(&context), releases_changed),
        futures::future::join3(
            follow::source(Arc::clone(&context), charts_changed),
            follow::source(Arc::clone(&context), oci_changed),
            follow::source(Arc::clone(&context), external_changed),
        ),
        follow::drift(Arc::clone(&context), drifts),
        futures::future::join(
            follow::configs(
                Arc::clone(&context),
                ValuesKind::ConfigMap,
                config_maps,
                configs.clone(),
            ),
            follow::configs(Arc::clone(&context), ValuesKind::Secret, secrets.clone(), configs),
        ),
        follow::records(Arc::clone(&context), secrets),
    );
    tokio::select! {
        _ = follow => anyhow::bail!("the watches ended"),
        () = credentials => anyhow::bail!("the watch of the artifact service's authority ended"),
        result = work(Arc::clone(&context), &flags, kit.token) => result,
    }
}

/// Works on the queue once everything has been listed: a source that is not in the cache yet is not a missing one.
async fn work(context: Arc<Context>, flags: &Flags, token: CancellationToken) -> anyhow::Result<()> {
    let listed = async {
        context.caches.releases.store().wait_until_ready().await?;
        context.caches.charts.wait_until_ready().await?;
        context.caches.oci_repositories.wait_until_ready().await?;
        context.caches.external_artifacts.wait_until_ready().await
    };
    tokio::select! {
        result = listed => result?,
        () = token.cancelled() => return Ok(()),
    }
    let queue = context.queue.clone();
    let handler = move |key: ObjectKey, slot: Slot| {
        let span = controller_kit::telemetry::reconcile_span::<HelmRelease>(&key);
        reconcile(Arc::clone(&context), key, slot).instrument(span)
    };
    queue
        .run_in_slots(
            flags.concurrent.into(),
            flags.graceful_shutdown_timeout,
            token,
            handler,
        )
        .await;
    Ok(())
}

fn watch_sources<K>(
    client: &Client,
    flags: &WatchFlags,
) -> (Store<K>, impl Stream<Item = ObjectRef<K>> + Send + use<K>)
where
    K: SourceObject + kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    watch_changes(scoped_api(client, flags), watcher::Config::default(), |source| {
        Some(SourceFacts::of(source))
    })
}
