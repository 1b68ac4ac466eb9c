//! A control plane without any definition of ours, and the real helm on it.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use tempfile::TempDir;
use testkit::tools::{self, repository_root};
use testkit::{ControlPlane, Options};

/// Where Flux is by default, and so are we.
pub const NAMESPACE: &str = "flux-system";

/// The chart's folder.
pub fn chart() -> PathBuf {
    repository_root().join("charts/windlass")
}

/// A cluster of its own: the definitions of the chart are cluster-wide.
pub struct Cluster {
    pub control_plane: ControlPlane,
    pub client: Client,
    helm: Helm,
}

impl Cluster {
    pub async fn start() -> Self {
        let control_plane = ControlPlane::start(Options::default()).await.unwrap();
        Self {
            client: control_plane.client(),
            helm: Helm::new(Some(control_plane.kubeconfig_path().to_owned())).await,
            control_plane,
        }
    }

    /// Runs helm in our namespace, and gives what it says.
    pub async fn helm(&self, arguments: &[&str]) -> Result<String> {
        self.helm.run(arguments).await
    }

    /// Installs or upgrades, and waits until all is ready.
    pub async fn install(&self, arguments: &[&str]) -> Result<String> {
        let chart = chart();
        let mut all = vec!["upgrade", "--install", "windlass", chart.to_str().unwrap()];
        all.extend(["--create-namespace", "--wait", "--timeout", "2m"]);
        all.extend(arguments);
        self.helm(&all).await
    }
}

/// The real helm with a home of its own.
pub struct Helm {
    program: PathBuf,
    home: TempDir,
    kubeconfig: Option<PathBuf>,
}

impl Helm {
    pub async fn new(kubeconfig: Option<PathBuf>) -> Self {
        let program = tokio::task::spawn_blocking(tools::helm).await.unwrap().unwrap();
        Self {
            program,
            home: testkit::scratch::directory("helm").unwrap(),
            kubeconfig,
        }
    }

    pub async fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.args(arguments).args(["--namespace", NAMESPACE]);
        command.env_clear().env("HOME", self.home.path());
        if let Some(kubeconfig) = &self.kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        said(&output, arguments)
    }
}

/// The standard output, or the standard error as an error.
pub fn said(output: &Output, arguments: &[&str]) -> Result<String> {
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {problem}", arguments.join(" "));
    String::from_utf8(output.stdout.clone()).context("it is no text")
}

/// How long something may take that is watched for.
pub const PATIENCE: Duration = Duration::from_secs(60);
