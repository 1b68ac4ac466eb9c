//! The process: the picture is filled, and the API answers from it.

use std::sync::Arc;
use std::time::Duration;

use access_review::Reviews;
use access_review::limit::Limiter;
use anyhow::Context as _;
use axum::body::Body;
use axum::extract::ConnectInfo;
use cluster_access::targets::{Options, Targets};
use controller_kit::Context as Kit;
use fleet::picture::Picture;
use fleet::running::Running;
use futures::FutureExt as _;
use http_connections::Limits;
use jiff::SignedDuration;
use ledger::store::Ledger;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower::ServiceExt as _;
use workload_identity::Identities;

use crate::access::Access;
use crate::actions::Mode;
use crate::api;
use crate::clusters::{self, Clusters, Hand, Shown};
use crate::flags::Flags;
use crate::metrics::Meters;
use crate::recorder;

/// Queries that are worked on at a time; they take processor time, and others wait.
const MAX_QUERIES: usize = 4;
/// Streams that are open at a time, and those of one caller.
pub const MAX_STREAMS: usize = 2000;
const MAX_STREAMS_OF_ONE: usize = 50;
/// Requests of one address whose token is being looked at: each may cost the API server a question.
const MAX_UNKNOWN: usize = 32;

/// Streams take a connection each; browsers resume one that is cut after an hour, and who does not read is cut, too.
const CONNECTIONS: Limits = Limits {
    connections: 4096,
    header_bytes: 64 << 10,
    header_timeout: Duration::from_secs(10),
    lifetime: Duration::from_secs(3600),
};

/// What all requests share.
#[derive(Clone)]
pub struct Console {
    pub picture: Picture,
    /// Who calls.
    pub reviews: Arc<Reviews>,
    /// How they are let in without a token; None if they are not.
    pub access: Option<Arc<Access>>,
    /// What they may do, and where.
    pub clusters: Arc<Clusters>,
    /// Which images run where.
    pub running: Running,
    /// What was delivered, if that is kept.
    pub ledger: Option<Ledger>,
    /// Who acts for them.
    pub actions: Mode,
    /// Callers whose actions are under way.
    pub acting: Limiter,
    /// Turns for queries.
    pub queries: Arc<Semaphore>,
    /// Room for streams, of all callers and of each.
    pub streams: Arc<Semaphore>,
    pub streams_of_one: Limiter,
    /// Requests of one address whose token is being looked at.
    pub unknown: Limiter,
    pub meters: Meters,
    /// Cancelled when the process ends: streams do.
    pub ending: tokio_util::sync::CancellationToken,
}

/// Watches and serves until the token is cancelled.
pub async fn run(flags: Flags, kit: Kit) -> anyhow::Result<()> {
    let picture = Picture::default();
    let running = Running::default();
    let home: Arc<str> = flags.cluster_name.as_str().into();
    let reviews = Arc::new(Reviews::for_users(kit.client.clone()));
    let hand = Hand {
        client: kit.client.clone(),
        recorder: kit.recorder.clone(),
    };
    let clusters = Arc::new(Clusters::new(home.clone(), reviews.clone(), hand));
    let access = flags.sign_in_config.as_deref();
    let access = access.map(|config| Access::read(config, flags.session_key_file.as_deref()));
    let ledger = match flags.ledger_url.as_str() {
        "" => None,
        url => Some(Ledger::open(url).await?),
    };
    let streams = Arc::new(Semaphore::new(MAX_STREAMS));
    let meters = Meters::register(&kit.metrics, picture.clone(), streams.clone());
    let console = Console {
        meters: meters.clone(),
        ledger: ledger.clone(),
        running: running.clone(),
        picture: picture.clone(),
        reviews,
        access: access.transpose()?.map(Arc::new),
        clusters: clusters.clone(),
        actions: flags.actions,
        acting: Limiter::new(1),
        queries: Arc::new(Semaphore::new(MAX_QUERIES)),
        streams,
        streams_of_one: Limiter::new(MAX_STREAMS_OF_ONE),
        unknown: Limiter::new(MAX_UNKNOWN),
        ending: kit.token.clone(),
    };
    let listener = TcpListener::bind(flags.api_addr).await;
    let listener = listener.with_context(|| format!("failed to listen at {}", flags.api_addr))?;
    let ending = kit.token.clone();
    let routes = api::routes(console);
    let serving = http_connections::serve(listener, CONNECTIONS, ending, move |request, peer, _place| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        // Routes never fail: that is in their type.
        routes
            .clone()
            .oneshot(request)
            .map(|answer| answer.unwrap_or_else(|never| match never {}))
    });
    let filling = fleet::watch::fill(&picture, home.clone(), kit.client.clone());
    let running_here = async {
        if flags.watch_pods {
            fleet::watch::fill_running(&running, home.clone(), kit.client.clone()).await;
        }
        std::future::pending::<()>().await;
    };
    let following = async {
        match &flags.clusters_namespace {
            Some(namespace) => {
                let targets = targets(&flags, &kit);
                let shown = Shown {
                    picture: picture.clone(),
                    running: flags.watch_pods.then(|| running.clone()),
                };
                clusters::follow(&clusters, shown, kit.client.clone(), targets, namespace).await;
            }
            None => std::future::pending().await,
        }
    };
    let retention = SignedDuration::try_from(flags.ledger_retention)?;
    let recording = async {
        match &ledger {
            Some(ledger) => {
                let recording = recorder::record(ledger, &picture, retention, &meters);
                tokio::join!(recording, meters.figure(ledger));
            }
            None => std::future::pending().await,
        }
    };
    let completing = async {
        let mut changes = picture.subscribe();
        // An empty cluster causes no change, so this looks at intervals, too.
        let mut tick = tokio::time::interval(Duration::from_millis(50));
        while !picture.is_complete(&home) {
            tokio::select! {
                _ = changes.changed() => {}
                _ = tick.tick() => {}
            }
        }
        kit.ready.set(crate::PICTURE, true);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = serving => Ok(()),
        () = filling => anyhow::bail!("the watches ended"),
        () = running_here => anyhow::bail!("the watch of Pods ended"),
        () = following => anyhow::bail!("the watches for clusters ended"),
        () = recording => anyhow::bail!("the ledger is not written any more"),
        () = completing => Ok(()),
    }
}

/// Ways to other clusters, as Kustomizations have them. Nothing is applied there.
fn targets(flags: &Flags, kit: &Kit) -> Targets {
    let identities = Identities::new(kit.client.clone(), flags.common.token, true);
    let options = Options {
        kubeconfig: flags.kubeconfig,
        client: flags.common.client.clone(),
        metrics: kit.metrics.rest().clone(),
        default_account: None,
        identities: Arc::new(identities),
        remote_account: None,
    };
    Targets::new(kit.client.clone(), kube_apply::Settings::default(), options).0
}
