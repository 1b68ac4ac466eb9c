//! The life of a controller process, from parsed flags to exit code.
//!
//! In: the shared flags and what the controller does. Out: an exit code. In between, in this order: crypto and
//! allocator, logs, endpoints, the client, leadership, the controller's work, the last events, release of the
//! Lease. Nothing here must run for the next start to be right: a process may be killed at any moment.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use futures::future::{LocalBoxFuture, try_join_all};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use kube::Client;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::admin::{self, Parts, Ready};
use crate::elections::Elections;
use crate::events::{Recorder, Webhook};
use crate::flags::{EndpointFlags, LogFlags, WatchFlags};
use crate::leader::{self, Candidacy, Leader, Leadership};
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
/// Time for the other controllers of a process to end when one has failed.
const FAILED_TIMEOUT: Duration = Duration::from_secs(30);

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
    /// Who leads, as far as it is known.
    pub leader: watch::Receiver<Leader>,
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

/// A controller with what it was told on its command line, not started yet.
pub struct Program {
    log: LogFlags,
    endpoints: EndpointFlags,
    open: Box<dyn FnOnce(Host) -> Work<Work<()>>>,
}

/// Something that is done on the thread of the process, or fails.
type Work<T> = LocalBoxFuture<'static, anyhow::Result<T>>;

/// Reads the command line of a controller, of which the first word is its name.
pub type Parse = fn(Vec<OsString>) -> Result<Program, clap::Error>;

/// What a process has for each of its controllers.
#[derive(Clone)]
struct Host {
    vital: Handle,
    parts: Parts,
    shutdown: CancellationToken,
}

impl Program {
    /// A controller that runs until it is stopped. The work ends by itself when `Context::token` is cancelled.
    pub fn new<W, F>(app: App, work: W) -> Self
    where
        W: FnOnce(Context) -> F + 'static,
        F: Future<Output = anyhow::Result<()>> + 'static,
    {
        Self::serving(app, Vec::new(), work)
    }

    /// One that serves at these addresses: as long as another process leads, requests there are passed on to it.
    pub fn serving<W, F>(app: App, addresses: Vec<SocketAddr>, work: W) -> Self
    where
        W: FnOnce(Context) -> F + 'static,
        F: Future<Output = anyhow::Result<()>> + 'static,
    {
        let idle = |_| std::future::ready(Ok(()));
        let work = |context, ()| work(context);
        Self::answering(app, (addresses, Answers::Forwarded), idle, work)
    }

    /// One whose replicas do something before they lead, such as serving at these addresses by themselves. What they have of it goes on
    /// with the work.
    pub fn replica<P, S, B, W, F>(app: App, addresses: Vec<SocketAddr>, before: S, work: W) -> Self
    where
        P: 'static,
        S: FnOnce(Standby) -> B + 'static,
        B: Future<Output = anyhow::Result<P>> + 'static,
        W: FnOnce(Context, P) -> F + 'static,
        F: Future<Output = anyhow::Result<()>> + 'static,
    {
        Self::answering(app, (addresses, Answers::Own), before, work)
    }

    fn answering<P, S, B, W, F>(app: App, served: (Vec<SocketAddr>, Answers), before: S, work: W) -> Self
    where
        P: 'static,
        S: FnOnce(Standby) -> B + 'static,
        B: Future<Output = anyhow::Result<P>> + 'static,
        W: FnOnce(Context, P) -> F + 'static,
        F: Future<Output = anyhow::Result<()>> + 'static,
    {
        Self {
            log: app.log.clone(),
            endpoints: app.endpoints.clone(),
            open: Box::new(|host| open(app, served, host, before, work).boxed_local()),
        }
    }

    /// Runs until it is stopped.
    ///
    /// Errors are logged with all their causes.
    pub fn run(self) -> ExitCode {
        let (log, endpoints) = (self.log.clone(), self.endpoints.clone());
        run_together(vec![self], &log, &endpoints)
    }
}

/// The `main` of a controller.
pub fn main(parse: Parse) -> ExitCode {
    run(parse, std::env::args_os().collect())
}

/// Runs a controller with a command line, of which the first word is its name.
pub fn run(parse: Parse, arguments: Vec<OsString>) -> ExitCode {
    match parse(arguments) {
        Ok(program) => program.run(),
        Err(error) => error.exit(),
    }
}

/// Runs controllers in one process until it is stopped or one of them fails. They share the endpoints.
pub fn run_together(programs: Vec<Program>, log: &LogFlags, endpoints: &EndpointFlags) -> ExitCode {
    process::init();
    telemetry::init(log);
    let result = start(programs, endpoints);
    if let Err(error) = &result {
        tracing::error!(error = format!("{error:#}"), "the controller failed");
    }
    process::exit_code(&result)
}

/// Who answers at the addresses of a process that does not lead.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// The leader, to which requests are passed on.
    Forwarded,
    /// The process itself.
    Own,
}

fn start(programs: Vec<Program>, endpoints: &EndpointFlags) -> anyhow::Result<()> {
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MOST_WORKER_THREADS);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()?;
    let vital = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(VITAL_THREADS)
        .thread_name("vital")
        .enable_all()
        .build()?;
    let result = runtime.block_on(together(programs, endpoints, vital.handle()));
    // Blocking work that does not end (a slow disk, a slow remote) must not hold the process.
    runtime.shutdown_background();
    vital.shutdown_background();
    result
}

async fn together(programs: Vec<Program>, endpoints: &EndpointFlags, vital: &Handle) -> anyhow::Result<()> {
    let host = Host {
        vital: vital.clone(),
        parts: Parts::default(),
        shutdown: process::shutdown(),
    };
    // Who finds this process ready finds its ports open.
    let opening = programs.into_iter().map(|program| (program.open)(host.clone()));
    let lives = try_join_all(opening).await?;
    // The endpoints outlive the drain, so that it can be watched.
    let open = CancellationToken::new();
    let _close_endpoints = open.clone().drop_guard();
    let serve = {
        let (flags, parts) = (endpoints.clone(), host.parts.clone());
        async move { admin::serve(&flags, parts, &open).await }
    };
    vital.spawn(serve).await??;
    live_together(lives, &host.shutdown).await
}

/// Goes on until all have ended. Once one has failed the others are told to end, as they would be by a signal: who takes their place need
/// not wait for their Leases.
async fn live_together(lives: Vec<Work<()>>, shutdown: &CancellationToken) -> anyhow::Result<()> {
    let mut lives: FuturesUnordered<_> = lives.into_iter().collect();
    let failed = loop {
        match lives.next().await {
            None => return Ok(()),
            Some(Ok(())) => {}
            Some(Err(error)) => break error,
        }
    };
    shutdown.cancel();
    let rest = async {
        while let Some(ended) = lives.next().await {
            if let Err(error) = ended {
                tracing::error!(
                    error = format!("{error:#}"),
                    "another controller of this process failed"
                );
            }
        }
    };
    if timeout(FAILED_TIMEOUT, rest).await.is_err() {
        tracing::error!("other controllers of this process did not end in time");
    }
    Err(failed)
}

/// What a controller has before it may lead.
struct Opened {
    app: App,
    addresses: Vec<SocketAddr>,
    webhook: Option<Webhook>,
    metrics: Metrics,
    ready: Ready,
    listeners: Listeners,
    /// Who leads.
    leader: (watch::Sender<Leader>, watch::Receiver<Leader>),
    /// Cancelled when this process leads.
    waiting: CancellationToken,
}

/// Opens the ports of a controller. What that gives is its life.
async fn open<P, S, B, W, F>(
    app: App,
    (addresses, answers): (Vec<SocketAddr>, Answers),
    host: Host,
    before: S,
    work: W,
) -> anyhow::Result<Work<()>>
where
    P: 'static,
    S: FnOnce(Standby) -> B + 'static,
    B: Future<Output = anyhow::Result<P>> + 'static,
    W: FnOnce(Context, P) -> F + 'static,
    F: Future<Output = anyhow::Result<()>> + 'static,
{
    let webhook = Webhook::from_flag(&app.endpoints.events_addr)?;
    let (metrics, ready) = (Metrics::new(), Ready::default());
    metrics.build(app.name);
    app.not_ready_until
        .iter()
        .for_each(|check| ready.set(check, false));
    host.parts.add(metrics.clone(), ready.clone());
    let (leader, leader_at) = watch::channel(Leader::Unknown);
    let (listeners, waiting) = (Listeners::default(), CancellationToken::new());
    let forwarded = match answers {
        Answers::Forwarded if app.leader.enable_leader_election => &*addresses,
        Answers::Forwarded | Answers::Own => &[],
    };
    let standby = standby::serve(forwarded, &listeners, &leader_at, &waiting).await?;
    let opened = Opened {
        app,
        addresses,
        webhook,
        metrics,
        ready,
        listeners,
        leader: (leader, leader_at),
        waiting,
    };
    let life = async move {
        let _standby = standby;
        live(opened, host, before, work).await
    };
    Ok(life.boxed_local())
}

async fn live<P, S, B, W, F>(opened: Opened, host: Host, before: S, work: W) -> anyhow::Result<()>
where
    S: FnOnce(Standby) -> B,
    B: Future<Output = anyhow::Result<P>>,
    W: FnOnce(Context, P) -> F,
    F: Future<Output = anyhow::Result<()>>,
{
    let Host {
        vital,
        shutdown: token,
        ..
    } = host;
    let Opened {
        app,
        addresses,
        webhook,
        metrics,
        ready,
        listeners,
        leader: (leader, leader_at),
        waiting,
    } = opened;
    let client = client::connect(app.name, &app.client, metrics.rest()).await?;
    let namespace = runtime_namespace(&app.watch, &client);
    let lease = app.watch.lease_name(app.name);
    let candidacy = Candidacy::default();
    let announcement = leader::Announcement {
        own: standby::reached_at(&addresses),
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
        let (name, flags, connect) = (app.name, app.leader.clone(), app.client.clone());
        let (namespace, metrics) = (namespace.clone(), metrics.clone());
        async move {
            // Connections are kept alive by the runtime that made them.
            let client = client::connect(name, &connect, metrics.rest()).await?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn when_one_fails_the_others_are_told_to_end_and_waited_for() {
        let shutdown = CancellationToken::new();
        let (released, token) = (CancellationToken::new(), shutdown.clone());
        let drained = released.clone();
        let lives: Vec<Work<()>> = vec![
            async { Err(anyhow::anyhow!("no port")) }.boxed_local(),
            async move {
                token.cancelled().await;
                tokio::time::sleep(Duration::from_secs(1)).await;
                drained.cancel();
                Ok(())
            }
            .boxed_local(),
            // One that does not listen holds up nothing for long.
            std::future::pending().boxed_local(),
        ];
        let began = tokio::time::Instant::now();
        let error = live_together(lives, &shutdown).await.expect_err("one failed");
        assert_eq!(error.to_string(), "no port");
        assert!(released.is_cancelled() && began.elapsed() == FAILED_TIMEOUT);
        let lives: Vec<Work<()>> = vec![std::future::ready(Ok(())).boxed_local()];
        live_together(lives, &shutdown).await.expect("it ended well");
    }
}
