//! `windlass ui`: the console on this machine, for the user of the kubeconfig, until Ctrl-C. Nothing is installed, nor kept.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use access_review::{Caller, Reviews, Target};
use clap::Args;
use console_server::access::Access;
use console_server::clusters::{Hand, Other};
use console_server::{Archives, Mode, Server, Settings};
use controller_kit::events::Recorder;
use controller_kit::metrics::Metrics;
use fleet::watch::Reach;
use futures::future::join_all;
use jiff::SignedDuration;
use ledger::store::Ledger;
use sign_in::identity::User;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::cluster::{self, Cluster, ClusterFlags, Failure};

/// Publishes the Events about what is done.
const NAME: &str = "windlass-ui";
/// What happened in a longer time is not told by any object.
const KEPT: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);
/// A cluster beside the first may be away; whether it lets the user see all namespaces is not waited for longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Command line of `ui`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Kubeconfig contexts, separated by commas, one per cluster; defaults to the current one
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    context: Vec<String>,

    /// Kubeconfig file; defaults to $KUBECONFIG, ~/.kube/config, or the Pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Namespaces, separated by commas; defaults to all, or to that of the context if you may not list all
    #[arg(long, short, value_name = "NAMES", value_delimiter = ',')]
    namespace: Vec<String>,

    /// Port on 127.0.0.1; any free one by default
    #[arg(long, default_value_t = 0, value_name = "PORT", hide_default_value = true)]
    port: u16,

    /// Disable actions: reconcile, suspend, resume and restart
    #[arg(long)]
    read_only: bool,
}

/// A cluster, its name, and the namespaces that are watched (all if none is named).
struct Place {
    name: Arc<str>,
    cluster: Cluster,
    namespaces: Vec<String>,
}

/// Serves until it is interrupted. `report_line` has the links.
pub(crate) fn run(flags: &Flags, report_line: fn(&str)) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.map_err(Failure::Runtime)?;
    let outcome = runtime.block_on(serve(flags, report_line));
    // An answer that does not come must not hold the terminal.
    runtime.shutdown_background();
    outcome
}

async fn serve(flags: &Flags, report_line: fn(&str)) -> Result<(), Failure> {
    let mut places = places(flags, report_line).await?.into_iter();
    let home = places.next();
    let home = home.ok_or_else(|| Failure::Usage("--context names no context".to_owned()))?;
    let reviews = Reviews::for_self(home.cluster.client());
    let failed = |what: &str, error: &dyn std::error::Error| Failure::Request {
        what: what.to_owned(),
        why: error_chain::condensed(error),
    };
    let myself = reviews.myself().await;
    let myself = myself.map_err(|error| failed("ask the API server who you are", &error))?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, flags.port));
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|error| failed(&format!("listen at {address}"), &error))?;
    let address = listener.local_addr().map_err(Failure::Runtime)?;
    let base: Url = format!("http://{address}/")
        .parse()
        .map_err(|error| failed("write a link", &error))?;
    report_line(&format!(
        "showing {} to {}; Ctrl-C ends it",
        home.name, myself.username
    ));
    let tell = move |link: &str| report_line(&format!("open once: {link}"));
    let access = Access::by_links(base, user(&myself), tell);
    let access = access.map_err(|error| failed("make a link", &error))?;
    let ledger = Ledger::in_memory().await;
    let ledger = ledger.map_err(|error| failed("make a ledger", &error))?;
    let ending = CancellationToken::new();
    let hand = |cluster: &Cluster| Hand {
        client: cluster.client(),
        recorder: Recorder::new(cluster.client(), NAME, ending.clone()),
    };
    let Hand { client, recorder } = hand(&home.cluster);
    let settings = Settings {
        home: home.name,
        client,
        recorder,
        reviews,
        access: Some(access),
        ledger: Some((ledger, KEPT)),
        cdevents: None,
        actions: if flags.read_only { Mode::None } else { Mode::Own },
        watch_pods: true,
        reach: reach(home.namespaces),
        archives: Archives::Services,
        mcp: false,
    };
    let server = Server::new(settings, &Metrics::new(), ending.clone());
    let others = places.map(|place| {
        let other = Other {
            reviews: Arc::new(Reviews::for_self_in_remote(place.cluster.client())),
            hand: hand(&place.cluster),
            shares_accounts: true,
            reach: reach(place.namespaces),
        };
        (place.name, other)
    });
    let others: Vec<_> = others.collect();
    let shown = server.shown();
    let following = async {
        let watches = others
            .into_iter()
            .map(|(name, other)| async move { shown.watch(&name, other).await });
        // Without others this has nothing to do, and must not end either.
        join_all(watches).await;
        std::future::pending::<()>().await;
    };
    let complete = || report_line("all of it is listed");
    tokio::select! {
        outcome = server.run(listener, following, complete) => {
            outcome.map_err(|error| failed("go on", &*error.into_boxed_dyn_error()))
        }
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

/// The clusters, the first of which says who the user is.
async fn places(flags: &Flags, report_line: fn(&str)) -> Result<Vec<Place>, Failure> {
    let contexts: Vec<Option<String>> = match flags.context.as_slice() {
        [] => vec![None],
        some => some.iter().cloned().map(Some).collect(),
    };
    let mut seen = HashSet::new();
    let mut places = Vec::new();
    for context in contexts {
        let named = ClusterFlags::of_context(flags.kubeconfig.clone(), context.clone());
        let name = context.or_else(|| cluster::current_context(&named));
        let name: Arc<str> = name.unwrap_or_else(|| "local".to_owned()).into();
        if !seen.insert(name.clone()) {
            continue;
        }
        let cluster = cluster::connect(&named).await?;
        let namespaces = match flags.namespace.as_slice() {
            [] => namespaces(&name, &cluster, report_line).await,
            some => some.to_vec(),
        };
        places.push(Place {
            name,
            cluster,
            namespaces,
        });
    }
    Ok(places)
}

/// All namespaces, or that of the context for someone who may not list in all.
async fn namespaces(name: &str, cluster: &Cluster, report_line: fn(&str)) -> Vec<String> {
    let all = Target {
        group: api::meta::KUSTOMIZE_GROUP,
        resource: "kustomizations",
        ..Target::default()
    };
    let reviews = Reviews::for_self(cluster.client());
    let myself = Caller::new("", &[]);
    let asking = reviews.may_now(&myself, "list", &all);
    match tokio::time::timeout(PATIENCE, asking).await {
        Ok(Ok(false)) => {
            let one = &cluster.namespace;
            report_line(&format!(
                "{name}: you may not list in all namespaces; showing {one} (others: --namespace)"
            ));
            vec![one.clone()]
        }
        _ => Vec::new(),
    }
}

fn reach(namespaces: Vec<String>) -> Reach {
    Reach {
        namespaces,
        skips_refused: true,
    }
}

fn user(caller: &Caller) -> User {
    User {
        username: caller.username.clone(),
        groups: caller.groups().to_vec(),
        name: caller.username.clone(),
    }
}
