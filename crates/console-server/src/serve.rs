//! The server: the picture is filled, and the API answers from it.

use std::sync::Arc;
use std::time::Duration;

use access_review::Reviews;
use access_review::limit::Limiter;
use axum::body::Body;
use axum::extract::ConnectInfo;
use controller_kit::events::Recorder;
use controller_kit::metrics::Metrics;
use delivery_diff::Archives;
use fleet::picture::Picture;
use fleet::running::Running;
use fleet::watch::Reach;
use futures::FutureExt as _;
use http_connections::Limits;
use jiff::SignedDuration;
use kube::Client;
use ledger::store::Ledger;
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use url::Url;

use crate::access::Access;
use crate::actions::Mode;
use crate::announce;
use crate::api;
use crate::ask::Asker;
use crate::clusters::{Clusters, Hand, Shown};
use crate::mcp;
use crate::metrics::Meters;
use crate::pages;
use crate::recorder;

/// Queries that are worked on at a time; they take processor time, and others wait.
const MAX_QUERIES: usize = 4;
/// Lists whose rows are held at a time: of 10,000 objects they take a megabyte.
const MAX_LISTS: usize = 32;
/// Comparisons that are made at a time: a build may take 100 MiB.
const MAX_COMPARISONS: usize = 1;
/// Archives that are passed on at a time, and those of one caller; each takes a few pieces of 64 KiB.
const MAX_DOWNLOADS: usize = 16;
const MAX_DOWNLOADS_OF_ONE: usize = 2;
/// Streams that are open at a time, and those of one caller.
pub(crate) const MAX_STREAMS: usize = 2000;
const MAX_STREAMS_OF_ONE: usize = 50;
/// Requests of one address whose token is being looked at: each may cost the API server a question.
const MAX_UNKNOWN: usize = 32;

/// Streams take a connection each; browsers resume one that is cut after an hour, and who does not read is cut, too.
const CONNECTIONS: Limits = Limits {
    connections: 4096,
    of_one_address: 4096,
    header_bytes: 64 << 10,
    header_timeout: Duration::from_secs(10),
    lifetime: Duration::from_secs(3600),
};

/// What all requests share.
#[derive(Clone)]
pub(crate) struct Console {
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
    /// Where archives of artifacts are had from.
    pub archives: Archives,
    /// Turns for comparisons, which build, and callers who have one under way.
    pub comparing: Arc<Semaphore>,
    pub comparing_of_one: Limiter,
    /// Room for downloads, of all callers and of each.
    pub downloads: Arc<Semaphore>,
    pub downloads_of_one: Limiter,
    /// Turns for queries, and room for the rows of those that wait for one.
    pub queries: Arc<Semaphore>,
    pub lists: Arc<Semaphore>,
    /// Room for streams, of all callers and of each.
    pub streams: Arc<Semaphore>,
    pub streams_of_one: Limiter,
    /// Requests of one address whose token is being looked at.
    pub unknown: Limiter,
    pub meters: Meters,
    /// Cancelled when the process ends: streams do.
    pub ending: CancellationToken,
}

/// What a server is made of.
pub struct Settings {
    /// Name of the first cluster, where callers are known and rights are asked for.
    pub home: Arc<str>,
    /// The way to it.
    pub client: Client,
    /// Publishes Events about what is done there.
    pub recorder: Recorder,
    /// Who callers are, and what they may see and do.
    pub reviews: Reviews,
    /// How they are let in without a token; None if they are not.
    pub access: Option<Access>,
    /// Where deliveries are recorded, and for how long; None if they are not.
    pub ledger: Option<(Ledger, SignedDuration)>,
    /// Who is told of deliveries, as CDEvents; nobody without a ledger.
    pub cdevents: Option<Url>,
    /// Who acts for callers.
    pub actions: Mode,
    /// Whether Pods are watched, to tell which images run where.
    pub watch_pods: bool,
    /// How much of the first cluster is watched.
    pub reach: Reach,
    /// Where archives of artifacts are had from, for comparisons.
    pub archives: Archives,
    /// Whether language models may ask, by the Model Context Protocol.
    pub mcp: bool,
}

/// A server that can be started.
pub struct Server {
    console: Console,
    shown: Shown,
    reach: Reach,
    mcp: bool,
    cdevents: Option<Url>,
    retention: SignedDuration,
}

impl Server {
    /// Sets it up. It ends when `ending` is cancelled.
    pub fn new(settings: Settings, metrics: &Metrics, ending: CancellationToken) -> Self {
        let picture = Picture::default();
        let running = Running::default();
        let reviews = Arc::new(settings.reviews);
        let hand = Hand {
            client: settings.client,
            recorder: settings.recorder,
        };
        let clusters = Arc::new(Clusters::new(settings.home, reviews.clone(), hand));
        let (ledger, retention) = settings.ledger.unzip();
        let ledger = match settings.cdevents {
            Some(_) => ledger.map(Ledger::with_announcements),
            None => ledger,
        };
        let streams = Arc::new(Semaphore::new(MAX_STREAMS));
        let console = Console {
            meters: Meters::register(metrics, picture.clone(), streams.clone()),
            ledger,
            running: running.clone(),
            picture: picture.clone(),
            reviews,
            access: settings.access.map(Arc::new),
            clusters: clusters.clone(),
            actions: settings.actions,
            acting: Limiter::new(1),
            archives: settings.archives,
            comparing: Arc::new(Semaphore::new(MAX_COMPARISONS)),
            comparing_of_one: Limiter::new(1),
            downloads: Arc::new(Semaphore::new(MAX_DOWNLOADS)),
            downloads_of_one: Limiter::new(MAX_DOWNLOADS_OF_ONE),
            queries: Arc::new(Semaphore::new(MAX_QUERIES)),
            lists: Arc::new(Semaphore::new(MAX_LISTS)),
            streams,
            streams_of_one: Limiter::new(MAX_STREAMS_OF_ONE),
            unknown: Limiter::new(MAX_UNKNOWN),
            ending,
        };
        let shown = Shown {
            picture,
            running: settings.watch_pods.then_some(running),
            clusters,
        };
        Self {
            console,
            shown,
            reach: settings.reach,
            mcp: settings.mcp,
            cdevents: settings.cdevents,
            retention: retention.unwrap_or_default(),
        }
    }

    /// Where further clusters are put.
    pub fn shown(&self) -> &Shown {
        &self.shown
    }

    /// A way to ask the API from within the process.
    pub fn asker(&self) -> Asker {
        Asker::new(api::routes(self.console.clone()))
    }

    /// Watches and serves until it is told to end, beside what follows further clusters. Calls `complete` once all of the first
    /// cluster was listed.
    ///
    /// # Errors
    /// When a part ends that should not.
    pub async fn run(
        &self,
        listener: TcpListener,
        following: impl Future<Output = ()>,
        complete: impl FnOnce(),
    ) -> anyhow::Result<()> {
        let console = &self.console;
        let ending = console.ending.clone();
        let mut routes = pages::beside(api::routes(console.clone()), console.clone());
        if self.mcp {
            routes = mcp::beside(routes, console.clone(), ending.clone());
        }
        let serving = http_connections::serve(listener, CONNECTIONS, ending, move |request, peer, _place| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            // Routes never fail: that is in their type.
            routes
                .clone()
                .oneshot(request)
                .map(|answer| answer.unwrap_or_else(|never| match never {}))
        });
        let recording = async {
            match &console.ledger {
                Some(ledger) => {
                    let (meters, fresh) = (&console.meters, Notify::new());
                    let recording =
                        recorder::record(ledger, &console.picture, self.retention, meters, &fresh);
                    let announcing = async {
                        if let Some(receiver) = &self.cdevents {
                            announce::announce(ledger, receiver, &fresh).await;
                        }
                    };
                    tokio::join!(recording, meters.figure(ledger), announcing);
                }
                None => std::future::pending().await,
            }
        };
        let completing = async {
            self.until_complete().await;
            complete();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = serving => Ok(()),
            () = self.shown.watch_home(&self.reach) => anyhow::bail!("the watches ended"),
            () = following => anyhow::bail!("the watches for clusters ended"),
            () = recording => anyhow::bail!("the ledger is not written any more"),
            () = completing => Ok(()),
        }
    }

    async fn until_complete(&self) {
        let picture = &self.shown.picture;
        let mut changes = picture.subscribe();
        // An empty cluster causes no change, so this looks at intervals, too.
        let mut tick = tokio::time::interval(Duration::from_millis(50));
        while !picture.is_complete(self.shown.clusters.home()) {
            tokio::select! {
                _ = changes.changed() => {}
                _ = tick.tick() => {}
            }
        }
    }
}
