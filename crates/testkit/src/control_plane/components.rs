//! The command lines of the components, and the order in which they start.
//!
//! etcd and kube-apiserver start together (the API server retries); what talks to the API server starts when that
//! answers, because each of them would otherwise sleep a second before its next try.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::options::{Options, SIMULATED_NODE};
use crate::certificates::{self, Certificates};
use crate::ports::free_port;
use crate::process::Process;
use crate::tools::{self, Tool};

pub use super::options::Components;

/// The log that all containers have.
pub(super) const CONTAINER_LOG: &str = "container.log";

/// Processes that [`start`] leaves running.
pub(super) struct Started {
    pub(super) processes: Vec<Process>,
    pub(super) kubeconfig: PathBuf,
    pub(super) api_server_flags: Vec<String>,
}

/// Starts the API server (again) with the flags that it had.
pub(super) fn start_api_server(flags: &[String], directory: &Path) -> Result<Process> {
    start_tool(Tool::KubeApiserver, flags, directory)
}

/// Starts everything in `directory` and returns when the API server accepts connections.
pub(super) async fn start(options: &Options, directory: &Path) -> Result<Started> {
    let api_port = free_port()?;
    let certificates = certificates::write(
        directory,
        &["127.0.0.1", "localhost", "kubernetes.default.svc", "10.0.0.1"],
    )?;
    let token = make_token();
    let kubeconfig = directory.join("kubeconfig");
    write_private(&kubeconfig, &kubeconfig_text(api_port, &certificates, &token))?;
    let tokens = directory.join("tokens.csv");
    let mut users = format!("{token},admin,admin,system:masters\n");
    for user in &options.users {
        users.push_str(&format!("{user}\n"));
    }
    write_private(&tokens, &users)?;

    let (etcd, etcd_url) = start_etcd(directory)?;
    let mut processes = vec![etcd];
    let flags = api_server_flags(options, &etcd_url, api_port, &certificates, &tokens);
    processes.push(start_api_server(&flags, directory)?);
    wait_for_port(api_port, &processes).await?;
    if options.components == Components::All {
        let clients: [(Tool, Vec<String>); 3] = [
            (Tool::Kwok, kwok_flags(&kubeconfig, &certificates, directory)?),
            (
                Tool::KubeControllerManager,
                controller_manager_flags(&kubeconfig, &certificates),
            ),
            (Tool::KubeScheduler, scheduler_flags(&kubeconfig)),
        ];
        super::ready::wait_until_serving(&kubeconfig, &processes).await?;
        for (tool, flags) in clients {
            processes.push(start_tool(tool, &flags, directory)?);
        }
    }
    Ok(Started {
        processes,
        kubeconfig,
        api_server_flags: flags,
    })
}

fn start_tool(tool: Tool, flags: &[String], directory: &Path) -> Result<Process> {
    let mut command = Command::new(tools::path(tool)?);
    // Their own defaults would write below the home directory or read a KUBECONFIG that means another cluster.
    command
        .args(flags)
        .current_dir(directory)
        .env_remove("KUBECONFIG")
        .env("HOME", directory);
    Process::start(
        tool.name(),
        command,
        directory.join(format!("{}.log", tool.name())),
    )
}

fn start_etcd(directory: &Path) -> Result<(Process, String)> {
    let url = format!("http://127.0.0.1:{}", free_port()?);
    let peer_url = format!("http://127.0.0.1:{}", free_port()?);
    let flags = [
        format!("--data-dir={}", directory.join("etcd").display()),
        "--unsafe-no-fsync".to_owned(),
        format!("--listen-client-urls={url}"),
        format!("--advertise-client-urls={url}"),
        format!("--listen-peer-urls={peer_url}"),
        format!("--initial-advertise-peer-urls={peer_url}"),
        format!("--initial-cluster=default={peer_url}"),
        // The only member elects itself after this time.
        "--heartbeat-interval=20".to_owned(),
        "--election-timeout=200".to_owned(),
        "--log-level=warn".to_owned(),
    ];
    Ok((start_tool(Tool::Etcd, &flags, directory)?, url))
}

fn api_server_flags(
    options: &Options,
    etcd_url: &str,
    port: u16,
    certificates: &Certificates,
    tokens: &Path,
) -> Vec<String> {
    let mut disabled_admission = vec!["TaintNodesByCondition"]; // nobody would take the taint away: no kubelet
    if options.components == Components::ApiServerOnly {
        disabled_admission.push("ServiceAccount"); // nobody makes the default service account
    }
    let mut flags = vec![
        format!("--etcd-servers={etcd_url}"),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(), // 127.0.0.1 is no valid endpoint address
        format!(
            "--tls-cert-file={}",
            certificates.server_certificate_file.display()
        ),
        format!(
            "--tls-private-key-file={}",
            certificates.server_key_file.display()
        ),
        format!("--token-auth-file={}", tokens.display()),
        "--authorization-mode=RBAC".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!(
            "--service-account-signing-key-file={}",
            certificates.token_key_file.display()
        ),
        format!(
            "--service-account-key-file={}",
            certificates.token_public_key_file.display()
        ),
        "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
        "--allow-privileged=true".to_owned(),
        format!("--disable-admission-plugins={}", disabled_admission.join(",")),
        // Housekeeping that a control plane of minutes does not need.
        "--etcd-compaction-interval=0".to_owned(),
        "--etcd-count-metric-poll-period=0".to_owned(),
        "--etcd-db-metric-poll-interval=0".to_owned(),
    ];
    // Some flags add up when they are given twice.
    let name = |flag: &String| flag.split('=').next().unwrap_or_default().to_owned();
    let given: Vec<String> = options.api_server_flags.iter().map(name).collect();
    flags.retain(|flag| !given.contains(&name(flag)));
    flags.extend(options.api_server_flags.iter().cloned());
    flags
}

fn controller_manager_flags(kubeconfig: &Path, certificates: &Certificates) -> Vec<String> {
    // Node lifecycle would mark our nodes dead for want of heartbeats; the others manage clouds, volumes and
    // certificates that are not here.
    let controllers = [
        "*",
        "-node-lifecycle-controller",
        "-node-ipam-controller",
        "-node-route-controller",
        "-service-lb-controller",
        "-cloud-node-lifecycle-controller",
        "-persistentvolume-attach-detach-controller",
        "-persistentvolume-expander-controller",
        "-certificatesigningrequest-signing-controller",
        "-certificatesigningrequest-approving-controller",
        "-certificatesigningrequest-cleaner-controller",
        "-bootstrap-signer-controller",
        "-token-cleaner-controller",
    ];
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--root-ca-file={}", certificates.authority_file.display()),
        format!(
            "--service-account-private-key-file={}",
            certificates.token_key_file.display()
        ),
        format!("--controllers={}", controllers.join(",")),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        "--kube-api-qps=1000".to_owned(),
        "--kube-api-burst=2000".to_owned(),
        "--controller-start-interval=0s".to_owned(),
    ]
}

fn scheduler_flags(kubeconfig: &Path) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        "--kube-api-qps=1000".to_owned(),
        "--kube-api-burst=2000".to_owned(),
    ]
}

/// kwok plays nodes and Pods, and is the kubelet that the API server asks for the logs of containers: all have the same file, which
/// is not there, and cannot be read, until something is written into it.
fn kwok_flags(kubeconfig: &Path, certificates: &Certificates, directory: &Path) -> Result<Vec<String>> {
    let stages = tools::hack_directory().join("kwok");
    let (log, logs, port) = (
        directory.join(CONTAINER_LOG),
        directory.join("logs.yaml"),
        free_port()?,
    );
    let config = json!({
        "apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "ClusterLogs", "metadata": {"name": "all"},
        "spec": {"logs": [{"logsFile": log, "previousLogsFile": log}]},
    });
    fs::write(&logs, config.to_string()).context("failed to write where the logs of containers are")?;
    Ok(vec![
        format!("--node-port={port}"),
        format!("--server-address=127.0.0.1:{port}"),
        format!(
            "--tls-cert-file={}",
            certificates.server_certificate_file.display()
        ),
        format!(
            "--tls-private-key-file={}",
            certificates.server_key_file.display()
        ),
        format!("--config={}", logs.display()),
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--manage-nodes-with-label-selector={SIMULATED_NODE}"),
        "--node-ip=127.0.0.1".to_owned(),
        "--node-lease-duration-seconds=0".to_owned(),
        format!("--config={}", stages.join("node.yaml").display()),
        format!("--config={}", stages.join("pod.yaml").display()),
    ])
}

async fn wait_for_port(port: u16, processes: &[Process]) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        processes.iter().try_for_each(Process::check_running)?;
        if Instant::now() > deadline {
            let logs: Vec<String> = processes
                .iter()
                .map(|p| format!("{}:\n{}", p.name(), p.log_tail(10)))
                .collect();
            bail!("nothing listens on port {port} after 60 s\n{}", logs.join("\n"));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Random enough that two control planes on a machine never accept each other's.
fn make_token() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    let half = || RandomState::new().hash_one(std::time::SystemTime::now());
    format!("{:016x}{:016x}", half(), half())
}

/// JSON is YAML: kubectl and every client library read this.
fn kubeconfig_text(port: u16, certificates: &Certificates, token: &str) -> String {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "windlass",
        "contexts": [{"name": "windlass", "context": {"cluster": "windlass", "user": "admin"}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "clusters": [{"name": "windlass", "cluster": {
            "server": format!("https://127.0.0.1:{port}"),
            "certificate-authority-data": STANDARD.encode(&certificates.authority),
        }}],
    });
    format!("{config:#}\n")
}

fn write_private(path: &Path, contents: &str) -> Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let opened = fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    let mut file = opened.with_context(|| format!("failed to make {}", path.display()))?;
    file.write_all(contents.as_bytes())
        .with_context(|| format!("failed to write {}", path.display()))
}
