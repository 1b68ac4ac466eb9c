//! A control plane without any definition of ours, and the real helm on it.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use tempfile::TempDir;
use testkit::controller::program;
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
        Self::with_nodes(1).await
    }

    /// Without nodes, Pods stay Pending.
    pub async fn with_nodes(nodes: usize) -> Self {
        let options = Options {
            nodes,
            ..Options::default()
        };
        let control_plane = ControlPlane::start(options).await.unwrap();
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

    /// Runs `windlass` in our namespace; gives what it said on both of its streams before it ended with this exit code.
    pub async fn windlass(&self, words: &[&str], code: i32) -> Result<String> {
        let kubeconfig = self.control_plane.kubeconfig_path().display().to_string();
        windlass(&kubeconfig, words, code).await
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

/// The command as users run it.
pub fn windlass_command(kubeconfig: &str, words: &[&str]) -> Result<Command> {
    let mut command = Command::new(program("windlass")?);
    // Of flags that are given twice, the last counts: words may name another kubeconfig.
    let (verb, rest) = words.split_first().context("no words")?;
    command
        .arg(verb)
        .args(["--kubeconfig", kubeconfig, "--namespace", NAMESPACE])
        .args(rest)
        .stdin(Stdio::null());
    Ok(command)
}

/// Runs it; gives what it said on both of its streams before it ended with this exit code.
pub async fn windlass(kubeconfig: &str, words: &[&str], code: i32) -> Result<String> {
    let mut command = windlass_command(kubeconfig, words)?;
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    println!("$ windlass {}\n{said}", words.join(" "));
    ensure!(
        output.status.code() == Some(code),
        "{words:?} ended with {:?}:\n{said}",
        output.status
    );
    Ok(said)
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
pub const PATIENCE: Duration = Duration::from_secs(240);
