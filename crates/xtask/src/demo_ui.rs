//! Something to look at: a console over two clusters, with applications that are well and that fail for different causes.
//!
//! All of it is real: API servers, a Git server, our controllers, and what they make of the manifests. `--then` runs a command
//! with the console's address in `WINDLASS_UI`, and ends with it: that is how the pages are tested in a browser.

mod apps;
mod promotion;

use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::controller::{Controller, ControllerOptions};
use testkit::objects::apply;
use testkit::ports::free_port;
use testkit::{ControlPlane, GitServer, Options, install_all_crds};

use apps::{NAMESPACES, SETTLED};

/// The clusters: the console's own, and another one.
const CLUSTERS: [&str; 2] = ["eu", "us"];
/// The namespace that names the other one.
const NAMED_IN: &str = "clusters";
/// Who everyone at a browser is.
const GUEST: &str = "operator";
const PATIENCE: Duration = Duration::from_secs(120);

/// Arguments of `xtask demo-ui`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Port of the console on 127.0.0.1; a free one by default.
    #[arg(long)]
    port: Option<u16>,
    /// Run this command with the console's address in WINDLASS_UI, and end when it ends.
    #[arg(long, num_args = 1.., value_name = "COMMAND", allow_hyphen_values = true)]
    then: Vec<String>,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(show(arguments))
}

/// A cluster with our controllers.
struct Cluster {
    control_plane: ControlPlane,
    source: Controller,
    _apply: Controller,
    _helm: Controller,
}

async fn show(arguments: &Arguments) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "starting two clusters, Git servers and the controllers …")?;
    let git = GitServer::start().await?;
    let repository = git.create_repository("apps")?;
    apps::commit(&repository)?;
    let forge = promotion::Forge::start().await?;
    let (eu, us) = tokio::try_join!(Cluster::start(), Cluster::start())?;
    for cluster in [&eu, &us] {
        apps::deploy(&cluster.control_plane.client(), repository.url()).await?;
    }
    let home = eu.control_plane.client();
    let _promoting = promotion::deploy(&eu.control_plane, &forge).await?;
    name_the_other(&home, &us).await?;
    for cluster in [&eu, &us] {
        let_all(&cluster.control_plane.client()).await?;
    }
    let folder = testkit::scratch::directory("demo-ui")?;
    let (console, address) = console(&eu, arguments.port, &folder).await?;
    settle(&address).await?;
    // Something to look back at: the second change is on its way to all.
    apps::commit_again(&repository)?;
    forge.commit_again().await?;
    for cluster in [&eu, &us] {
        apps::reconcile(&cluster.control_plane.client()).await?;
    }
    promotion::until_released(&home, 1, 2).await?;
    writeln!(
        out,
        "\nopen {address} (everyone there is the user {GUEST:?}, who may do all)"
    )?;
    let ended = match arguments.then.split_first() {
        Some((program, rest)) => {
            let mut command = Command::new(program);
            command.args(rest).env("WINDLASS_UI", &address);
            let waiting = tokio::task::spawn_blocking(move || command.status());
            let status = waiting
                .await?
                .with_context(|| format!("{program} cannot be run"))?;
            ensure!(status.success(), "{program} ended with {status}");
            Ok(())
        }
        None => {
            writeln!(out, "Ctrl-C ends it")?;
            Ok(tokio::signal::ctrl_c().await?)
        }
    };
    drop(console);
    ended
}

impl Cluster {
    async fn start() -> Result<Self> {
        let control_plane = ControlPlane::start(Options::api_server_only()).await?;
        let client = control_plane.client();
        install_all_crds(&client).await?;
        for name in NAMESPACES.iter().chain(&[NAMED_IN]) {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            apply(&client, &namespace).await?;
        }
        let kubeconfig = control_plane.kubeconfig_path();
        let options = ControllerOptions::default;
        let source = Controller::start_source(kubeconfig, options()).await?;
        let applying = Controller::start_apply(kubeconfig, &source, options()).await?;
        let helm = Controller::start_helm(kubeconfig, &source, options()).await?;
        Ok(Self {
            control_plane,
            source,
            _apply: applying,
            _helm: helm,
        })
    }
}

/// Tells the console of the other cluster.
async fn name_the_other(home: &Client, other: &Cluster) -> Result<()> {
    let kubeconfig = std::fs::read_to_string(other.control_plane.kubeconfig_path())?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "stringData": {"value": kubeconfig},
        "metadata": {
            "name": CLUSTERS[1], "namespace": NAMED_IN, "labels": {"windlass.dev/cluster": CLUSTERS[1]},
        },
    });
    apply(home, &secret).await.map(drop)
}

/// Lets the guest do all in a cluster.
async fn let_all(client: &Client) -> Result<()> {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": GUEST},
        "subjects": [{"kind": "User", "name": GUEST, "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    });
    apply(client, &binding).await.map(drop)
}

async fn console(home: &Cluster, port: Option<u16>, folder: &TempDir) -> Result<(Controller, String)> {
    let port = match port {
        Some(port) => port,
        None => free_port()?,
    };
    let address = format!("http://127.0.0.1:{port}");
    let config = json!({
        "apiVersion": "web.fluxcd.controlplane.io/v1", "kind": "Config",
        "spec": {"baseURL": address, "authentication": {"type": "Anonymous", "anonymous": {"username": GUEST, "groups": []}}},
    });
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, config.to_string())?;
    let options = ControllerOptions {
        flags: vec![
            format!("--api-addr=127.0.0.1:{port}"),
            format!("--cluster-name={}", CLUSTERS[0]),
            format!("--clusters-namespace={NAMED_IN}"),
            format!("--sign-in-config={}", file.display()),
            format!(
                "--ledger-url=sqlite:{}",
                folder.path().join("ledger.db").display()
            ),
            format!("--source-url={}", home.source.storage_url()),
            "--actions=impersonated".to_owned(),
        ],
        ..ControllerOptions::default()
    };
    let console = Controller::start_console(home.control_plane.kubeconfig_path(), options).await?;
    Ok((console, address))
}

/// Waits until the applications of both clusters are as they will be.
async fn settle(address: &str) -> Result<()> {
    let http = reqwest::Client::builder().no_proxy().build()?;
    let mut last = Value::Null;
    let waiting = async {
        loop {
            let page = http
                .get(format!("{address}/api/v1/objects?kind=ks,hr&limit=100"))
                .send()
                .await?;
            let text = page.text().await?;
            let page: Value = serde_json::from_str(&text)?;
            last = page["facets"]["status"].clone();
            let has = |(status, count): &(&str, u64)| last[status].as_u64() >= Some(*count);
            if SETTLED.iter().all(has) {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(200)).await; // the list is asked again: it does not report changes
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    waited.with_context(|| format!("the applications stay {last}"))?
}
