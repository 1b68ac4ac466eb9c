//! Watches, queues and workers: which object is reconciled when. The only file that knows the API server's streams.
//!
//! The order of a start: open the store and verify it, serve it ([`Plane`]), say that this process is ready, watch. With a store in each
//! replica the first two come before leadership ([`standby`](crate::standby)). On shutdown the workers end first, the servers last.

use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use api::delivery::VerificationPolicy;
use api::meta::{StatusObject as _, TRUE, condition_types};
use api::source::{Bucket, ExternalArtifact, GitRepository, HelmChart, HelmRepository, OCIRepository};
use api::source_extensions::ArtifactGenerator;
use artifact::store::{self, Change, Store};
use controller_kit::flags::parse_label_selector;
use controller_kit::queue::Queue;
use controller_kit::rules::Changes;
use controller_kit::runtime::{
    Cache, ReconcileTrigger, scoped_api, selecting, watch_changes, watch_into_store,
};
use controller_kit::telemetry::reconcile_span;
use controller_kit::{Context as Kit, ObjectKey};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Secret;
use kube::core::{NamespaceResourceScope, PartialObjectMeta, SelectorExt as _};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource};
use tokio::sync::broadcast::{self, error::RecvError};
use tracing::Instrument as _;
use verification_policy::sources::Judge;

use crate::backup::Backup;
use crate::flags::{Flags, Settings};
use crate::garbage;
use crate::generator;
use crate::kind::Kind;
use crate::metrics::Meters;
use crate::reconcile::fetch::Fetcher;
use crate::reconcile::secrets_read::SecretsRead;
use crate::reconcile::store::AdvertisedAddress;
use crate::reconcile::{Context, reconcile};
use crate::serve::plane::{Around, Plane, STORAGE_CHECK, end};

/// Changes of sources that a kind may be behind before it looks at all of its objects.
const CHANGES: usize = 1024;

/// Reconciles all kinds until the token is cancelled.
pub(crate) async fn run(flags: Flags, kit: Kit, served: Option<Plane>) -> anyhow::Result<()> {
    let plane = match served {
        Some(plane) => plane,
        None => {
            let around = Around {
                client: &kit.client,
                namespace: &kit.namespace,
                metrics: &kit.metrics,
            };
            Plane::start(Settings::from_flags(&flags)?, false, &around).await?
        }
    };
    let Plane {
        settings,
        store,
        fetcher,
        meters,
        mut servers,
        stop,
        is_copy: _is_copy,
    } = plane;
    kit.ready.set(STORAGE_CHECK, true);
    meters.synced(true);
    let place = (kit.client.clone(), kit.namespace.as_str());
    let backup = settings
        .backup
        .map(|spec| Backup::new(spec, place, store.clone(), fetcher.clone(), meters.backup.clone()));
    let (policies, policies_changed) = Judge::new(&kit, &flags.common.watch);
    let shared = Shared {
        policies: Arc::new(policies),
        ruled: broadcast::channel(CHANGES).0,
        flags,
        kit,
        store,
        fetcher,
        backup,
        meters: meters.clone(),
        address: AdvertisedAddress::new(&settings.advertised),
        changed: broadcast::channel(CHANGES).0,
        secrets_read: SecretsRead::default(),
        touched_secrets: broadcast::channel(CHANGES).0,
    };
    let token = shared.kit.token.clone();
    let obey = shared.follow_policies(policies_changed);
    let work = async {
        // Nothing is fetched before it is known what may be.
        let known = tokio::select! {
            () = shared.policies.wait_until_ready() => true,
            () = token.cancelled() => false,
        };
        if !known {
            return;
        }
        tokio::join!(
            shared.reconcile_all::<GitRepository>(),
            shared.reconcile_all::<OCIRepository>(),
            shared.reconcile_all::<HelmRepository>(),
            shared.tell_of_refreshed_indexes(),
            shared.reconcile_all::<HelmChart>(),
            shared.reconcile_all::<Bucket>(),
            shared.generate(),
            shared.tell_of_artifacts(),
            shared.tell_of_secrets(),
            shared.back_up(),
            garbage::collect(
                shared.store.clone(),
                settings.retention.retention_ttl,
                &meters,
                token.clone()
            ),
        );
    };
    tokio::select! {
        ((), ()) = async { tokio::join!(work, obey) } => {}
        // They end when they are told to, which is below.
        Some(ended) = servers.join_next() => ended??,
    }
    end(settings.copies.is_some(), &stop, &mut servers).await;
    Ok(())
}

/// Context that all kinds share.
struct Shared {
    flags: Flags,
    kit: Kit,
    store: Store,
    fetcher: Fetcher,
    backup: Option<Backup>,
    policies: Arc<Judge>,
    /// VerificationPolicies that changed, as they are and as they were.
    ruled: broadcast::Sender<Vec<Arc<VerificationPolicy>>>,
    meters: Meters,
    address: AdvertisedAddress,
    /// Sources whose spec or artifact changed, for the kinds that build upon them.
    changed: broadcast::Sender<store::ObjectKey>,
    /// Which objects read which Secrets.
    secrets_read: SecretsRead,
    /// Secrets that were touched.
    touched_secrets: broadcast::Sender<ObjectKey>,
}

impl Shared {
    /// Watches the objects of a kind and reconciles them.
    async fn reconcile_all<K: Kind>(&self) {
        let (kit, flags) = (&self.kit, &self.flags);
        let (objects, touched) =
            watch_into_store::<K>(scoped_api(&kit.client, &flags.common.watch), &flags.common.watch);
        kit.metrics.objects(objects.clone(), |_| true);
        let queue = Queue::new(&K::NAME.to_lowercase(), flags.common.rate, &kit.metrics);
        let context = Arc::new(Context {
            client: kit.client.clone(),
            cache: Cache::new(objects),
            store: self.store.clone(),
            fetcher: self.fetcher.clone(),
            policies: Arc::clone(&self.policies),
            backup: self.backup.clone(),
            recorder: kit.recorder.clone(),
            metrics: kit.metrics.clone(),
            fetches: self.meters.fetches.of_kind(K::NAME),
            address: self.address.clone(),
            field_manager: kit.name.to_owned(),
            jitter_percentage: flags.common.jitter.interval_jitter_percentage,
            secrets_read: self.secrets_read.clone(),
            shutdown: kit.token.clone(),
        });
        let wake = self.wake_dependents(context.cache.clone(), queue.clone());
        let mend = self.wake_failed(context.cache.clone(), queue.clone());
        let obey = self.wake_ruled(context.cache.clone(), queue.clone());
        let feed = {
            let (queue, changed) = (queue.clone(), self.changed.clone());
            touched.for_each(move |reference| {
                let key = ObjectKey::from(reference);
                // No one may listen.
                let _ = changed.send(store::ObjectKey::new(K::NAME, &key.namespace, &key.name));
                queue.add(key);
                std::future::ready(())
            })
        };
        let work = queue.run(flags.concurrent, kit.token.clone(), move |key: ObjectKey| {
            let span = reconcile_span::<K>(&key);
            reconcile(key, context.clone()).instrument(span)
        });
        tokio::select! {
            () = work => {}
            // A watch never ends by itself.
            () = feed => {}
            () = mend => {}
            () = obey => {}
            () = wake, if K::HAS_INPUTS => {}
        }
    }

    /// Watches generators, their sources and what they made, and reconciles them.
    async fn generate(&self) {
        let (kit, flags) = (&self.kit, &self.flags);
        // Suspension is an annotation there, of which the generation does not tell.
        let (generators, touched) = watch_changes(
            scoped_api(&kit.client, &flags.common.watch),
            selecting(&flags.common.watch.watch_label_selector),
            |object: &ArtifactGenerator| Some((ReconcileTrigger::from_object(object), object.suspended())),
        );
        let artifacts = scoped_api(&kit.client, &flags.common.watch);
        let (artifacts, edited) = watch_changes(artifacts, watcher::Config::default(), fingerprint);
        kit.metrics.objects(generators.clone(), |_| true);
        let shard = parse_label_selector(&flags.common.watch.watch_label_selector);
        kit.metrics
            .objects(artifacts.clone(), move |artifact: &ExternalArtifact| {
                // Each shard sees all of them.
                let labels = artifact.metadata.labels.clone().unwrap_or_default();
                shard.as_ref().is_ok_and(|shard| shard.matches(&labels))
            });
        let queue = Queue::new("artifactgenerator", flags.common.rate, &kit.metrics);
        let context = Arc::new(generator::Context {
            client: kit.client.clone(),
            generators: Cache::new(generators),
            artifacts: Cache::new(artifacts),
            store: self.store.clone(),
            fetcher: self.fetcher.clone(),
            policies: Arc::clone(&self.policies),
            recorder: kit
                .recorder
                .beside(kit.client.clone(), generator::MANAGER, kit.token.clone()),
            metrics: kit.metrics.clone(),
            received: self.meters.fetches.received("ArtifactGenerator"),
            address: self.address.clone(),
            no_cross_namespace_refs: flags.common.acl.no_cross_namespace_refs,
            jitter_percentage: flags.common.jitter.interval_jitter_percentage,
            shutdown: kit.token.clone(),
            memory: generator::Memory::default(),
        });
        let feed = {
            let queue = queue.clone();
            touched.for_each(move |reference| {
                queue.add(ObjectKey::from(reference));
                std::future::ready(())
            })
        };
        let tell = edited.for_each(|reference| {
            let key = ObjectKey::from(reference);
            // No one may listen.
            let key = store::ObjectKey::new("ExternalArtifact", &key.namespace, &key.name);
            let _ = self.changed.send(key);
            std::future::ready(())
        });
        let wake = self.wake_generators(context.generators.clone(), queue.clone());
        let obey = self.wake_ruled(context.generators.clone(), queue.clone());
        let work = async {
            // Who keeps an ExternalArtifact is known only when all are.
            let (artifacts, generators) = (context.artifacts.clone(), context.generators.clone());
            let listed = futures::future::join(
                artifacts.store().wait_until_ready(),
                generators.store().wait_until_ready(),
            );
            tokio::select! {
                _ = listed => {}
                () = kit.token.cancelled() => return,
            }
            let run = move |key: ObjectKey| {
                let span = reconcile_span::<ArtifactGenerator>(&key);
                generator::reconcile(key, context.clone()).instrument(span)
            };
            queue.run(flags.concurrent, kit.token.clone(), run).await;
        };
        tokio::select! {
            () = work => {}
            // They never end by themselves.
            () = feed => {}
            () = tell => {}
            () = wake => {}
            () = obey => {}
        }
    }

    /// Queues the generators that are made of a source which changed, or that made it. Ends with the process.
    async fn wake_generators(&self, cache: Cache<ArtifactGenerator>, queue: Queue<ObjectKey>) {
        let mut changed = self.changed.subscribe();
        loop {
            let source = match changed.recv().await {
                Ok(source) => Some(source),
                Err(RecvError::Lagged(_)) => None,
                Err(RecvError::Closed) => return,
            };
            for object in cache.store().state() {
                let is_concerned = |source| generator::concerns(&object, source);
                if source.as_ref().is_none_or(is_concerned) {
                    queue.add(ObjectKey::from_object(&*object));
                }
            }
        }
    }

    /// Queues the objects of a kind that build upon a source which changed. Ends with the process.
    async fn wake_dependents<K: Kind>(&self, cache: Cache<K>, queue: Queue<ObjectKey>) {
        let mut changed = self.changed.subscribe();
        loop {
            let source = match changed.recv().await {
                Ok(source) => Some(source),
                Err(RecvError::Lagged(_)) => None,
                Err(RecvError::Closed) => return,
            };
            for object in cache.store().state() {
                let is_concerned = |source| object.inputs().contains(source);
                if source.as_ref().is_none_or(is_concerned) {
                    queue.add(ObjectKey::from_object(&*object));
                }
            }
        }
    }

    /// Passes on the VerificationPolicies that change. Ends with the process.
    async fn follow_policies(&self, changes: Changes<VerificationPolicy>) {
        let follow = self.policies.follow(changes, |both| {
            let _ = self.ruled.send(both.to_vec()); // no one may listen
        });
        tokio::select! {
            () = follow => {}
            () = self.kit.token.cancelled() => {}
        }
    }

    /// Queues the objects of a kind to which a VerificationPolicy applies that changed. Ends with the process.
    async fn wake_ruled<K>(&self, cache: Cache<K>, queue: Queue<ObjectKey>)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Send + Sync + 'static,
    {
        let mut ruled = self.ruled.subscribe();
        loop {
            let policies = match ruled.recv().await {
                Ok(policies) => Some(policies),
                Err(RecvError::Lagged(_)) => None,
                Err(RecvError::Closed) => return,
            };
            for object in cache.store().state() {
                let key = ObjectKey::from_object(&*object);
                let is_concerned = |policies: &Vec<_>| self.policies.concerns(policies, &key.namespace);
                if policies.as_ref().is_none_or(is_concerned) {
                    queue.add(key);
                }
            }
        }
    }

    /// Queues the objects of a kind that are not ready and read a Secret which was touched. Ends with the process.
    async fn wake_failed<K: Kind>(&self, cache: Cache<K>, queue: Queue<ObjectKey>) {
        let mut touched = self.touched_secrets.subscribe();
        loop {
            let secret = match touched.recv().await {
                Ok(secret) => Some(secret),
                Err(RecvError::Lagged(_)) => None,
                Err(RecvError::Closed) => return,
            };
            for key in self.secrets_read.readers(secret.as_ref(), K::NAME) {
                let object = cache.get(&key.object_ref());
                let is_ready = |object: Arc<K>| {
                    let ready = object.condition(condition_types::READY);
                    ready.is_some_and(|ready| ready.status == TRUE)
                };
                if !object.is_some_and(is_ready) {
                    queue.add(key);
                }
            }
        }
    }

    /// Tells of Secrets that were touched, and of all that are listed: one may have come between an object's look at it and
    /// the list. Only metadata is watched, and none of it kept. Ends with the process.
    async fn tell_of_secrets(&self) {
        let labels = self.flags.common.watch.watched_configs();
        let secrets: Api<PartialObjectMeta<Secret>> = scoped_api(&self.kit.client, &self.flags.common.watch);
        let watch = watcher(secrets, watcher::Config::default().labels(&labels)).default_backoff();
        let mut touched = std::pin::pin!(watch.touched_objects());
        loop {
            let secret = tokio::select! {
                () = self.kit.token.cancelled() => return,
                secret = touched.next() => secret,
            };
            match secret {
                None => return,
                Some(Ok(secret)) => drop(self.touched_secrets.send(ObjectKey::from_object(&secret))), // nobody may listen
                Some(Err(error)) => tracing::warn!(%error, "failed to watch Secrets"),
            }
        }
    }

    /// Puts artifacts into the bucket of the backup, if there is one. Ends with the process.
    async fn back_up(&self) {
        if let Some(backup) = &self.backup {
            backup.run(&self.kit.token).await;
        }
    }

    /// Tells of each artifact that is stored or removed. Ends with the process.
    async fn tell_of_artifacts(&self) {
        let mut changes = self.store.subscribe();
        loop {
            let change = tokio::select! {
                () = self.kit.token.cancelled() => return,
                change = changes.recv() => change,
            };
            let records = match change {
                Ok(Change::Stored(record) | Change::Removed(record)) => vec![record],
                Err(RecvError::Lagged(_)) => self.store.current_records(),
                Err(RecvError::Closed) => return,
            };
            for record in records {
                let _ = self.changed.send(store::ObjectKey::from_record(&record));
            }
        }
    }
}

/// Fingerprint of the facts of an ExternalArtifact that concern its creator and its users.
fn fingerprint(object: &ExternalArtifact) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    let (metadata, status) = (&object.metadata, object.status.as_ref());
    let parts = (
        &metadata.uid,
        &metadata.labels,
        &metadata.annotations,
        metadata.deletion_timestamp.is_some(),
        metadata.generation,
    );
    parts.hash(&mut hasher);
    serde_json::to_string(&status)
        .unwrap_or_default()
        .hash(&mut hasher);
    Some(hasher.finish())
}

impl Shared {
    /// Tells of each index that was fetched because a chart wanted it. Ends with the process.
    async fn tell_of_refreshed_indexes(&self) {
        let mut refreshed = self.fetcher.helm.refreshed();
        loop {
            let key = tokio::select! {
                () = self.kit.token.cancelled() => return,
                key = refreshed.recv() => key,
            };
            match key {
                Ok(key) => {
                    let _ = self.changed.send(key); // nobody may listen
                }
                // Those that were missed are looked at when their interval is over.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }
}
