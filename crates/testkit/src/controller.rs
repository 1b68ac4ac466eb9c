//! Our own controllers as processes, as users run them: flags, environment, health endpoint, signals.
//!
//! The artifact service is as a user has it: over TLS with source-controller's own authority, read by a service account
//! that may get sources ([`crate::artifact_access`]).
//!
//! The programs are those that lie beside the running test or tool in the target folder; build them first
//! (`cargo build`), testkit does not. `WINDLASS_BIN_DIR` names another folder, such as one with release builds.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use crate::artifact_access::{self, READER};
use crate::control_plane::ControlPlane;
use crate::ports::free_port;
use crate::process::{Process, Usage};

/// How a controller is started, beyond what testkit chooses by itself (addresses and storage).
#[derive(Debug, Clone, Default)]
pub struct ControllerOptions {
    /// Flags that come after, and so win over, testkit's own.
    pub flags: Vec<String>,
    /// Further environment variables.
    pub environment: Vec<(String, String)>,
    /// The namespace that the controller thinks it runs in; `default` when empty.
    pub namespace: String,
    /// A volume of this many bytes for source-controller's storage, mounted at this folder, which exists. It is in memory
    /// and in a mount namespace of the process: others see it below `/proc/<pid>/root`.
    pub volume: Option<(PathBuf, u64)>,
    /// Words before the program, such as those of a shell that prepares something and then becomes it.
    pub wrapper: Vec<String>,
}

/// A running controller. Dropping it kills it and removes its storage.
#[derive(Debug)]
pub struct Controller {
    name: &'static str,
    /// That it thinks it runs in.
    namespace: String,
    program: PathBuf,
    flags: Vec<String>,
    environment: Vec<(String, String)>,
    volume: Option<(PathBuf, u64)>,
    wrapper: Vec<String>,
    ports: Ports,
    /// None between [`kill`](Self::kill) and [`restart`](Self::restart).
    process: Option<Process>,
    starts: AtomicU32,
    start_time: Duration,
    directory: TempDir,
}

#[derive(Debug, Clone, Copy)]
struct Ports {
    storage: u16,
    grpc: u16,
    metrics: u16,
    health: u16,
    events: u16,
    receiver: u16,
    api: u16,
}

/// Starting includes the check of the whole store.
const READY_PATIENCE: Duration = Duration::from_secs(60);

impl Controller {
    /// Starts source-controller against the cluster of `kubeconfig` and waits until it is ready.
    pub async fn start_source(kubeconfig: &Path, options: ControllerOptions) -> Result<Self> {
        let mut controller = Self::prepare_source(kubeconfig, options)?;
        controller.restart().await?;
        Ok(controller)
    }

    /// A source-controller that is yet to be started, with its addresses and an empty storage.
    pub fn prepare_source(kubeconfig: &Path, options: ControllerOptions) -> Result<Self> {
        let mut controller = Self::prepare("source-controller", kubeconfig, options)?;
        let Ports { storage, grpc, .. } = controller.ports;
        let own_flags = vec![
            format!("--storage-path={}", controller.storage_path().display()),
            format!("--storage-addr=127.0.0.1:{storage}"),
            format!("--storage-adv-addr=127.0.0.1:{storage}"),
            format!("--grpc-addr=127.0.0.1:{grpc}"),
        ];
        std::fs::create_dir_all(controller.storage_path()).context("failed to make the storage folder")?;
        controller.flags.splice(0..0, own_flags);
        Ok(controller)
    }

    /// Starts apply-controller, which reads artifacts from `source`, and waits until it is ready.
    ///
    /// It shows tokens of the service account [`READER`], which is made in its namespace and may get every source, unless
    /// the options name a file with a token.
    pub async fn start_apply(kubeconfig: &Path, source: &Self, options: ControllerOptions) -> Result<Self> {
        Self::start_consumer("apply-controller", kubeconfig, source, options).await
    }

    /// Starts helm-controller as [`start_apply`](Self::start_apply) does apply-controller.
    pub async fn start_helm(kubeconfig: &Path, source: &Self, options: ControllerOptions) -> Result<Self> {
        Self::start_consumer("helm-controller", kubeconfig, source, options).await
    }

    /// Starts notification-controller against the cluster of `kubeconfig` and waits until it is ready.
    pub async fn start_notification(kubeconfig: &Path, options: ControllerOptions) -> Result<Self> {
        let mut controller = Self::prepare("notification-controller", kubeconfig, options)?;
        let Ports { events, receiver, .. } = controller.ports;
        let own_flags = vec![
            format!("--events-addr=127.0.0.1:{events}"),
            format!("--receiverAddr=127.0.0.1:{receiver}"),
        ];
        controller.flags.splice(0..0, own_flags);
        controller.restart().await?;
        Ok(controller)
    }

    /// Starts source-, kustomize-, helm- and notification-controller in one process, which send their events to the last of them, and
    /// waits until all are ready. The flags of the options are for all.
    pub async fn start_all(kubeconfig: &Path, options: ControllerOptions) -> Result<Self> {
        let mut controller = Self::prepare("windlass-controllers", kubeconfig, options)?;
        let cluster = ControlPlane::existing(kubeconfig).await?;
        artifact_access::allow_all(&cluster.client(), &controller.namespace, READER).await?;
        std::fs::create_dir_all(controller.storage_path()).context("failed to make the storage folder")?;
        let Ports {
            storage,
            grpc,
            events,
            receiver,
            ..
        } = controller.ports;
        let sends = format!("--events-addr={}", controller.events_url());
        let reads = [
            format!("--artifact-service={}", controller.grpc_url()),
            format!("--artifact-service-account={READER}"),
        ];
        let groups = [
            vec![
                "source-controller".to_owned(),
                format!("--storage-path={}", controller.storage_path().display()),
                format!("--storage-addr=127.0.0.1:{storage}"),
                format!("--storage-adv-addr=127.0.0.1:{storage}"),
                format!("--grpc-addr=127.0.0.1:{grpc}"),
                sends.clone(),
            ],
            [&["kustomize-controller".to_owned(), sends.clone()], &reads[..]].concat(),
            [&["helm-controller".to_owned(), sends], &reads[..]].concat(),
            vec![
                "notification-controller".to_owned(),
                format!("--events-addr=127.0.0.1:{events}"),
                format!("--receiverAddr=127.0.0.1:{receiver}"),
            ],
        ];
        controller.flags.insert(0, "all".to_owned());
        for group in groups {
            controller.flags.push("--".to_owned());
            controller.flags.extend(group);
        }
        controller.restart().await?;
        Ok(controller)
    }

    /// Starts image-controller against the cluster of `kubeconfig` and waits until it is ready.
    pub async fn start_image(kubeconfig: &Path, options: ControllerOptions) -> Result<Self> {
        let mut controller = Self::prepare("image-controller", kubeconfig, options)?;
        let fetching = format!("--fetch-path={}", controller.storage_path().display());
        controller.flags.splice(0..0, [fetching]);
        controller.restart().await?;
        Ok(controller)
    }

    /// Starts pipeline-controller against the cluster of `kubeconfig` and waits until it is ready.
    pub async fn start_pipeline(kubeconfig: &Path, options: ControllerOptions) -> Result<Self> {
        let mut controller = Self::prepare("pipeline-controller", kubeconfig, options)?;
        let fetching = format!("--fetch-path={}", controller.storage_path().display());
        controller.flags.splice(0..0, [fetching]);
        controller.restart().await?;
        Ok(controller)
    }

    /// Starts resource-set-controller against the cluster of `kubeconfig` and waits until it is ready.
    pub async fn start_resource_sets(kubeconfig: &Path, options: ControllerOptions) -> Result<Self> {
        let mut controller = Self::prepare("resource-set-controller", kubeconfig, options)?;
        controller.restart().await?;
        Ok(controller)
    }

    /// Starts the console over the cluster of `kubeconfig` and waits until its picture is complete.
    pub async fn start_console(kubeconfig: &Path, options: ControllerOptions) -> Result<Self> {
        let mut controller = Self::prepare("console", kubeconfig, options)?;
        let address = format!("--api-addr=127.0.0.1:{}", controller.ports.api);
        let grpc = format!("--grpc-addr=127.0.0.1:{}", controller.ports.grpc);
        controller.flags.splice(0..0, [address, grpc]);
        controller.restart().await?;
        Ok(controller)
    }

    /// Starts another project's controller, a program that the caller has, with the flags and the environment that ours have
    /// too, and waits until it is ready. Artifacts it fetches over HTTP.
    pub async fn start_foreign(
        program: &Path,
        kubeconfig: &Path,
        options: ControllerOptions,
    ) -> Result<Self> {
        let mut controller = Self::prepared("foreign", program.to_owned(), kubeconfig, options)?;
        controller.restart().await?;
        Ok(controller)
    }

    async fn start_consumer(
        name: &'static str,
        kubeconfig: &Path,
        source: &Self,
        options: ControllerOptions,
    ) -> Result<Self> {
        let mut controller = Self::prepare(name, kubeconfig, options)?;
        let mut own_flags = vec![format!("--artifact-service={}", source.grpc_url())];
        let has_token = |flag: &String| flag.starts_with("--artifact-token-file");
        if !controller.flags.iter().any(has_token) {
            let cluster = ControlPlane::existing(kubeconfig).await?;
            artifact_access::allow_all(&cluster.client(), &controller.namespace, READER).await?;
            own_flags.push(format!("--artifact-service-account={READER}"));
        }
        controller.flags.splice(0..0, own_flags);
        controller.restart().await?;
        Ok(controller)
    }

    fn prepare(name: &'static str, kubeconfig: &Path, options: ControllerOptions) -> Result<Self> {
        Self::prepared(name, program(name)?, kubeconfig, options)
    }

    fn prepared(
        name: &'static str,
        program: PathBuf,
        kubeconfig: &Path,
        options: ControllerOptions,
    ) -> Result<Self> {
        let ports = Ports {
            storage: free_port()?,
            grpc: free_port()?,
            metrics: free_port()?,
            health: free_port()?,
            events: free_port()?,
            receiver: free_port()?,
            api: free_port()?,
        };
        let mut flags = vec![
            format!("--metrics-addr=127.0.0.1:{}", ports.metrics),
            format!("--health-addr=127.0.0.1:{}", ports.health),
        ];
        flags.extend(options.flags);
        let namespace = if options.namespace.is_empty() {
            "default".to_owned()
        } else {
            options.namespace
        };
        let mut environment = vec![
            ("KUBECONFIG".to_owned(), kubeconfig.display().to_string()),
            ("RUNTIME_NAMESPACE".to_owned(), namespace.clone()),
        ];
        environment.extend(options.environment);
        Ok(Self {
            name,
            namespace,
            program,
            flags,
            environment,
            volume: options.volume,
            wrapper: options.wrapper,
            ports,
            process: None,
            starts: AtomicU32::new(0),
            start_time: Duration::ZERO,
            directory: crate::scratch::directory(name)?,
        })
    }

    /// Starts it (again) with the same addresses and storage, and waits until it is ready.
    pub async fn restart(&mut self) -> Result<()> {
        let start = Instant::now();
        self.restart_unready()?;
        self.wait_ready().await?;
        self.start_time = start.elapsed();
        Ok(())
    }

    /// How long its last start took until it was ready, as seen every few milliseconds.
    pub fn start_time(&self) -> Duration {
        self.start_time
    }

    /// Starts it (again) without waiting, for tests that kill it while it starts.
    pub fn restart_unready(&mut self) -> Result<()> {
        self.process = None;
        let mut command = match &self.volume {
            Some((folder, bytes)) => in_volume(&self.program, folder, *bytes),
            None => wrapped(&self.wrapper, &self.program),
        };
        command
            .args(&self.flags)
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
            .current_dir(self.directory.path())
            .env("RUST_BACKTRACE", "1");
        let number = self.starts.fetch_add(1, Ordering::Relaxed) + 1;
        let log = self.directory.path().join(format!("log.{number}"));
        self.process = Some(Process::start(self.name, command, log)?);
        Ok(())
    }

    /// Waits until `/readyz` says yes.
    pub async fn wait_ready(&self) -> Result<()> {
        let url = format!("{}/readyz", self.health_url());
        let deadline = Instant::now() + READY_PATIENCE;
        loop {
            let Err(problem) = get(&url).await else {
                return Ok(());
            };
            self.process()?.check_running()?;
            if Instant::now() > deadline {
                let tail = self.log_tail(30);
                bail!(
                    "{} is not ready after {READY_PATIENCE:?}: {problem:#}; the end of its log:\n{tail}",
                    self.name
                );
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Where it says whether it is ready.
    pub fn health_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.health)
    }

    /// Kills it as `kill -9` does. Its storage stays for [`restart`](Self::restart).
    pub fn kill(&self) {
        if let Some(process) = &self.process {
            process.kill();
        }
    }

    /// Ends it with SIGTERM.
    pub fn terminate(&self, patience: Duration) -> Result<ExitStatus> {
        self.process()?.terminate(patience)
    }

    /// The text of `/metrics`.
    pub async fn metrics(&self) -> Result<String> {
        get(&format!("http://{}/metrics", self.metrics_address())).await
    }

    /// Where metrics are scraped: `127.0.0.1:port`.
    pub fn metrics_address(&self) -> String {
        format!("127.0.0.1:{}", self.ports.metrics)
    }

    /// The value of the first sample of `/metrics` whose line begins with `prefix` (name and first labels).
    pub async fn metric(&self, prefix: &str) -> Result<Option<f64>> {
        let text = self.metrics().await?;
        let line = text.lines().find(|line| line.starts_with(prefix));
        Ok(line.and_then(|line| line.rsplit_once(' ')?.1.parse().ok()))
    }

    /// Memory and processor time so far.
    pub fn usage(&self) -> Result<Usage> {
        self.process()?.usage()
    }

    /// Fails with the end of the log when it has ended.
    pub fn check_running(&self) -> Result<()> {
        self.process()?.check_running()
    }

    /// Everything that it has logged since its last start.
    pub fn log(&self) -> String {
        self.process.as_ref().map(Process::log).unwrap_or_default()
    }

    /// The last lines of the log, indented.
    pub fn log_tail(&self, lines: usize) -> String {
        self.process
            .as_ref()
            .map(|process| process.log_tail(lines))
            .unwrap_or_default()
    }

    /// The program's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The process; an error when there is none at the moment.
    pub fn process(&self) -> Result<&Process> {
        self.process
            .as_ref()
            .with_context(|| format!("{} was not started", self.name))
    }

    /// Where source-controller keeps its artifacts.
    pub fn storage_path(&self) -> PathBuf {
        match &self.volume {
            Some((folder, _)) => folder.clone(),
            None => self.directory.path().join("storage"),
        }
    }

    /// Where source-controller's gRPC artifact service listens.
    pub fn grpc_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.grpc)
    }

    /// The same as an address.
    pub fn grpc_address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.ports.grpc))
    }

    /// Where source-controller serves tar.gz files.
    pub fn storage_address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.ports.storage))
    }

    /// Where notification-controller takes events.
    pub fn events_url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.ports.events)
    }

    /// Where notification-controller takes webhooks; the path is the Receiver's.
    pub fn receiver_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.receiver)
    }

    /// Where the console serves its API.
    pub fn api_url(&self) -> String {
        format!("http://127.0.0.1:{}/api/v1", self.ports.api)
    }

    /// Where source-controller serves tar.gz files.
    pub fn storage_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.storage)
    }
}

/// Runs the program with a small volume at the folder. In a user namespace of its own, so that it needs no root.
fn in_volume(program: &Path, folder: &Path, bytes: u64) -> Command {
    const SCRIPT: &str = "mount -t tmpfs -o size=\"$1\" tmpfs \"$2\" && shift 2 && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", SCRIPT, "sh"]);
    command.arg(bytes.to_string()).arg(folder).arg(program);
    command
}

/// A command for a program, with words before it.
pub fn wrapped(wrapper: &[String], program: &Path) -> Command {
    let Some((first, words)) = wrapper.split_first() else {
        return Command::new(program);
    };
    let mut command = Command::new(first);
    command.args(words).arg(program);
    command
}

async fn get(url: &str) -> Result<String> {
    // No pool: a connection to a killed process would be reported as its successor's fault.
    static HTTP: LazyLock<reqwest::Result<reqwest::Client>> = LazyLock::new(|| {
        let builder = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0);
        builder.timeout(Duration::from_secs(5)).build()
    });
    let http = HTTP.as_ref().context("failed to make an HTTP client")?;
    let response = http.get(url).send().await?.error_for_status()?;
    Ok(response.text().await?)
}

/// Where a program of ours is.
pub fn program(name: &str) -> Result<PathBuf> {
    let folder = match std::env::var_os("WINDLASS_BIN_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => target_folder()?,
    };
    let program = folder.join(name);
    if !program.is_file() {
        bail!(
            "{} is missing: run `cargo build -p {name}` first",
            program.display()
        );
    }
    Ok(program)
}

/// Where a program for development is: beside the running one, whatever programs are looked at.
pub fn development_program(name: &str) -> Result<PathBuf> {
    let program = target_folder()?.join(name);
    if !program.is_file() {
        bail!("{} is missing: run `cargo build --bins` first", program.display());
    }
    Ok(program)
}

/// Tests run from target/<profile>/deps, tools from target/<profile>.
fn target_folder() -> Result<PathBuf> {
    let program = std::env::current_exe().context("failed to find the running program")?;
    let folder = program.parent().context("the running program has no folder")?;
    let folder = if folder.ends_with("deps") {
        folder.parent().unwrap_or(folder)
    } else {
        folder
    };
    Ok(folder.to_owned())
}
