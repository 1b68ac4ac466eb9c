//! A node on which Pods truly run: images are pulled from a registry, and each container is a process with the image as its root,
//! with its volumes, tokens, probes and ports, as its user (`node/sandbox.rs`).
//!
//! It is what kubelet does, as far as controllers and their chart need it: one container a Pod, `emptyDir`, projected volumes,
//! ConfigMaps and Secrets, readiness by HTTP, restarts, and termination by SIGTERM. What a Pod asks for beyond that is refused in its status.
//! Network policies, resources and liveness are no one's business here.

mod image;
mod network;
mod plan;
mod pod;
mod sandbox;
mod volumes;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Node as NodeObject, Pod};
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::ControlPlane;
use network::Network;

/// Key of the label and of the taint of such nodes: Pods that truly run ask for the first and tolerate the second; others go to the
/// nodes that kwok plays.
pub const KEY: &str = "testkit.windlass.dev/runs-containers";

/// A node that has joined a cluster. Dropping it kills what runs on it.
#[derive(Debug)]
pub struct Node {
    name: String,
    task: JoinHandle<()>,
    directory: TempDir,
}

/// Context that all Pods of a node share.
struct Host {
    client: Client,
    http: reqwest::Client,
    network: Network,
    /// Unpacked images.
    images: PathBuf,
    /// A folder for each Pod, by UID.
    pods: PathBuf,
}

impl Node {
    /// Joins the cluster. The addresses, of loopback, are reached from Pods as they are from here.
    pub async fn join(control_plane: &ControlPlane, name: &str, reachable: &[SocketAddr]) -> Result<Self> {
        let client = control_plane.client();
        let directory = crate::scratch::directory("node")?;
        let made = |folder: &str| {
            let folder = directory.path().join(folder);
            std::fs::create_dir(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
            anyhow::Ok(folder)
        };
        let host = Host {
            network: Network::new(
                client.clone(),
                made("net")?,
                address_of(control_plane)?,
                reachable.to_vec(),
            ),
            http: reqwest::Client::builder()
                .no_proxy()
                .build()
                .context("failed to make an HTTP client")?,
            images: made("images")?,
            pods: made("pods")?,
            client,
        };
        register(&host.client, name).await?;
        let task = tokio::spawn(run(Arc::new(host), name.to_owned()));
        Ok(Self {
            name: name.to_owned(),
            task,
            directory,
        })
    }

    /// Its name in the cluster.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Everything that the container of a Pod has printed since its first start.
    pub fn log(&self, pod: &Pod) -> String {
        let folder = self.folder(pod);
        let logs = (1..).map_while(|start| std::fs::read_to_string(folder.join(format!("log.{start}"))).ok());
        logs.collect()
    }

    /// The answer of a Pod to an HTTP request.
    pub async fn get(&self, pod: &Pod, port: u16, path: &str) -> Result<String> {
        let (status, body) = pod::get(&network::socket_of(&self.folder(pod), port), path).await?;
        anyhow::ensure!(
            status == 200,
            "{path} of {} answers {status}: {body}",
            pod.name_any()
        );
        Ok(body)
    }

    /// Where the files of a Pod are: `root`, `volumes`.
    pub fn folder(&self, pod: &Pod) -> PathBuf {
        pod_folder(
            &self.directory.path().join("pods"),
            &pod.uid().unwrap_or_default(),
        )
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Short: names of sockets have at most 108 bytes.
fn pod_folder(pods: &Path, uid: &str) -> PathBuf {
    pods.join(uid.split('-').next().unwrap_or_default())
}

fn address_of(control_plane: &ControlPlane) -> Result<SocketAddr> {
    let authority = control_plane.config().cluster_url.authority();
    let authority = authority.context("the API server has no address")?.as_str();
    authority
        .parse()
        .with_context(|| format!("the API server is not at an address: {authority}"))
}

async fn register(client: &Client, name: &str) -> Result<()> {
    let nodes: Api<NodeObject> = Api::all(client.clone());
    let labels = json!({"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", KEY: ""});
    let taint = json!({"key": KEY, "effect": "NoSchedule"});
    let node = json!({"metadata": {"name": name, "labels": labels}, "spec": {"taints": [taint]}});
    let node = serde_json::from_value(node)?;
    nodes
        .create(&PostParams::default(), &node)
        .await
        .with_context(|| format!("failed to create the node {name}"))?;
    let resources = json!({"cpu": "100", "memory": "1Ti", "pods": "1000", "ephemeral-storage": "1Ti"});
    let ready = json!({"type": "Ready", "status": "True", "reason": "Test", "message": ""});
    let status = json!({"status": {"capacity": resources, "allocatable": resources, "conditions": [ready]}});
    let patched = nodes
        .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await;
    patched
        .map(drop)
        .with_context(|| format!("failed to make the node {name} ready"))
}

/// Runs what the scheduler gives to this node, until the task is aborted; the processes end with it.
async fn run(host: Arc<Host>, name: String) {
    let pods: Api<Pod> = Api::all(host.client.clone());
    let config = watcher::Config::default().fields(&format!("spec.nodeName={name}"));
    let mut events = watcher::watcher(pods, config).boxed();
    let mut running: HashMap<String, (watch::Sender<pod::Wanted>, AbortOnDrop)> = HashMap::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) => {
                let uid = pod.uid().unwrap_or_default();
                let (wanted, _) = running.entry(uid).or_insert_with(|| {
                    let (sender, receiver) = watch::channel(pod::Wanted::Running);
                    (
                        sender,
                        AbortOnDrop(tokio::spawn(pod::run(Arc::clone(&host), pod.clone(), receiver))),
                    )
                });
                if pod.metadata.deletion_timestamp.is_some() {
                    let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(30);
                    wanted.send_replace(pod::Wanted::Gone {
                        grace: grace.unsigned_abs(),
                    });
                }
            }
            Ok(watcher::Event::Delete(pod)) => {
                running.remove(&pod.uid().unwrap_or_default());
            }
            // The watch begins anew by itself.
            Ok(watcher::Event::Init | watcher::Event::InitDone) | Err(_) => {}
        }
    }
}

/// A task that ends with its owner.
#[derive(Debug)]
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
