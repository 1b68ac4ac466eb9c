//! Watches, queues and workers: which object is reconciled when. The only file that knows the API server's streams.
//!
//! The order of a start: open the store and verify it, serve it, say that this process is ready, watch. With a store in each replica the
//! first two come before leadership, and the store is kept equal to the leader's meanwhile. On shutdown the workers end first, the
//! servers last.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use api::meta::{StatusObject as _, TRUE, condition_types};
use api::source::{Bucket, ExternalArtifact, GitRepository, HelmChart, HelmRepository, OCIRepository};
use api::source_extensions::ArtifactGenerator;
use artifact::store::{self, Change, Store};
use bucket_client::index;
use controller_kit::admin::bind;
use controller_kit::flags::parse_label_selector;
use controller_kit::leader::Fitness;
use controller_kit::metrics::Metrics;
use controller_kit::queue::Queue;
use controller_kit::runtime::{
    Cache, ReconcileTrigger, scoped_api, selecting, watch_changes, watch_into_store,
};
use controller_kit::telemetry::reconcile_span;
use controller_kit::{Context as Kit, ObjectKey, Standby};
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::core::{PartialObjectMeta, SelectorExt as _};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::backup::Backup;
use crate::flags::artifact_service::{ArtifactService, CertificateFrom, hosts};
use crate::flags::{Flags, Settings};
use crate::generator;
use crate::kind::Kind;
use crate::metrics::Meters;
use crate::reconcile::fetch::Fetcher;
use crate::reconcile::secrets_read::SecretsRead;
use crate::reconcile::store::AdvertisedAddress;
use crate::reconcile::{Context, reconcile};
use crate::replica;
use crate::serve::access::Access;
use crate::serve::arrivals::Arrivals;
use crate::serve::tls::{certificate::Certificate, keeper::Keeper};
use crate::serve::{grpc, http};
use access_review::limit::Limiter;

/// The readiness check that holds once the store is verified and served.
pub(crate) const STORAGE_CHECK: &str = "storage";
/// Folder for what is being fetched, beside the store, so that both have the same room.
const FETCH_DIRECTORY: &str = "fetching";
/// Folder for the indexes of buckets.
const INDEX_DIRECTORY: &str = "bucket-indexes";
/// Changes of sources that a kind may be behind before it looks at all of its objects.
const CHANGES: usize = 1024;
/// Garbage is collected a little after it has become that.
const COLLECTION_DELAY: Duration = Duration::from_secs(1);

/// How long a process that takes the leader's place tries to copy what that stores.
const HANDOVER_PATIENCE: Duration = Duration::from_secs(180);
/// How long a start waits for the API server to keep our authority.
const FIRST_CERTIFICATE_TIMEOUT: Duration = Duration::from_secs(10);
/// A Service takes this long to send clients elsewhere.
const FAREWELL: Duration = Duration::from_secs(2);
/// Downloads that are running get this long after the work has ended.
const LAST_DOWNLOADS_TIMEOUT: Duration = Duration::from_secs(6);

/// What a replica has that serves its store.
pub(crate) struct Plane {
    settings: Settings,
    store: Store,
    fetcher: Fetcher,
    meters: Meters,
    servers: JoinSet<anyhow::Result<()>>,
    /// Tells the servers to stop.
    stop: CancellationToken,
    /// Whether the store is a copy of the leader's.
    is_copy: watch::Sender<bool>,
}

impl Plane {
    /// Opens the store and serves it.
    async fn start(settings: Settings, is_copy: bool, around: &Around<'_>) -> anyhow::Result<Self> {
        let (store, fetcher) = open(&settings).await?;
        let meters = Meters::new(fetcher.helm.cache.clone());
        meters.register(around.metrics, store.clone());
        let identities = settings.identities.clone();
        around.metrics.token_cache(move || identities.token_cache());
        let (stop, is_copy) = (CancellationToken::new(), watch::Sender::new(is_copy));
        let arrivals = Arrivals::new(Arc::new(store.clone()), is_copy.subscribe());
        let servers = serve(&settings, arrivals, around, &meters, &stop).await?;
        Ok(Self {
            settings,
            store,
            fetcher,
            meters,
            servers,
            stop,
            is_copy,
        })
    }
}

/// What serving needs of the process.
struct Around<'a> {
    client: &'a Client,
    namespace: &'a str,
    metrics: &'a Metrics,
}

/// Keeps the store of this replica equal to the leader's and serves it, until it leads. Does nothing where replicas share a volume.
///
/// It says at once whether it may lead, before the first wait.
pub(crate) fn stand_by(
    flags: Flags,
    standby: Standby,
) -> impl Future<Output = anyhow::Result<Option<Plane>>> {
    let settings = Settings::from_flags(&flags);
    let copies = settings.as_ref().ok().and_then(|settings| settings.copies);
    standby.candidacy.set(copies.unwrap_or(Fitness::Fit));
    async move {
        let settings = settings?;
        match copies {
            Some(before) => copy_until_leading(settings, before, standby).await.map(Some),
            None => Ok(None),
        }
    }
}

/// `before` is how fit this replica is until it has caught up.
async fn copy_until_leading(settings: Settings, before: Fitness, standby: Standby) -> anyhow::Result<Plane> {
    let Standby {
        client,
        metrics,
        ready,
        namespace,
        leader,
        candidacy,
        token,
        shutdown,
    } = standby;
    let around = Around {
        client: &client,
        namespace: &namespace,
        metrics: &metrics,
    };
    let spool = settings.storage_path.join(FETCH_DIRECTORY);
    let (access, keep_trust) =
        replica::Access::new(&settings.artifact_service, client.clone(), &namespace, spool);
    let mut plane = Plane::start(settings, true, &around).await?;
    // What was copied before a restart is enough to go on with.
    if !plane.store.current_records().is_empty() {
        candidacy.set(Fitness::Fit);
    }
    let synced = watch::Sender::new(false);
    let (mut is_synced, meters) = (synced.subscribe(), plane.meters.clone());
    let tell = async {
        // The sender is there as long as this is waited for.
        while is_synced.changed().await.is_ok() {
            let is_synced = *is_synced.borrow_and_update();
            candidacy.set(if is_synced { Fitness::Fit } else { before });
            meters.synced(is_synced);
            ready.set(STORAGE_CHECK, is_synced);
        }
    };
    let retention = plane.settings.retention.retention_ttl;
    tokio::select! {
        () = replica::follow(&plane.store, &access, leader, &synced, &token) => {}
        Some(ended) = plane.servers.join_next() => ended??,
        // They never end by themselves.
        () = tell => {}
        () = keep_trust => {}
        () = go_without_copy(before, &synced) => {}
        () = collect_garbage(plane.store.clone(), retention, &plane.meters, token.clone()) => {}
    }
    plane.is_copy.send_replace(false);
    if shutdown.is_cancelled() {
        ready.set(STORAGE_CHECK, false);
        end(true, &plane.stop, &mut plane.servers).await;
    }
    Ok(plane)
}

/// A successor that cannot reach the leader takes its place all the same after some time, and fetches everything: the leader would never
/// end otherwise. One of several replicas leaves the lead to the others. Never ends.
async fn go_without_copy(before: Fitness, synced: &watch::Sender<bool>) {
    if before == Fitness::Successor {
        tokio::time::sleep(HANDOVER_PATIENCE).await;
        if !synced.send_replace(true) {
            tracing::warn!(
                logger = "replica",
                "the leader's artifacts could not be copied in time: this process takes its place without them"
            );
        }
    }
    std::future::pending::<()>().await;
}

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
    let shared = Shared {
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
    let work = async {
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
            collect_garbage(
                shared.store.clone(),
                settings.retention.retention_ttl,
                &meters,
                token
            ),
        )
    };
    tokio::select! {
        _ = work => {}
        // They end when they are told to, which is below.
        Some(ended) = servers.join_next() => ended??,
    }
    end(settings.copies.is_some(), &stop, &mut servers).await;
    Ok(())
}

/// Ends the servers; downloads that are running get some time. Where there are other replicas, clients are still sent here for a moment.
async fn end(has_replicas: bool, stop: &CancellationToken, servers: &mut JoinSet<anyhow::Result<()>>) {
    if has_replicas {
        tokio::time::sleep(FAREWELL).await;
    }
    stop.cancel();
    let ended = async { while servers.join_next().await.is_some() {} };
    if tokio::time::timeout(LAST_DOWNLOADS_TIMEOUT, ended).await.is_err() {
        tracing::info!("downloads were cut off at shutdown");
    }
}

/// Serves the store over HTTP and gRPC until it is told to stop. Both listen when this returns.
async fn serve(
    settings: &Settings,
    arrivals: Arrivals,
    around: &Around<'_>,
    meters: &Meters,
    stop: &CancellationToken,
) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
    let mut servers = JoinSet::new();
    if let Some(address) = settings.http.socket() {
        let listener = bind(address).await?;
        let downloads = Limiter::new(settings.artifact_service.downloads_per_address);
        let routes = http::router(arrivals.clone(), downloads, meters.served.clone());
        let routes = routes.into_make_service_with_connect_info::<http::Peer>();
        let stopped = stop.clone().cancelled_owned();
        let serving = axum::serve(http::Listener(listener), routes).with_graceful_shutdown(stopped);
        servers.spawn(async { serving.await.context("failed to serve artifacts over HTTP") });
    }
    if let Some(address) = settings.artifact_service.address.socket() {
        let listener = bind(address).await?;
        let plane = plane(&settings.artifact_service, around, stop, &mut servers).await?;
        let serving = grpc::serve(
            listener,
            arrivals,
            plane,
            meters.served.clone(),
            stop.clone().cancelled_owned(),
        );
        servers.spawn(async { Ok(serving.await?) });
    }
    Ok(servers)
}

/// Starts the artifact service: access rules and certificate. Keeping our own authority is one of the
/// servers.
async fn plane(
    settings: &ArtifactService,
    around: &Around<'_>,
    stop: &CancellationToken,
    servers: &mut JoinSet<anyhow::Result<()>>,
) -> anyhow::Result<grpc::Plane> {
    let calls = settings.calls_per_caller;
    let Some(protection) = &settings.protection else {
        tracing::info!(
            logger = "artifact-service",
            "served without TLS and authentication"
        );
        return Ok(grpc::Plane {
            access: Access::open(calls),
            certificate: None,
        });
    };
    let certificate = match &protection.certificate {
        CertificateFrom::Files(certificate, key) => {
            Arc::new(Certificate::from_files(certificate.clone(), key.clone())?)
        }
        CertificateFrom::Authority { secret, hosts: named } => {
            let certificate = Arc::new(Certificate::default());
            let hosts = hosts(named, around.namespace);
            let (client, namespace) = (around.client.clone(), around.namespace.to_owned());
            let mut keeper = Keeper::new(client, namespace, secret.clone(), hosts, certificate.clone());
            // So that whoever waits for us to be ready can call. What fails is tried again, and told, below.
            let first = tokio::time::timeout(FIRST_CERTIFICATE_TIMEOUT, keeper.refresh(Timestamp::now()));
            drop(first.await);
            let stopped = stop.clone().cancelled_owned();
            servers.spawn(async move {
                tokio::select! {
                    () = keeper.keep() => {}
                    () = stopped => {}
                }
                Ok(())
            });
            certificate
        }
    };
    Ok(grpc::Plane {
        access: Access::guarded(around.client.clone(), protection.audience.clone(), calls),
        certificate: Some(certificate),
    })
}

/// Opens the store, and empties the folder of what an earlier process was fetching.
async fn open(settings: &Settings) -> anyhow::Result<(Store, Fetcher)> {
    let (path, options) = (settings.storage_path.clone(), settings.retention);
    let opened = tokio::task::spawn_blocking(move || {
        let directory = path.join(FETCH_DIRECTORY);
        match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => std::fs::create_dir_all(&directory)?,
        }
        let (store, report) = Store::open(&path, options)?;
        let indexes = path.join(INDEX_DIRECTORY);
        std::fs::create_dir_all(&indexes)?;
        index::sweep(&indexes, &store)?;
        anyhow::Ok((store, report, directory, indexes))
    });
    let (store, report, directory, indexes) = opened.await??;
    for dropped in &report.dropped {
        tracing::error!(
            logger = "storage",
            path = dropped.path,
            reason = dropped.reason,
            "dropped a damaged artifact"
        );
    }
    let (artifacts, repaired) = (report.artifacts, report.repaired.len());
    tracing::info!(
        logger = "storage",
        artifacts,
        repaired,
        swept = report.swept,
        "verified the artifact store"
    );
    let mut fetcher = Fetcher::new(directory, indexes, settings.identities.clone());
    fetcher.helm.limits = settings.helm;
    fetcher.sigstore = settings.sigstore.clone();
    fetcher.ssh_algorithms = settings.ssh_algorithms.clone();
    fetcher.charts = settings.charts;
    Ok((store, fetcher))
}

/// Context that all kinds share.
struct Shared {
    flags: Flags,
    kit: Kit,
    store: Store,
    fetcher: Fetcher,
    backup: Option<Backup>,
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

/// Removes artifacts that are not current any more. Sleeps as long as nothing new is stored.
async fn collect_garbage(store: Store, retention_ttl: Duration, meters: &Meters, token: CancellationToken) {
    let mut changes = store.subscribe();
    let mut may_have_garbage = true;
    loop {
        tokio::select! {
            () = token.cancelled() => return,
            () = tokio::time::sleep(retention_ttl + COLLECTION_DELAY), if may_have_garbage => {
                collect(&store, meters).await;
                may_have_garbage = store.records().len() > store.current_records().len();
            }
            change = changes.recv(), if !may_have_garbage => match change {
                Ok(Change::Stored(_)) | Err(RecvError::Lagged(_)) => may_have_garbage = true,
                Ok(Change::Removed(_)) => {}
                Err(RecvError::Closed) => return,
            },
        }
    }
}

async fn collect(store: &Store, meters: &Meters) {
    let store = store.clone();
    let collected = tokio::task::spawn_blocking(move || store.collect_garbage(Timestamp::now())).await;
    match collected {
        Ok(Ok(collected)) if collected.records > 0 => {
            meters.collected(&collected);
            let (artifacts, bytes) = (collected.records, collected.bytes);
            tracing::info!(
                logger = "storage",
                artifacts,
                bytes,
                "collected artifacts that were replaced"
            );
        }
        Ok(Ok(_)) | Err(_) => {}
        Ok(Err(error)) => {
            tracing::error!(
                logger = "storage",
                error = error_chain::chain(&error),
                "failed to collect garbage"
            );
        }
    }
}
