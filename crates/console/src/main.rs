//! Answers what is delivered where, since when, from which revision, and why not, in the cluster: `console-server` with flags.

mod flags;
mod named;

use std::process::ExitCode;
use std::sync::Arc;

use access_review::Reviews;
use anyhow::Context as _;
use clap::Parser as _;
use cluster_access::targets::{Options, Targets};
use console_server::access::Access;
use console_server::{Archives, Server, Settings, description};
use controller_kit::{Context as Kit, Program};
use fleet::watch::Reach;
use jiff::SignedDuration;
use ledger::store::Ledger;
use tokio::net::TcpListener;
use workload_identity::Identities;

use crate::flags::Flags;

/// Name of the program, of its metrics and of its client.
const NAME: &str = "console";
/// The check that fails until all kinds are listed.
const PICTURE: &str = "picture";

fn main() -> ExitCode {
    let flags = Flags::parse();
    if flags.openapi {
        return description::print();
    }
    let app = flags.common.app(NAME, &[PICTURE]);
    Program::new(app, |kit| serve(flags, kit)).run()
}

/// Watches and serves until the process is told to end.
async fn serve(flags: Flags, kit: Kit) -> anyhow::Result<()> {
    let home: Arc<str> = flags.cluster_name.as_str().into();
    let access = flags.sign_in_config.as_deref();
    let access = access.map(|config| Access::read(config, flags.session_key_file.as_deref()));
    let ledger = match flags.ledger_url.as_str() {
        "" => None,
        url => Some((
            Ledger::open(url).await?,
            SignedDuration::try_from(flags.ledger_retention)?,
        )),
    };
    anyhow::ensure!(
        flags.cdevents_url.is_none() || ledger.is_some(),
        "--cdevents-url needs a ledger: --ledger-url"
    );
    let settings = Settings {
        home: home.clone(),
        client: kit.client.clone(),
        recorder: kit.recorder.clone(),
        reviews: Reviews::for_users(kit.client.clone()),
        access: access.transpose()?,
        ledger,
        cdevents: flags.cdevents_url.clone(),
        actions: flags.actions,
        watch_pods: flags.watch_pods,
        reach: Reach::default(),
        archives: Archives::from_server(flags.source_url.as_ref(), &kit.namespace)
            .context("the namespace makes no URL")?,
        mcp: flags.mcp,
    };
    let listener = TcpListener::bind(flags.api_addr).await;
    let listener = listener.with_context(|| format!("failed to listen at {}", flags.api_addr))?;
    let server = Server::new(settings, &kit.metrics, kit.token.clone());
    let following = async {
        match &flags.clusters_namespace {
            Some(namespace) => {
                named::follow(server.shown(), &home, &kit, targets(&flags, &kit), namespace).await;
            }
            None => std::future::pending().await,
        }
    };
    let grpc = grpc(&flags, &server, &kit).await?;
    let running = server.run(listener, following, || kit.ready.set(PICTURE, true));
    tokio::try_join!(running, grpc).map(|_| ())
}

/// Listens for gRPC, if that is wanted; what is returned serves it.
async fn grpc(
    flags: &Flags,
    server: &Server,
    kit: &Kit,
) -> anyhow::Result<impl Future<Output = anyhow::Result<()>> + use<>> {
    let listener = match flags.grpc_addr {
        Some(address) => {
            let listener = TcpListener::bind(address).await;
            Some(listener.with_context(|| format!("failed to listen at {address}"))?)
        }
        None => None,
    };
    let (asker, ending) = (server.asker(), kit.token.clone());
    Ok(async move {
        match listener {
            Some(listener) => Ok(console_grpc::serve(listener, asker, ending).await?),
            None => Ok(()),
        }
    })
}

/// Ways to other clusters, as Kustomizations have them. Nothing is applied there.
fn targets(flags: &Flags, kit: &Kit) -> Targets {
    let identities = Identities::new(kit.client.clone(), flags.common.token, true);
    let options = Options {
        kubeconfig: flags.kubeconfig,
        client: flags.common.client.clone(),
        name: kit.name,
        metrics: kit.metrics.rest().clone(),
        default_account: None,
        identities: Arc::new(identities),
        remote_account: None,
    };
    Targets::new(kit.client.clone(), kube_apply::Settings::default(), options).0
}
