//! Everything that answers others: the store, opened and verified, and its servers over HTTP and gRPC.

use std::sync::Arc;
use std::time::Duration;

use access_review::limit::Limiter;
use anyhow::Context as _;
use artifact::store::Store;
use bucket_client::index;
use controller_kit::admin::bind;
use controller_kit::metrics::Metrics;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::access::Access;
use super::arrivals::Arrivals;
use super::tls::{certificate::Certificate, keeper::Keeper};
use super::{grpc, http};
use crate::flags::Settings;
use crate::flags::artifact_service::{ArtifactService, CertificateFrom, hosts};
use crate::metrics::Meters;
use crate::reconcile::fetch::Fetcher;

/// The readiness check that holds once the store is verified and served.
pub(crate) const STORAGE_CHECK: &str = "storage";
/// Folder for what is being fetched, beside the store, so that both have the same room.
pub(crate) const FETCH_DIRECTORY: &str = "fetching";
/// Folder for the indexes of buckets.
const INDEX_DIRECTORY: &str = "bucket-indexes";
/// How long a start waits for the API server to keep our authority.
const FIRST_CERTIFICATE_TIMEOUT: Duration = Duration::from_secs(10);
/// A Service takes this long to send clients elsewhere.
const FAREWELL: Duration = Duration::from_secs(2);
/// Downloads that are running get this long after the work has ended.
const LAST_DOWNLOADS_TIMEOUT: Duration = Duration::from_secs(6);

/// What a replica has that serves its store.
pub(crate) struct Plane {
    pub(crate) settings: Settings,
    pub(crate) store: Store,
    pub(crate) fetcher: Fetcher,
    pub(crate) meters: Meters,
    pub(crate) servers: JoinSet<anyhow::Result<()>>,
    /// Tells the servers to stop.
    pub(crate) stop: CancellationToken,
    /// Whether the store is a copy of the leader's.
    pub(crate) is_copy: watch::Sender<bool>,
}

impl Plane {
    /// Opens the store and serves it.
    pub(crate) async fn start(
        settings: Settings,
        is_copy: bool,
        around: &Around<'_>,
    ) -> anyhow::Result<Self> {
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
pub(crate) struct Around<'a> {
    pub(crate) client: &'a Client,
    pub(crate) namespace: &'a str,
    pub(crate) metrics: &'a Metrics,
}

/// Ends the servers; downloads that are running get some time. Where there are other replicas, clients are still sent here for a moment.
pub(crate) async fn end(
    has_replicas: bool,
    stop: &CancellationToken,
    servers: &mut JoinSet<anyhow::Result<()>>,
) {
    if has_replicas {
        tokio::time::sleep(FAREWELL).await;
    }
    stop.cancel();
    let ended = async { while servers.join_next().await.is_some() {} };
    if tokio::time::timeout(LAST_DOWNLOADS_TIMEOUT, ended).await.is_err() {
        tracing::info!("downloads were cut off at shutdown");
    }
}

/// Serves the store over HTTP and gRPC until `stop` is cancelled. Both servers listen when this returns.
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
