//! Flux's controllers as processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tempfile::TempDir;
use testkit::process::Process;
use testkit::{ports, scratch};

/// Where Flux's binaries are, and a folder for their storage and logs.
pub struct Peer {
    binaries: PathBuf,
    kubeconfig: PathBuf,
    directory: TempDir,
    /// Words before a program of this name.
    wrappers: BTreeMap<&'static str, Vec<String>>,
}

/// A running controller of Flux.
pub struct Started {
    /// The process.
    pub process: Process,
    /// From its start until it was ready.
    pub start_time: Duration,
    /// The port of its metrics.
    metrics: u16,
}

impl Peer {
    /// The binaries in `folder`, against the cluster of `kubeconfig`.
    pub fn new(folder: &Path, kubeconfig: &Path) -> Result<Self> {
        Ok(Self {
            binaries: folder.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            directory: scratch::directory("flux")?,
            wrappers: BTreeMap::new(),
        })
    }

    /// Puts words before a program, such as those of a shell that prepares something and then becomes it.
    pub fn wrap(&mut self, name: &'static str, words: Vec<String>) {
        self.wrappers.insert(name, words);
    }

    /// The folder, which must live as long as the processes.
    pub fn into_directory(self) -> TempDir {
        self.directory
    }

    /// source-controller with `flags` beside those that it needs.
    pub async fn source(&self, flags: &[&str]) -> Result<Started> {
        let storage = self.directory.path().join("storage");
        std::fs::create_dir_all(&storage)?;
        let address = format!("127.0.0.1:{}", ports::free_port()?);
        let mut arguments = vec![
            format!("--storage-path={}", storage.display()),
            format!("--storage-addr={address}"),
            format!("--storage-adv-addr={address}"),
        ];
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self.start("source-controller", arguments).await
    }

    /// image-reflector-controller, with a folder for its tags.
    pub async fn reflector(&self) -> Result<Started> {
        let storage = self.directory.path().join("tags");
        std::fs::create_dir_all(&storage)?;
        let flag = format!("--storage-path={}", storage.display());
        self.start("image-reflector-controller", vec![flag]).await
    }

    /// notification-controller, and where events are posted to.
    pub async fn notification(&self) -> Result<(Started, String)> {
        let events = format!("127.0.0.1:{}", ports::free_port()?);
        let arguments = vec![
            format!("--events-addr={events}"),
            format!("--receiverAddr=127.0.0.1:{}", ports::free_port()?),
        ];
        let started = self.start("notification-controller", arguments).await?;
        Ok((started, format!("http://{events}/")))
    }

    /// Another controller, which needs no flags of its own.
    pub async fn other(&self, name: &'static str) -> Result<Started> {
        self.start(name, Vec::new()).await
    }

    /// Another controller with flags.
    pub async fn with_flags(&self, name: &'static str, flags: &[&str]) -> Result<Started> {
        let flags = flags.iter().map(|flag| (*flag).to_owned());
        self.start(name, flags.collect()).await
    }

    async fn start(&self, name: &'static str, arguments: Vec<String>) -> Result<Started> {
        let (health, metrics) = (ports::free_port()?, ports::free_port()?);
        let program = self.binaries.join(name);
        let words = self.wrappers.get(name).map(Vec::as_slice).unwrap_or_default();
        let mut command = testkit::controller::wrapped(words, &program);
        // The last of a flag wins: controllers that send events shall send none.
        command
            .arg("--events-addr=")
            .args(arguments)
            .arg(format!("--health-addr=127.0.0.1:{health}"))
            .arg(format!("--metrics-addr=127.0.0.1:{metrics}"))
            .env("KUBECONFIG", &self.kubeconfig)
            .env("RUNTIME_NAMESPACE", "default")
            .current_dir(self.directory.path());
        let log = self.directory.path().join(format!("{name}.log"));
        let start = Instant::now();
        let process = Process::start(name, command, log)?;
        ready(&process, health).await?;
        Ok(Started {
            process,
            start_time: start.elapsed(),
            metrics,
        })
    }
}

impl Started {
    /// The text of `/metrics`.
    pub async fn metrics(&self) -> Result<String> {
        let http = reqwest::Client::builder().no_proxy().build()?;
        let answer = http.get(format!("http://127.0.0.1:{}/metrics", self.metrics));
        Ok(answer.send().await?.error_for_status()?.text().await?)
    }
}

async fn ready(process: &Process, port: u16) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(60);
    let http = reqwest::Client::builder().no_proxy().build()?;
    while Instant::now() < deadline {
        process.check_running()?;
        let answer = http.get(format!("http://127.0.0.1:{port}/readyz")).send().await;
        if answer.is_ok_and(|answer| answer.status().is_success()) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bail!("{} is not ready:\n{}", process.name(), process.log_tail(20))
}
