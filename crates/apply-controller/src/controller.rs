//! The watches, and what each change of an object wakes. The only file that knows how events reach the queue.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use api::kustomize::{Kustomization, SourceKind};
use api::meta::{Artifact, HasConditions, StatusObject, ValuesKind, condition_types};
use api::source::{Bucket, ExternalArtifact, GitRepository, OCIRepository, Source};
use cluster_access::artifact_access;
use cluster_access::targets::{self, Targets};
use controller_kit::access_from;
use controller_kit::events::Recorder as Events;
use controller_kit::flags::WatchFlags;
use controller_kit::metrics::Metrics;
use controller_kit::queue::Queue;
use controller_kit::runtime::{Cache, ReconcileTrigger, scoped_api, watch_changes};
use controller_kit::{Context as Kit, ObjectKey};
use futures::stream::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::{NamespaceResourceScope, PartialObjectMeta, Selector, SelectorExt as _};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use kube_apply::Drift;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use workload_identity::Identities;

use crate::builds::Builds;
use crate::decryption;
use crate::decryption::Decryption;
use crate::flags::{Flags, Settings};
use crate::memory::Memory;
use crate::reconcile::decide::Policy;
use crate::reconcile::observe::{self, Caches, dependency_namespace, source_namespace};
use crate::reconcile::prune::{self, PrunePolicy};
use crate::reconcile::reconcile;
use crate::reconcile::rivals;
use crate::reconcile::variables;

/// The kind, as metrics name it.
const KIND: &str = "Kustomization";

/// What all reconciles share.
pub struct Context {
    /// The cluster.
    pub client: Client,
    /// What the watches have seen.
    pub caches: Caches,
    /// What earlier reconciles left.
    pub memory: Memory,
    /// What was built, for whoever would build the same.
    pub builds: Builds,
    /// What is reconciled next.
    pub queue: Queue<ObjectKey>,
    /// Where objects are, and as whom they are applied, pruned and waited for.
    pub targets: Targets,
    /// Finds the keys for what is encrypted.
    pub decryption: Decryption,
    /// Fetches artifacts.
    pub artifacts: artifact::client::Client,
    /// Publishes Kubernetes Events.
    pub events: Events,
    /// The first failed object ends a wait for health.
    pub fail_fast: bool,
    /// What the flags allow.
    pub policy: Policy,
    /// What is not pruned unless it is confirmed.
    pub prune: PrunePolicy,
    /// Which Kustomizations are ours (`--watch-label-selector`).
    pub shard: Selector,
    /// By how many percent intervals are spread.
    pub jitter_percentage: u8,
    /// What is measured.
    pub metrics: Metrics,
}

impl Context {
    /// Drops everything about an object that is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.memory.forget(key);
        self.metrics.forget_object(KIND, &key.namespace, &key.name);
        let owner = kube_apply::Owner {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        };
        self.targets.forget(&owner);
    }

    /// Enqueues the Kustomizations of our shard that are concerned by something.
    fn enqueue(&self, concerned: impl Fn(&Kustomization) -> bool) {
        for object in self.caches.kustomizations.store().state() {
            if concerned(&object) && self.is_ours(&object) {
                self.queue.add(ObjectKey::of(&*object));
            }
        }
    }

    /// Says whether what an object is applied with, and where, comes from this ConfigMap or Secret.
    fn reads(&self, object: &Kustomization, kind: ValuesKind, config: &ObjectKey) -> bool {
        let is_near = object.metadata.namespace.as_deref() == Some(&config.namespace);
        let name = &config.name;
        (is_near
            && (variables::refers_to(object, kind, name) || observe::placement(object).refers_to(kind, name)))
            || (kind == ValuesKind::Secret && self.decryption.reads(object, config))
    }

    /// Says whether an object is in our shard.
    pub fn is_ours(&self, object: &Kustomization) -> bool {
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

/// What of a Kustomization matters to it, and to those that depend on it. Our own progress matters to nobody.
#[derive(PartialEq)]
struct Facts {
    own: ReconcileTrigger,
    /// A confirmation wakes the object, though it is no part of the spec.
    confirmation: Option<String>,
    ready: bool,
    applied: Option<String>,
    /// All that an expression of a dependent may look at.
    whole: u64,
}

impl Facts {
    fn of(object: &Kustomization) -> Self {
        let current = object
            .status
            .as_ref()
            .and_then(HasConditions::observed_generation)
            == object.metadata.generation;
        let ready = object
            .condition(condition_types::READY)
            .is_some_and(|c| c.status == "True");
        let applied = object
            .status
            .as_ref()
            .and_then(|s| s.last_applied_revision.clone());
        Self {
            own: ReconcileTrigger::of(object),
            confirmation: prune::confirmation(object).map(str::to_owned),
            ready: ready && current,
            applied,
            whole: digest(object),
        }
    }

    /// Whether it matters to the object itself and to dependents that only ask whether it is ready.
    fn matter(&self, before: Option<&Self>) -> bool {
        before.is_none_or(|before| {
            let of = |facts: &'_ Self| (facts.ready, facts.applied.clone(), facts.confirmation.clone());
            self.own != before.own || of(self) != of(before)
        })
    }
}

/// A digest of what a person sees of an object.
fn digest(object: &Kustomization) -> u64 {
    let mut object = object.clone();
    object.metadata.managed_fields = None;
    object.metadata.resource_version = None;
    let mut hasher = std::hash::DefaultHasher::new();
    serde_json::to_string(&object)
        .unwrap_or_default()
        .hash(&mut hasher);
    hasher.finish()
}

/// What of a source matters: its artifact, or why it has none, and who may refer to it.
#[derive(PartialEq)]
enum SourceFacts {
    Artifact {
        revision: String,
        digest: String,
        url: String,
        access_from: Option<String>,
    },
    Nothing {
        why: Option<String>,
        access_from: Option<String>,
    },
}

impl SourceFacts {
    fn of<K: Source>(source: &K) -> Self {
        let access_from = source.annotations().get(access_from::ANNOTATION).cloned();
        match source.artifact() {
            Some(Artifact {
                revision,
                digest,
                url,
                ..
            }) => Self::Artifact {
                revision: revision.clone(),
                digest: digest.clone(),
                url: url.clone(),
                access_from,
            },
            None => Self::Nothing {
                access_from,
                why: source
                    .condition(condition_types::READY)
                    .map(|c| c.message.clone()),
            },
        }
    }
}

/// Enqueues Kustomizations as they change, and those that depend on them.
async fn follow_kustomizations(context: Arc<Context>, changes: impl Stream<Item = ObjectRef<Kustomization>>) {
    let mut changes = std::pin::pin!(changes);
    let mut before: HashMap<ObjectKey, (Facts, bool)> = HashMap::new();
    while let Some(changed) = changes.next().await {
        let key = ObjectKey::from(changed);
        context
            .memory
            .heir_moved(&key)
            .into_iter()
            .for_each(|waiting| context.queue.add(waiting));
        let now = context.caches.kustomizations.get(&key.object_ref());
        let matters = match &now {
            Some(object) => {
                let (facts, is_ours) = (Facts::of(object), context.is_ours(object));
                let old = before.get(&key);
                // A label moves it from one shard to another, and changes nothing else.
                let is_moved = old.is_some_and(|(_, was_ours)| *was_ours != is_ours);
                let matters = is_moved || facts.matter(old.map(|(facts, _)| facts));
                before.insert(key.clone(), (facts, is_ours));
                matters
            }
            None => {
                before.remove(&key);
                true
            }
        };
        context.enqueue(|object| {
            (matters && ObjectKey::of(object) == key)
                || object.spec.depends_on.iter().any(|reference| {
                    reference.name == key.name
                        && dependency_namespace(object, reference.namespace.as_deref()) == key.namespace
                        && (matters || reference.ready_expr.is_some())
                })
        });
        if now.is_none() {
            context.forget(&key);
        }
    }
}

/// Enqueues the Kustomizations of a source that changed.
async fn follow_source<K>(context: Arc<Context>, kind: SourceKind, changes: impl Stream<Item = ObjectRef<K>>)
where
    K: Source + kube::Resource<DynamicType = ()>,
{
    let mut changes = std::pin::pin!(changes);
    while let Some(changed) = changes.next().await {
        let key = ObjectKey::from(changed);
        context.enqueue(|object| {
            let source = &object.spec.source_ref;
            source.kind == kind && source.name == key.name && source_namespace(object) == key.namespace
        });
    }
}

/// Enqueues Kustomizations whose objects somebody else changed or deleted.
async fn follow_drift(context: Arc<Context>, drifts: impl Stream<Item = Drift>) {
    let mut drifts = std::pin::pin!(drifts);
    while let Some(drift) = drifts.next().await {
        let key = ObjectKey::new(drift.owner.namespace, drift.owner.name);
        tracing::info!(namespace = key.namespace, name = key.name, object = %drift.object, what = ?drift.what, "drift");
        match &drift.by {
            // It is not taken back before the interval; both would do that without end.
            Some(other) => {
                if rivals::lost(&context, &key, &drift.object, other) {
                    context.queue.add(key);
                }
            }
            None => {
                context.memory.with(&key, |entry| entry.drifted = true);
                context.queue.add(key);
            }
        }
    }
}

/// Enqueues Kustomizations that take variables, keys or a kubeconfig from a ConfigMap or Secret that was touched. Only metadata is watched, and
/// none of it kept: whether a value changed is found out by the run.
async fn follow_variables<K>(
    context: Arc<Context>,
    kind: ValuesKind,
    api: Api<PartialObjectMeta<K>>,
    labels: Option<String>,
) where
    K: kube::Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let Some(labels) = labels else {
        return futures::future::pending().await;
    };
    let touched = watcher(api, watcher::Config::default().labels(&labels)).default_backoff();
    let mut touched = std::pin::pin!(touched.touched_objects());
    while let Some(object) = touched.next().await {
        let Ok(object) = object.inspect_err(|error| tracing::warn!(%error, ?kind, "failed to watch")) else {
            continue;
        };
        let touched = ObjectKey::of(&object);
        context.enqueue(|object| {
            let own = ObjectKey::of(object);
            let refers = context.reads(object, kind, &touched);
            if refers {
                context.memory.with(&own, |entry| entry.variables_touched = true);
            }
            refers
        });
    }
}

/// Watches and reconciles until the process is told to stop.
pub async fn run(flags: Flags, kit: Kit) -> anyhow::Result<()> {
    let settings = Settings::of(&flags)?;
    let (kustomizations, kustomizations_changed) = watch_changes(
        scoped_api(&kit.client, &flags.watch),
        watcher::Config::default(),
        |o| Some(Facts::of(o)),
    );
    let (git_repositories, git_changed) = watch_sources::<GitRepository>(&kit.client, &flags.watch);
    let (oci_repositories, oci_changed) = watch_sources::<OCIRepository>(&kit.client, &flags.watch);
    let (artifacts, credentials) = artifact_access::supplied(settings.artifacts, &flags.artifact, &kit);
    let (buckets, buckets_changed) = watch_sources::<Bucket>(&kit.client, &flags.watch);
    let (external, external_changed) = watch_sources::<ExternalArtifact>(&kit.client, &flags.watch);
    let identities = Identities::new(
        kit.client.clone(),
        flags.token,
        settings.policy.object_level_identity,
    );
    let identities = Arc::new(identities.keeping(&flags.artifact.artifact_token_audience));
    let asked = Arc::clone(&identities);
    kit.metrics.token_cache(move || asked.token_cache());
    let in_own_namespace = |name: &Option<String>| {
        let name = name.clone().filter(|name| !name.is_empty());
        name.map(|name| ObjectKey::new(kit.namespace.clone(), name))
    };
    let decryption = decryption::Settings {
        age_secret: in_own_namespace(&flags.sops_age_secret),
        vault_config_map: in_own_namespace(&flags.sops_vault_configmap),
        default_account: flags
            .default_decryption_service_account
            .filter(|name| !name.is_empty()),
    };
    let (decryption, vault) = Decryption::new(kit.client.clone(), Arc::clone(&identities), decryption);
    let options = targets::Options {
        kubeconfig: flags.kubeconfig,
        client: flags.client,
        metrics: kit.metrics.rest().clone(),
        default_account: flags.default_service_account,
        identities: Arc::clone(&identities),
        remote_account: flags.default_kubeconfig_service_account,
    };
    let (targets, drifts) = Targets::new(kit.client.clone(), settings.apply, options);
    let context = Arc::new(Context {
        caches: Caches {
            kustomizations: Cache::new(kustomizations),
            git_repositories,
            oci_repositories,
            buckets,
            external_artifacts: external,
        },
        memory: Memory::default(),
        builds: Builds::default(),
        queue: Queue::new("kustomization", flags.rate, &kit.metrics),
        decryption,
        artifacts: artifact::client::Client::new(artifacts)?,
        events: kit.recorder,
        fail_fast: settings.fail_fast,
        policy: settings.policy,
        prune: PrunePolicy {
            own_namespace: kit.namespace,
            max_share: flags.prune_max_share,
            foreign: flags.prune_foreign,
            handover_patience: flags.handover_patience.try_into()?,
        },
        shard: settings.shard,
        jitter_percentage: flags.jitter.interval_jitter_percentage,
        metrics: kit.metrics,
        client: kit.client,
        targets,
    });
    let ours = Arc::clone(&context);
    let kustomizations = context.caches.kustomizations.store().clone();
    context
        .metrics
        .objects(kustomizations, move |object| ours.is_ours(object));
    let configs = settings.watched_configs;
    let config_maps: Api<PartialObjectMeta<ConfigMap>> = scoped_api(&context.client, &flags.watch);
    let secrets: Api<PartialObjectMeta<Secret>> = scoped_api(&context.client, &flags.watch);
    let follow = futures::future::join5(
        follow_kustomizations(Arc::clone(&context), kustomizations_changed),
        follow_source(Arc::clone(&context), SourceKind::GitRepository, git_changed),
        futures::future::join3(
            follow_source(Arc::clone(&context), SourceKind::OCIRepository, oci_changed),
            follow_source(Arc::clone(&context), SourceKind::Bucket, buckets_changed),
            follow_source(
                Arc::clone(&context),
                SourceKind::ExternalArtifact,
                external_changed,
            ),
        ),
        follow_drift(Arc::clone(&context), drifts),
        futures::future::join(
            follow_variables(
                Arc::clone(&context),
                ValuesKind::ConfigMap,
                config_maps,
                configs.clone(),
            ),
            follow_variables(Arc::clone(&context), ValuesKind::Secret, secrets, configs),
        ),
    );
    tokio::select! {
        _ = follow => anyhow::bail!("the watches ended"),
        () = credentials => anyhow::bail!("the watch of the artifact service's authority ended"),
        () = vault => anyhow::bail!("the watch of the list of Vault servers ended"),
        result = work(Arc::clone(&context), flags.concurrent, kit.token) => result,
    }
}

/// Works on the queue once everything has been listed: a source that is not in the cache yet is not a missing one.
async fn work(context: Arc<Context>, concurrent: u16, token: CancellationToken) -> anyhow::Result<()> {
    let listed = async {
        context.caches.kustomizations.store().wait_until_ready().await?;
        context.caches.git_repositories.wait_until_ready().await?;
        context.caches.oci_repositories.wait_until_ready().await?;
        context.caches.buckets.wait_until_ready().await?;
        context.caches.external_artifacts.wait_until_ready().await
    };
    tokio::select! {
        result = listed => result?,
        () = token.cancelled() => return Ok(()),
    }
    let queue = context.queue.clone();
    queue
        .run(concurrent.into(), token, move |key: ObjectKey| {
            let span = controller_kit::telemetry::reconcile_span::<Kustomization>(&key);
            reconcile(Arc::clone(&context), key).instrument(span)
        })
        .await;
    Ok(())
}

fn watch_sources<K>(
    client: &Client,
    flags: &WatchFlags,
) -> (Store<K>, impl Stream<Item = ObjectRef<K>> + Send + use<K>)
where
    K: Source + kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    watch_changes(scoped_api(client, flags), watcher::Config::default(), |source| {
        Some(SourceFacts::of(source))
    })
}
