//! The watches, and what each change of an object wakes. The only file that knows how events reach the queues.

use std::sync::Arc;

use api::delivery::{EnvironmentPolicy, Freeze, FreezeKind, VerificationPolicy};
use api::flux_operator::{GROUP, OWNER_PREFIX, RECONCILE, ResourceSet, ResourceSetInputProvider};
use api::source::ExternalArtifact;
use cluster_access::targets::{Options, Targets};
use controller_kit::queue::{Queue, Slot};
use controller_kit::record::Writer;
use controller_kit::rules::Changes;
use controller_kit::runtime::{
    Cache, ReconcileTrigger, scoped_api, selecting, watch_changes, watch_into_store,
};
use controller_kit::telemetry::reconcile_span;
use controller_kit::{Context as Kit, ObjectKey};
use futures::stream::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::ResourceExt as _;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::ObjectRef;
use kube_apply::Drift;
use reconcile_kit::freezes::{self, Freezes};
use reconcile_kit::{configs, sources};
use remote_access::identity::Identities;
use resource_set::references::Reference;
use tracing::Instrument as _;
use verification_policy::images::Judge;

use crate::context::{Context, Memory};
use crate::environment::{self, Environments};
use crate::flags::{Flags, NAME};
use crate::{provider, set};

/// Feature gate of identities of ServiceAccounts at cloud providers.
const OBJECT_LEVEL_IDENTITY: &str = "ObjectLevelWorkloadIdentity";

/// Providers that are read at once.
const PROVIDERS: usize = 4;
/// EnvironmentPolicies that are reconciled at once.
const POLICIES: usize = 4;

/// Reconciles until the token is cancelled.
pub(crate) async fn run(flags: Flags, kit: Kit) -> anyhow::Result<()> {
    let watch = &flags.common.watch;
    let (sets, touched_sets) = watch_changes(
        scoped_api(&kit.client, watch),
        selecting(&watch.watch_label_selector),
        |set: &ResourceSet| {
            Some((
                ReconcileTrigger::from_object(set),
                set.annotations().get(RECONCILE).cloned(),
                freezes::marks(set),
            ))
        },
    );
    let (freezes, touched_freezes) = Freezes::new(
        &kit.client,
        watch,
        FreezeKind::ResourceSet,
        (&kit.namespace, flags.freeze_exceptions),
    );
    let (images, touched_rules) = Judge::new(&kit, "ResourceSet", watch, flags.sigstore.root()?);
    // Of all shards: a set may use any of its namespace.
    let (providers, touched_providers) = watch_changes(
        scoped_api(&kit.client, watch),
        selecting(""),
        |provider: &ResourceSetInputProvider| {
            let status = provider.status.as_ref();
            Some((
                ReconcileTrigger::from_object(provider),
                provider.annotations().get(RECONCILE).cloned(),
                provider.labels().clone(),
                status.and_then(|status| status.last_exported_revision.clone()),
            ))
        },
    );
    let (policies, touched_policies) =
        watch_into_store::<EnvironmentPolicy>(scoped_api(&kit.client, watch), watch);
    let (artifacts, touched_artifacts) = sources::watch::<ExternalArtifact>(&kit.client, watch);
    kit.metrics.objects(sets.clone(), |_| true);
    kit.metrics.objects(providers.clone(), |_| true);
    kit.metrics.objects(policies.clone(), |_| true);

    let features = flags.common.features.resolve(&[(OBJECT_LEVEL_IDENTITY, false)])?;
    let has_identities = features.enabled(OBJECT_LEVEL_IDENTITY);
    let token = flags.common.token;
    let identities = Identities::new(
        token.token_cache_max_size,
        token.token_cache_max_duration,
        has_identities,
        "",
    );
    let workloads = workload_identity::Identities::new(kit.client.clone(), token, has_identities);
    let settings = kube_apply::Settings {
        field_manager: NAME.to_owned(),
        group: OWNER_PREFIX.to_owned(),
        policy_group: Some(GROUP.to_owned()),
        ..kube_apply::Settings::default()
    };
    let options = Options {
        kubeconfig: flags.kubeconfig,
        client: flags.common.client.clone(),
        name: kit.name,
        metrics: kit.metrics.rest().clone(),
        default_account: flags.default_service_account.clone(),
        identities: Arc::new(workloads),
        remote_account: None,
    };
    let (targets, drifts) = Targets::new(kit.client.clone(), settings, options);
    let is_locked = flags.common.acl.no_cross_namespace_refs;
    let context = Arc::new(Context {
        client: kit.client.clone(),
        sets: Writer {
            client: kit.client.clone(),
            cache: Cache::new(sets),
            recorder: kit.recorder.clone(),
            metrics: kit.metrics.clone(),
            manager: NAME,
        },
        set_queue: Queue::new("resourceset", flags.common.rate, &kit.metrics),
        providers: Writer {
            client: kit.client.clone(),
            cache: Cache::new(providers),
            recorder: kit.recorder.clone(),
            metrics: kit.metrics.clone(),
            manager: NAME,
        },
        provider_queue: Queue::new("resourcesetinputprovider", flags.common.rate, &kit.metrics),
        artifacts,
        environments: Environments {
            writer: Writer {
                client: kit.client.clone(),
                cache: Cache::new(policies),
                recorder: kit.recorder.clone(),
                metrics: kit.metrics.clone(),
                manager: NAME,
            },
            queue: Queue::new("environmentpolicy", flags.common.rate, &kit.metrics),
            looks: Default::default(),
        },
        targets,
        clients: transport::http::Clients::default(),
        registries: oci_client::registry::Memory::default(),
        identities: identities.locked(is_locked),
        memory: Memory::default(),
        freezes,
        images,
        shard: controller_kit::flags::parse_label_selector(&watch.watch_label_selector)?,
        is_locked,
        own_namespace: kit.namespace.clone(),
        shutdown: kit.token.clone(),
        jitter_percentage: flags.common.jitter.interval_jitter_percentage,
    });
    let tokens = context.identities.clone();
    kit.metrics.token_cache(move || tokens.token_cache());

    let labels = Some(watch.watch_configs_label_selector.clone()).filter(|labels| !labels.is_empty());
    let config_maps: Api<PartialObjectMeta<ConfigMap>> = scoped_api(&kit.client, watch);
    let secrets: Api<PartialObjectMeta<Secret>> = scoped_api(&kit.client, watch);
    let touched = |kind: &'static str| {
        let context = Arc::clone(&context);
        move |key: ObjectKey| {
            let reference = Reference {
                kind: kind.to_owned(),
                namespace: key.namespace,
                name: key.name,
            };
            let users = context.memory.users(&reference).into_iter();
            users.for_each(|set| context.wake(set));
        }
    };
    tokio::select! {
        () = follow_sets(touched_sets, &context) => anyhow::bail!("the watch of ResourceSets ended"),
        () = follow_providers(touched_providers, &context) => anyhow::bail!("the watch of ResourceSetInputProviders ended"),
        () = follow_policies(touched_policies, &context) => anyhow::bail!("the watch of EnvironmentPolicies ended"),
        () = follow_artifacts(touched_artifacts, &context) => anyhow::bail!("the watch of ExternalArtifacts ended"),
        () = follow_freezes(touched_freezes, &context) => anyhow::bail!("the watch of Freezes ended"),
        () = follow_images(touched_rules, &context) => anyhow::bail!("the watch of VerificationPolicies ended"),
        () = follow_drift(drifts, &context) => anyhow::bail!("the watches of applied objects ended"),
        () = configs::follow(config_maps, labels.clone(), touched("ConfigMap")) => anyhow::bail!("the watch of ConfigMaps ended"),
        () = configs::follow(secrets, labels, touched("Secret")) => anyhow::bail!("the watch of Secrets ended"),
        () = async {
            listed(&context).await;
            let of_providers = {
                let context = context.clone();
                move |key: ObjectKey| {
                    let (context, span) = (context.clone(), reconcile_span::<ResourceSetInputProvider>(&key));
                    provider::reconcile(key, context).instrument(span)
                }
            };
            let of_policies = {
                let context = context.clone();
                move |key: ObjectKey, slot: Slot| {
                    let (context, span) = (context.clone(), reconcile_span::<EnvironmentPolicy>(&key));
                    environment::reconcile(key, context, slot).instrument(span)
                }
            };
            let of_sets = {
                let context = context.clone();
                move |key: ObjectKey, slot: Slot| {
                    let (context, span) = (context.clone(), reconcile_span::<ResourceSet>(&key));
                    set::reconcile(key, context, slot).instrument(span)
                }
            };
            tokio::join!(
                context.provider_queue.run(PROVIDERS, kit.token.clone(), of_providers),
                context.environments.queue.run_in_slots(POLICIES, flags.graceful_shutdown_timeout, kit.token.clone(), of_policies),
                context.set_queue.run_in_slots(
                    flags.concurrent.into(),
                    flags.graceful_shutdown_timeout,
                    kit.token.clone(),
                    of_sets,
                ),
            );
        } => Ok(()),
    }
}

/// Waits until all objects are known: a provider that is not in the cache yet is not a missing one.
async fn listed(context: &Context) {
    // A store is dropped with its watch only, and that ends the process.
    let _ = tokio::join!(
        context.sets.cache.store().wait_until_ready(),
        context.providers.cache.store().wait_until_ready(),
        context.artifacts.wait_until_ready(),
        context.environments.writer.cache.store().wait_until_ready(),
        context.freezes.wait_until_ready(),
        context.images.wait_until_ready(),
    );
}

async fn follow_sets(touched: impl Stream<Item = ObjectRef<ResourceSet>>, context: &Context) {
    let mut touched = std::pin::pin!(touched);
    while let Some(set) = touched.next().await {
        let key = ObjectKey::from(set);
        context.wake_policies(&key);
        context.wake(key);
    }
}

/// A provider is read, and ResourceSets that use it are rendered.
async fn follow_providers(
    touched: impl Stream<Item = ObjectRef<ResourceSetInputProvider>>,
    context: &Context,
) {
    let mut touched = std::pin::pin!(touched);
    while let Some(provider) = touched.next().await {
        let key = ObjectKey::from(provider);
        let namespace = key.namespace.clone();
        context.provider_queue.add(key);
        // Its labels before are not known: those with selectors look again.
        let sets = context.sets.cache.store().state();
        let users = sets.iter().filter(|set| {
            set.metadata.namespace.as_deref() == Some(&namespace) && !set.spec.inputs_from.is_empty()
        });
        users.for_each(|set| {
            let key = ObjectKey::from_object(&**set);
            context.wake_policies(&key);
            context.wake(key);
        });
    }
}

/// A policy is followed, and its ResourceSet renders what it admits: a suspended one admits everything.
async fn follow_policies(touched: impl Stream<Item = ObjectRef<EnvironmentPolicy>>, context: &Context) {
    let mut touched = std::pin::pin!(touched);
    while let Some(policy) = touched.next().await {
        let known = context.environments.writer.cache.get(&policy);
        let key = ObjectKey::from(policy);
        if let Some(policy) = known {
            context.wake(environment::set_of(&policy, &key));
        }
        context.environments.queue.add(key);
    }
}

async fn follow_artifacts(touched: impl Stream<Item = ObjectRef<ExternalArtifact>>, context: &Context) {
    let mut touched = std::pin::pin!(touched);
    while touched.next().await.is_some() {
        let providers = context.providers.cache.store().state();
        let readers = providers
            .iter()
            .filter(|provider| !provider.spec.selectors.is_empty());
        readers.for_each(|provider| context.provider_queue.add(ObjectKey::from_object(&**provider)));
    }
}

/// ResourceSets that a changed Freeze concerns look again. No run that is under way is broken off for it.
async fn follow_freezes(touched: Changes<Freeze>, context: &Context) {
    let changed = |concerned: &dyn Fn(&ResourceSet) -> bool| {
        let sets = context.sets.cache.store().state();
        let concerned = sets.iter().filter(|set| concerned(set));
        concerned.for_each(|set| context.set_queue.add(ObjectKey::from_object(&**set)));
    };
    context.freezes.follow(touched, changed).await;
}

/// ResourceSets whose images another policy applies to, by where they are, and where their objects are.
async fn follow_images(touched: Changes<VerificationPolicy>, context: &Context) {
    let changed = |concerns: &dyn Fn(&str, &[&str]) -> bool| {
        for set in context.sets.cache.store().state() {
            let key = ObjectKey::from_object(&*set);
            let inventory = set.status.as_ref().and_then(|status| status.inventory.as_ref());
            let managed = reconcile_kit::inventory::read(inventory);
            let to: Vec<_> = managed.iter().map(|(id, _)| id.namespace.as_str()).collect();
            if context.is_ours(&*set) && concerns(&key.namespace, &to) {
                context.set_queue.add(key);
            }
        }
    };
    context.images.follow(touched, changed).await;
}

/// ResourceSets whose objects someone else changed or deleted are applied again.
async fn follow_drift(drifts: impl Stream<Item = Drift>, context: &Context) {
    let mut drifts = std::pin::pin!(drifts);
    while let Some(drift) = drifts.next().await {
        // Another owner would take it back without end: it is looked at again at the interval.
        if drift.by.is_some() {
            continue;
        }
        let key = ObjectKey::new(drift.owner.namespace, drift.owner.name);
        tracing::info!(namespace = key.namespace, name = key.name, object = %drift.object, what = ?drift.what, "drift");
        context.set_queue.add(key);
    }
}
