//! The watches, and what each change of an object wakes. The only file that knows how events reach the queue.

use std::collections::HashMap;
use std::sync::Arc;

use api::delivery::FreezeKind;
use api::kustomize::{Kustomization, SourceKind};
use api::meta::ValuesKind;
use api::source::{Bucket, ExternalArtifact, GitRepository, OCIRepository, Source};
use controller_kit::runtime::{ReconcileTrigger, scoped_api, watch_changes};
use controller_kit::{Context as Kit, ObjectKey};
use futures::stream::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube_apply::Drift;
use reconcile_kit::base;
use reconcile_kit::freezes::{self, Freezes};
use reconcile_kit::references::Target;
use reconcile_kit::setup::{self, Setup};
use reconcile_kit::statements::Statements;
use reconcile_kit::{configs, dependencies, sources};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use verification_policy::images::Judge;

use crate::builds::Builds;
use crate::context::Context;
use crate::decryption::{self, Decryption};
use crate::flags::{Flags, PrunePolicy, Settings};
use crate::good::Store;
use crate::memory::{self, Memory};
use crate::reconcile::observe::source_namespace;
use crate::reconcile::{fights, inventory, reconcile, rivals, rollback};
use crate::sources::Sources;

/// Flux's field manager of the status.
const STATUS_MANAGER: &str = "gotk-kustomize-controller";

/// Facts of a Kustomization that concern it and its dependents. Our own progress concerns no one.
#[derive(PartialEq)]
struct Facts {
    own: ReconcileTrigger,
    /// A confirmation wakes the object, though it is no part of the spec.
    confirmation: Option<String>,
    /// So do the wishes about what is unhealthy.
    rollback: [Option<String>; 5],
    /// What decides which Freezes apply to it.
    freezes: u64,
    ready: bool,
    applied: Option<String>,
    /// All that an expression of a dependent may look at.
    whole: u64,
}

impl Facts {
    fn from_object(object: &Kustomization) -> Self {
        let applied = object
            .status
            .as_ref()
            .and_then(|s| s.last_applied_revision.clone());
        Self {
            own: ReconcileTrigger::from_object(object),
            confirmation: crate::confirmation::confirmation(object).map(str::to_owned),
            rollback: rollback::wishes(object),
            freezes: freezes::marks(object),
            ready: dependencies::is_ready(object),
            applied,
            whole: base::digest(object),
        }
    }

    /// Returns whether it matters to the object itself and to dependents that only ask whether it is ready.
    fn matter(&self, before: Option<&Self>) -> bool {
        before.is_none_or(|before| {
            let of = |facts: &'_ Self| (facts.ready, facts.applied.clone(), facts.confirmation.clone());
            self.own != before.own
                || self.rollback != before.rollback
                || self.freezes != before.freezes
                || of(self) != of(before)
        })
    }
}

/// Enqueues Kustomizations as they change, and those that depend on them.
async fn follow_kustomizations(context: Arc<Context>, changes: impl Stream<Item = ObjectRef<Kustomization>>) {
    let mut changes = std::pin::pin!(changes);
    let mut before: HashMap<ObjectKey, (Facts, bool)> = HashMap::new();
    while let Some(changed) = changes.next().await {
        let key = ObjectKey::from(changed);
        memory::heir_moved(&context.memory, &key)
            .into_iter()
            .for_each(|waiting| context.base.queue.add(waiting));
        let now = context.base.objects.get(&key.object_ref());
        let matters = match &now {
            Some(object) => {
                let (facts, is_ours) = (Facts::from_object(object), context.base.is_ours(object));
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
        let source = now.as_ref().map(|object| {
            let source = &object.spec.source_ref;
            let key = ObjectKey::new(source_namespace(object), &*source.name);
            Target::Source(source.kind.as_str(), key)
        });
        context.base.note(&key, now.as_deref(), source);
        if matters && now.as_ref().is_some_and(|object| context.base.is_ours(object)) {
            context.base.queue.add(key.clone());
        }
        let dependents = context.base.users(&Target::Object(key.clone())).into_iter();
        dependents
            .filter(|object| dependencies::is_concerned(&**object, &key, matters))
            .for_each(|object| context.base.queue.add(ObjectKey::from_object(&*object)));
        if now.is_none() {
            context.forget(&key);
            let freed = memory::rival_gone(&context.memory, &key).into_iter();
            freed.for_each(|other| context.base.queue.add(other));
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
        let users = context.base.users(&Target::Source(kind.as_str(), key));
        users
            .iter()
            .for_each(|object| context.base.queue.add(ObjectKey::from_object(&**object)));
    }
}

/// Enqueues Kustomizations whose objects someone else changed or deleted.
async fn follow_drift(context: Arc<Context>, drifts: impl Stream<Item = Drift>) {
    let mut drifts = std::pin::pin!(drifts);
    while let Some(drift) = drifts.next().await {
        let key = ObjectKey::new(drift.owner.namespace, drift.owner.name);
        tracing::info!(namespace = key.namespace, name = key.name, object = %drift.object, what = ?drift.what, "drift");
        match &drift.by {
            // It is not taken back before the interval; both would do that without end.
            Some(other) => {
                if rivals::lost(&context, &key, &drift.object, other) {
                    context.base.queue.add(key);
                }
            }
            None => match fights::put_off(&context, &key, &drift.object) {
                Some(delay) => context.base.queue.add_after(key, delay),
                None => {
                    context.memory.with(&key, |entry| entry.drifted = true);
                    context.base.queue.add(key);
                }
            },
        }
    }
}

/// Enqueues Kustomizations that take variables, keys or a kubeconfig from a ConfigMap or Secret that was touched.
fn touched(context: &Context, kind: ValuesKind, config: &ObjectKey) {
    context.enqueue(|object| {
        let refers = context.reads(object, kind, config);
        if refers {
            let own = ObjectKey::from_object(object);
            context.memory.with(&own, |entry| entry.variables_touched = true);
        }
        refers
    });
}

/// Enqueues Kustomizations whose images another policy applies to: by where they are, and where their objects are.
fn ruled_anew(context: &Context, concerns: &dyn Fn(&str, &[&str]) -> bool) {
    context.enqueue(|object| {
        let own = ObjectKey::from_object(object);
        let concerned = concerns(&own.namespace, &[]) || {
            let managed = inventory::managed_before(object);
            let to: Vec<_> = managed.iter().map(|(id, _)| id.namespace.as_str()).collect();
            concerns(&own.namespace, &to)
        };
        if concerned {
            context.memory.with(&own, |entry| entry.variables_touched = true);
        }
        concerned
    });
}

/// Watches and reconciles until the process is told to stop.
pub async fn run(flags: Flags, kit: Kit) -> anyhow::Result<()> {
    let settings = Settings::from_flags(&flags)?;
    let delivery = flags.delivery.clone();
    let watch = &delivery.common.watch;
    let (kustomizations, kustomizations_changed) =
        watch_changes(scoped_api(&kit.client, watch), watcher::Config::default(), |o| {
            Some(Facts::from_object(o))
        });
    let (git_repositories, git_changed) = sources::watch::<GitRepository>(&kit.client, watch);
    let (oci_repositories, oci_changed) = sources::watch::<OCIRepository>(&kit.client, watch);
    let (buckets, buckets_changed) = sources::watch::<Bucket>(&kit.client, watch);
    let (external, external_changed) = sources::watch::<ExternalArtifact>(&kit.client, watch);
    let (freezes, freezes_changed) = Freezes::new(
        &kit.client,
        watch,
        FreezeKind::Kustomization,
        (&kit.namespace, delivery.freeze_exceptions),
    );
    let (images, policies_changed) = Judge::new(&kit, "Kustomization", watch, flags.sigstore.root()?);
    let object_level = settings.policy.object_level_identity;
    let setup = Setup::new(&kit, &delivery, settings.apply, settings.artifacts, object_level)?;
    let (decryption, vault) = Decryption::new(
        kit.client.clone(),
        setup.identities,
        decryption_settings(&flags, &kit.namespace),
    );
    let own_namespace = kit.namespace.clone();
    let scope = watch.namespace().map(str::to_owned);
    let context = Arc::new(Context {
        base: setup::base(
            kit.clone(),
            &delivery,
            kustomizations,
            setup.targets,
            settings.shard,
            STATUS_MANAGER,
        ),
        sources: Sources {
            git_repositories,
            oci_repositories,
            buckets,
            external_artifacts: external,
        },
        memory: Memory::default(),
        builds: Builds::default(),
        decryption,
        good: Store::new(
            kit.client.clone(),
            &kit.namespace,
            u64::from(flags.rollback_storage) << 20,
        ),
        freezes,
        images,
        remote: settings.remote,
        statements: flags
            .delivery_statements_secret
            .as_deref()
            .map(|secret| Statements::new(kit.client.clone(), &kit.namespace, secret)),
        artifacts: setup.artifacts,
        fail_fast: settings.fail_fast,
        policy: settings.policy,
        prune: prune_policy(&flags, own_namespace)?,
    });
    let labels = settings.watched_configs;
    let config_maps: Api<PartialObjectMeta<ConfigMap>> = scoped_api(&context.base.client, watch);
    let secrets: Api<PartialObjectMeta<Secret>> = scoped_api(&context.base.client, watch);
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
        futures::future::join3(
            follow_drift(Arc::clone(&context), setup.drifts),
            context
                .freezes
                .follow(freezes_changed, |concerned: &dyn Fn(&Kustomization) -> bool| {
                    context.enqueue(concerned);
                }),
            context.images.follow(policies_changed, |concerns| {
                ruled_anew(&context, concerns);
            }),
        ),
        futures::future::join(
            configs::follow(config_maps, labels.clone(), |key| {
                touched(&context, ValuesKind::ConfigMap, &key);
            }),
            configs::follow(secrets, labels, |key| {
                touched(&context, ValuesKind::Secret, &key);
            }),
        ),
    );
    tokio::select! {
        _ = follow => anyhow::bail!("the watches ended"),
        () = setup.credentials => anyhow::bail!("the watch of the artifact service's authority ended"),
        () = vault => anyhow::bail!("the watch of the list of Vault servers ended"),
        result = work(Arc::clone(&context), flags.concurrent, scope, kit.token) => result,
    }
}

/// Works on the queue once everything has been listed: a source that is not in the cache yet is not a missing one.
async fn work(
    context: Arc<Context>,
    concurrent: u16,
    scope: Option<String>,
    token: CancellationToken,
) -> anyhow::Result<()> {
    let listed = async {
        context.base.objects.store().wait_until_ready().await?;
        context.sources.git_repositories.wait_until_ready().await?;
        context.sources.oci_repositories.wait_until_ready().await?;
        context.sources.buckets.wait_until_ready().await?;
        context.sources.external_artifacts.wait_until_ready().await?;
        context.freezes.wait_until_ready().await;
        context.images.wait_until_ready().await;
        Ok::<_, anyhow::Error>(())
    };
    tokio::select! {
        result = listed => result?,
        () = token.cancelled() => return Ok(()),
    }
    tokio::spawn(sweep(Arc::clone(&context), scope));
    let queue = context.base.queue.clone();
    queue
        .run(concurrent.into(), token, move |key: ObjectKey| {
            let span = controller_kit::telemetry::reconcile_span::<Kustomization>(&key);
            reconcile(Arc::clone(&context), key).instrument(span)
        })
        .await;
    Ok(())
}

/// Deletes what is kept of Kustomizations that went while no one looked. Those of other namespaces may be another process's.
async fn sweep(context: Arc<Context>, scope: Option<String>) {
    if let Err(error) = swept(&context, scope.as_deref()).await {
        // The next start tries it again.
        let error = error_chain::chain(&*error);
        tracing::warn!(error, "failed to delete records of Kustomizations that are gone");
    }
}

async fn swept(
    context: &Context,
    scope: Option<&str>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    for (key, uid) in context.good.all().await? {
        let wants = |object: &Kustomization| {
            object.metadata.uid.as_deref() == Some(&*uid)
                && (rollback::is_kept(object) || context.freezes.cover(object))
        };
        let known = context.base.objects.get(&key.object_ref());
        let is_elsewhere = scope.is_some_and(|scope| scope != key.namespace);
        if is_elsewhere || known.is_some_and(|object| wants(&object)) {
            continue;
        }
        // What was made just now may not have been seen yet.
        let api: Api<Kustomization> = Api::namespaced(context.base.client.clone(), &key.namespace);
        if !api.get_opt(&key.name).await?.is_some_and(|object| wants(&object)) {
            context.good.forget(&uid).await?;
        }
    }
    Ok(())
}

/// Which keys and servers decryption may use by default.
fn decryption_settings(flags: &Flags, namespace: &str) -> decryption::Settings {
    let in_own_namespace = |name: &Option<String>| {
        let name = name.clone().filter(|name| !name.is_empty());
        name.map(|name| ObjectKey::new(namespace, name))
    };
    decryption::Settings {
        age_secret: in_own_namespace(&flags.sops_age_secret),
        vault_config_map: in_own_namespace(&flags.sops_vault_configmap),
        default_account: flags
            .default_decryption_service_account
            .clone()
            .filter(|name| !name.is_empty()),
    }
}

/// Objects that are not pruned without confirmation, from flags.
fn prune_policy(flags: &Flags, own_namespace: String) -> anyhow::Result<PrunePolicy> {
    Ok(PrunePolicy {
        own_namespace,
        max_share: flags.prune_max_share,
        foreign: flags.prune_foreign,
        handover_patience: flags.handover_patience.try_into()?,
    })
}
