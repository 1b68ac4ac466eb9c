//! The life of a controller process, from parsed flags to exit code.
//!
//! In: the shared flags and what the controller does. Out: an exit code. In between, in this order: crypto and
//! allocator, logs, endpoints, the client, leadership, the controller's work, the last events, release of the
//! Lease. Nothing here must run for the next start to be right: a process may be killed at any moment.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use kube::Client;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::admin::{self, Ready};
use crate::elections::Elections;
use crate::events::{Recorder, Webhook};
use crate::flags::WatchFlags;
use crate::leader::{self, Candidacy, Leadership};
use crate::metrics::Metrics;
use crate::standby::Listeners;
use crate::{client, process, standby, telemetry};

pub use crate::flags::App;

/// More threads than this cost memory and gain nothing: what takes long waits for others or runs on blocking
/// threads.
const MOST_WORKER_THREADS: usize = 4;
/// Threads for what must go on whatever the work does: health endpoints and the Lease. Two, so that a long scrape holds neither.
const VITAL_THREADS: usize = 2;
/// Events that were published last get this long to be written.
const LAST_EVENTS_TIMEOUT: Duration = Duration::from_secs(5);

/// Context that a controller starts with.
#[derive(Clone)]
pub struct Context {
    /// The connection to the Kubernetes API, shared by all.
    pub client: Client,
    /// Where to measure.
    pub metrics: Metrics,
    /// Where to publish events.
    pub recorder: Recorder,
    /// Cancelled when the work shall end.
    pub token: CancellationToken,
    /// Leases of other controllers whose work this process does, too.
    pub elections: Elections,
    /// Where to say what is ready.
    pub ready: Ready,
    /// Name given by the [`App`].
    pub name: &'static str,
    /// Namespace that this process runs in: RUNTIME_NAMESPACE, else that of the service account or kubeconfig.
    pub namespace: String,
    /// The ports that the work serves.
    pub listeners: Listeners,
}

/// What a replica has as long as it does not lead.
pub struct Standby {
    /// The connection to the Kubernetes API.
    pub client: Client,
    /// Where to measure.
    pub metrics: Metrics,
    /// Where to say what is ready.
    pub ready: Ready,
    /// As in [`Context`].
    pub namespace: String,
    /// Where the leader is; none if it does not say so, or as long as none is known.
    pub leader: watch::Receiver<Vec<SocketAddr>>,
    /// Where to say whether this replica has what it needs to lead.
    pub candidacy: Candidacy,
    /// Cancelled when this process leads, or is to end.
    pub token: CancellationToken,
    /// Cancelled when it is to end.
    pub shutdown: CancellationToken,
}

/// Leadership was lost; another process may lead already.
#[derive(Debug, thiserror::Error)]
#[error("failed to keep the leader lease")]
pub struct LeadershipLost;

/// Runs a controller until it is told to stop. The work ends by itself when `Context::token` is cancelled.
///
/// Errors are logged here with all their causes, and nowhere else.
pub fn run<W, F>(app: App, work: W) -> ExitCode
where
    W: FnOnce(Context) -> F,
    F: Future<Output = anyhow::Result<()>>,
{
    run_serving(app, &[], work)
}

/// As [`run`], for work that serves at these addresses: as long as another process leads, requests there are passed on to it.
pub fn run_serving<W, F>(app: App, addresses: &[SocketAddr], work: W) -> ExitCode
where
    W: FnOnce(Context) -> F,
    F: Future<Output = anyhow::Result<()>>,
{
    let idle = |_| std::future::ready(Ok(()));
    start(app, (addresses, Answers::Forwarded), idle, |context, ()| {
        work(context)
    })
}

/// As [`run`], for replicas that do something before they lead, such as serving at these addresses by themselves. What they have of it
/// goes on with the work.
pub fn run_replica<P, S, B, W, F>(app: App, addresses: &[SocketAddr], before: S, work: W) -> ExitCode
where
    S: FnOnce(Standby) -> B,
    B: Future<Output = anyhow::Result<P>>,
    W: FnOnce(Context, P) -> F,
    F: Future<Output = anyhow::Result<()>>,
{
    start(app, (addresses, Answers::Own), before, work)
}

/// Who answers at the addresses of a process that does not lead.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// The leader, to which requests are passed on.
    Forwarded,
    /// The process itself.
    Own,
}

fn start<P, S, B, W, F>(app: App, served: (&[SocketAddr], Answers), before: S, work: W) -> ExitCode
where
    S: FnOnce(Standby) -> B,
    B: Future<Output = anyhow::Result<P>>,
    W: FnOnce(Context, P) -> F,
    F: Future<Output = anyhow::Result<()>>,
{
    process::init();
    telemetry::init(&app.log);
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MOST_WORKER_THREADS);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build();
    let vital = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(VITAL_THREADS)
        .thread_name("vital")
        .enable_all()
        .build();
    let both = runtime.and_then(|runtime| Ok((runtime, vital?)));
    let result = both.map_err(anyhow::Error::from).and_then(|(runtime, vital)| {
        let result = runtime.block_on(live(app, served, vital.handle(), before, work));
        // Blocking work that does not end (a slow disk, a slow remote) must not hold the process.
        runtime.shutdown_background();
        vital.shutdown_background();
        result
    });
    if let Err(error) = &result {
        tracing::error!(error = format!("{error:#}"), "the controller failed");
    }
    process::exit_code(&result)
}

async fn live<P, S, B, W, F>(
    app: App,
    (addresses, answers): (&[SocketAddr], Answers),
    vital: &Handle,
    before: S,
    work: W,
) -> anyhow::Result<()>
where
    S: FnOnce(Standby) -> B,
    B: Future<Output = anyhow::Result<P>>,
    W: FnOnce(Context, P) -> F,
    F: Future<Output = anyhow::Result<()>>,
{
    let token = process::shutdown();
    let webhook = Webhook::from_flag(&app.endpoints.events_addr)?;
    let (metrics, ready) = (Metrics::new(), Ready::default());
    metrics.build(app.name);
    app.not_ready_until
        .iter()
        .for_each(|check| ready.set(check, false));
    // Who finds this process ready finds its ports open.
    let (leader, leader_at) = watch::channel(Vec::new());
    let (listeners, waiting) = (Listeners::default(), CancellationToken::new());
    let forwarded = match answers {
        Answers::Forwarded if app.leader.enable_leader_election => addresses,
        Answers::Forwarded | Answers::Own => &[],
    };
    let _standby = standby::serve(forwarded, &listeners, &leader_at, &waiting).await?;
    // The endpoints outlive the drain, so that it can be watched.
    let endpoints = CancellationToken::new();
    let _close_endpoints = endpoints.clone().drop_guard();
    let serve = {
        let (flags, metrics, ready) = (app.endpoints.clone(), metrics.clone(), ready.clone());
        async move { admin::serve(&flags, metrics, ready, &endpoints).await }
    };
    vital.spawn(serve).await??;
    let client = client::connect_counted(&app.client, metrics.rest()).await?;
    let namespace = runtime_namespace(&app.watch, &client);
    let lease = app.watch.lease_name(app.name);
    let candidacy = Candidacy::default();
    let announcement = leader::Announcement {
        own: standby::reached_at(addresses),
        leader,
        candidacy: candidacy.clone(),
    };
    let before = before(Standby {
        client: client.clone(),
        metrics: metrics.clone(),
        ready: ready.clone(),
        namespace: namespace.clone(),
        leader: leader_at,
        candidacy,
        token: waiting.clone(),
        shutdown: token.clone(),
    });
    let lead_on = {
        let (flags, connect) = (app.leader.clone(), app.client.clone());
        let (namespace, metrics) = (namespace.clone(), metrics.clone());
        async move {
            // Connections are kept alive by the runtime that made them.
            let client = client::connect_counted(&connect, metrics.rest()).await?;
            let place = (&*lease, &*namespace);
            anyhow::Ok(leader::run_announcing(client, &flags, place, token, &metrics, announcement).await?)
        }
    };
    let elected = async {
        let leading = vital.spawn(lead_on).await??;
        // What is under way there ends beside the work.
        waiting.cancel();
        anyhow::Ok(leading)
    };
    let (leading, had) = tokio::try_join!(elected, before)?;
    let Some(leadership) = leading else { return Ok(()) };
    tracing::info!(
        logger = "setup",
        controller_name = app.name,
        version = env!("CARGO_PKG_VERSION"),
        "starting"
    );
    let finished = CancellationToken::new();
    let (recorder, events) = Recorder::start(client.clone(), app.name, webhook, finished.clone());
    let elections = Elections::new(vital.clone(), &app, &namespace, &metrics, leadership.token());
    let context = Context {
        client,
        elections: elections.clone(),
        metrics,
        recorder,
        token: leadership.token(),
        ready,
        name: app.name,
        namespace,
        listeners,
    };
    let result = lead(&leadership, &elections, work(context, had)).await;
    finished.cancel();
    if timeout(LAST_EVENTS_TIMEOUT, events).await.is_err() {
        tracing::error!("the last events could not be written in time");
    }
    elections.release().await;
    leadership.release().await;
    result
}

/// Does the work as long as this process leads; drops it where it stands when leadership is lost.
async fn lead(
    leadership: &Leadership,
    elections: &Elections,
    work: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    tokio::select! {
        biased;
        () = leadership.lost() => Err(LeadershipLost.into()),
        () = elections.lost() => Err(LeadershipLost.into()),
        result = work => result,
    }
}

fn runtime_namespace(watch: &WatchFlags, client: &Client) -> String {
    if watch.runtime_namespace.is_empty() {
        client.default_namespace().to_owned()
    } else {
        watch.runtime_namespace.clone()
    }
}
