//! A real Kubernetes control plane on loopback, up in seconds and gone with its owner.
//!
//! etcd → kube-apiserver → kube-controller-manager, kube-scheduler and kwok, each a child process with its log in a
//! temporary directory. Nodes are Ready and pods Running because kwok says so (see hack/kwok), everything else is the
//! real thing: RBAC, admission, garbage collection, rollouts, namespace deletion. Nothing of it writes to disk for
//! good (`--unsafe-no-fsync`).
//!
//! An existing cluster can stand in for it ([`ControlPlane::existing`]); it is then left as it is found.

mod api_metrics;
mod components;
mod faults;
mod options;
mod ready;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::OnceCell;

pub use api_metrics::ApiMetrics;
pub use options::Components;

use crate::process::Process;
use crate::tools;

pub use options::Options;

/// A running control plane. Dropping it kills its processes and removes its files.
#[derive(Debug)]
pub struct ControlPlane {
    // In the order of dropping: clients before servers, and the directory with the logs last.
    processes: Vec<Process>,
    config: Config,
    kubeconfig: PathBuf,
    components: Components,
    /// For starting it again.
    api_server_flags: Vec<String>,
    start_time: Duration,
    directory: Option<TempDir>,
}

impl ControlPlane {
    /// Builds the programs that are missing (see [`tools`]), starts them, and returns when the API server is ready,
    /// the default namespace can be used and every node is Ready.
    pub async fn start(options: Options) -> Result<Self> {
        install_crypto_provider();
        let tools = options.components.tools();
        tokio::task::spawn_blocking(move || tools::ensure_loudly(tools)).await??;
        let started = Instant::now();
        let directory = crate::scratch::directory("control-plane")?;
        let mut own = components::start(&options, directory.path()).await?;
        // A client stops before its server.
        own.processes.reverse();
        let control_plane = Self {
            processes: own.processes,
            config: load_config(&own.kubeconfig).await?,
            kubeconfig: own.kubeconfig,
            components: options.components,
            api_server_flags: own.api_server_flags,
            start_time: started.elapsed(),
            directory: Some(directory),
        };
        ready::wait(&control_plane, options.nodes).await?;
        Ok(Self {
            start_time: started.elapsed(),
            ..control_plane
        })
    }

    /// Uses the cluster of the current context of `kubeconfig`, which stays when this is dropped.
    pub async fn existing(kubeconfig: &Path) -> Result<Self> {
        install_crypto_provider();
        Ok(Self {
            processes: Vec::new(),
            config: load_config(kubeconfig).await?,
            kubeconfig: kubeconfig.to_owned(),
            components: Components::All,
            api_server_flags: Vec::new(),
            start_time: Duration::ZERO,
            directory: None,
        })
    }

    /// One control plane for all tests of a binary; each test takes a [`namespace`](Self::namespace) of its own.
    /// It dies with the process. `WINDLASS_TEST_USE_KUBECONFIG=1` uses the cluster of `KUBECONFIG` instead.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<Result<ControlPlane>> = OnceCell::const_new();
        // A failure is kept too: a second test would only wait for the same one again.
        match SHARED.get_or_init(start_shared).await {
            Ok(control_plane) => Ok(control_plane),
            Err(error) => Err(anyhow::anyhow!(
                "the shared control plane did not start: {error:#}"
            )),
        }
    }

    /// A client of its own for the calling test: a client's connections end with the runtime that made them, and each
    /// `#[tokio::test]` has one. Must be called within a runtime.
    pub fn client(&self) -> Client {
        Client::try_from(self.config.clone()).expect("this configuration was checked when it was loaded")
    }

    /// The client configuration, for clients with other timeouts or identities.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// A kubeconfig file with cluster-admin rights.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig
    }

    /// How long it took to start, without building tools.
    pub fn start_time(&self) -> Duration {
        self.start_time
    }

    /// The processes, for measuring them. Empty for an existing cluster.
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// Where the logs are. None for an existing cluster.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_ref().map(TempDir::path)
    }

    /// Has all containers of simulated nodes write a line to their log.
    pub fn log(&self, line: &str) -> Result<()> {
        let directory = self.directory().context("the control plane is another's")?;
        let mut log = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(directory.join(components::CONTAINER_LOG))
            .context("failed to open the log of containers")?;
        // As container runtimes write it.
        let now = jiff::Timestamp::now();
        writeln!(log, "{now} stdout F {line}").context("failed to write to the log of containers")
    }

    /// The API server's own counts of the requests it has answered.
    pub async fn api_metrics(&self) -> Result<ApiMetrics> {
        ApiMetrics::read(&self.client()).await
    }

    /// Makes a namespace that no other test has, named after `purpose`, and waits until pods can be made in it.
    pub async fn namespace(&self, purpose: &str) -> Result<String> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{purpose}-{:x}-{number}", std::process::id());
        let namespaces: Api<Namespace> = Api::all(self.client());
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        namespaces
            .create(&PostParams::default(), &namespace)
            .await
            .with_context(|| format!("failed to create the namespace {name}"))?;
        if self.components == Components::All {
            ready::wait_for_service_account(&self.client(), &name).await?;
        }
        Ok(name)
    }

    /// Deletes a namespace without waiting for it. With pods in it that takes half their grace period (30 s unless
    /// `terminationGracePeriodSeconds` says otherwise), because the namespace controller looks again only then.
    pub async fn delete_namespace(&self, name: &str) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client());
        let deleted = namespaces.delete(name, &DeleteParams::background()).await;
        deleted
            .map(drop)
            .with_context(|| format!("failed to delete the namespace {name}"))
    }

    /// Fails with the tail of the log of the first process that has ended.
    pub fn check_running(&self) -> Result<()> {
        self.processes.iter().try_for_each(Process::check_running)
    }
}

async fn start_shared() -> Result<ControlPlane> {
    let use_kubeconfig = std::env::var("WINDLASS_TEST_USE_KUBECONFIG").is_ok_and(|value| value == "1");
    if !use_kubeconfig {
        return ControlPlane::start(Options::default()).await;
    }
    let path = std::env::var_os("KUBECONFIG").context("WINDLASS_TEST_USE_KUBECONFIG=1 needs KUBECONFIG")?;
    ControlPlane::existing(Path::new(&path)).await
}

async fn load_config(kubeconfig: &Path) -> Result<Config> {
    let read = || format!("failed to read the kubeconfig {}", kubeconfig.display());
    let file = Kubeconfig::read_from(kubeconfig).with_context(read)?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .with_context(read)?;
    config.connect_timeout = Some(Duration::from_secs(5));
    Client::try_from(config.clone()).with_context(read)?;
    Ok(config)
}

/// rustls asks for one provider per process; a second call finds it there.
fn install_crypto_provider() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}
