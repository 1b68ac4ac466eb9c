//! The life of one Pod on a node.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::watch;

use super::network::socket_of;
use super::plan::Plan;
use super::{Host, image, plan, pod_folder, sandbox, volumes};
use crate::process::Process;

/// State of a Pod that the API server asks for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    Running,
    /// After so many seconds at most.
    Gone {
        grace: u64,
    },
}

/// How often a container is looked at; a probe is one connection to a socket.
const LOOK: Duration = Duration::from_millis(50);
/// Between a failure and the next try.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs a Pod until it is to be gone.
pub(super) async fn run(host: Arc<Host>, pod: Pod, mut wanted: watch::Receiver<Wanted>) {
    let uid = pod.uid().unwrap_or_default();
    let folder = pod_folder(&host.pods, &uid);
    let mut starts = 0;
    loop {
        let running = async {
            starts += 1;
            run_once(&host, &pod, &folder, starts, wanted.clone()).await
        };
        match running.await {
            Ok(()) => break,
            Err(problem) => {
                host.network.set_ready(&pod, false);
                write_status(&host, &pod, &failed(&pod, starts, &format!("{problem:#}"))).await;
            }
        }
        let gone = wanted.wait_for(|wanted| matches!(wanted, Wanted::Gone { .. }));
        if tokio::time::timeout(PAUSE, gone).await.is_ok() {
            break;
        }
    }
    host.network.remove(&pod);
    let pods: Api<Pod> = Api::namespaced(host.client.clone(), &pod.namespace().unwrap_or_default());
    let now = DeleteParams {
        grace_period_seconds: Some(0),
        ..DeleteParams::default()
    };
    // It may be gone already: whoever deletes with force does not wait for us.
    _ = pods.delete(&pod.name_any(), &now).await;
}

/// Starts the container and stays with it; ends well when it was stopped because the Pod is to be gone.
async fn run_once(
    host: &Host,
    pod: &Pod,
    folder: &Path,
    starts: u32,
    mut wanted: watch::Receiver<Wanted>,
) -> Result<()> {
    let plan = plan::plan_of(pod)?;
    std::fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    let image = image::pull(&host.http, &plan.image, &host.images).await?;
    for volume in &plan.volumes {
        volumes::fill(
            &host.client,
            pod,
            volume,
            &folder.join("volumes").join(&volume.name),
        )
        .await?;
    }
    let ways = host.network.ways(pod, &plan, folder).await?;
    host.network.add(pod, plan.ports.clone(), folder.to_owned());
    let process = sandbox::start(&plan, &image, &ways, folder, starts)?;
    let mut told = None;
    loop {
        let now = *wanted.borrow_and_update();
        if let Wanted::Gone { grace } = now {
            stop(process, Duration::from_secs(grace)).await;
            return Ok(());
        }
        process.check_running()?;
        let ready = is_ready(&plan, folder).await;
        if told != Some(ready) {
            host.network.set_ready(pod, ready);
            write_status(host, pod, &running(pod, &plan, starts, ready)).await;
            told = Some(ready);
        }
        _ = tokio::time::timeout(LOOK, wanted.changed()).await;
    }
}

async fn stop(process: Process, grace: Duration) {
    let pid = process.pid();
    // The process in the container is the child of `unshare`, which would not pass the signal on.
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    for child in children.split_whitespace() {
        _ = std::process::Command::new("kill").args(["-TERM", child]).status();
    }
    let ended = async {
        while process.exit_status().is_none() {
            tokio::time::sleep(LOOK).await;
        }
    };
    _ = tokio::time::timeout(grace, ended).await;
    process.kill();
}

async fn is_ready(plan: &Plan, folder: &Path) -> bool {
    let Some(probe) = &plan.ready else { return true };
    let socket = socket_of(folder, probe.port);
    let answer = tokio::time::timeout(PAUSE, get(&socket, &probe.path)).await;
    matches!(answer, Ok(Ok((200..400, _))))
}

/// Status and body of an answer to GET.
pub(super) async fn get(socket: &Path, path: &str) -> Result<(u16, String)> {
    let mut stream = UnixStream::connect(socket).await?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").context("it is no answer of HTTP")?;
    let status = head.split(' ').nth(1).context("it has no status")?;
    Ok((status.parse()?, body.to_owned()))
}

fn running(pod: &Pod, plan: &Plan, starts: u32, ready: bool) -> Value {
    let state = json!({"running": {"startedAt": now()}});
    status(
        pod,
        &plan.container,
        &plan.image,
        starts,
        ready,
        &state,
        "Running",
    )
}

fn failed(pod: &Pod, starts: u32, message: &str) -> Value {
    let container = pod.spec.as_ref().and_then(|spec| spec.containers.first());
    let name = container
        .map(|container| container.name.as_str())
        .unwrap_or_default();
    let image = container
        .and_then(|container| container.image.as_deref())
        .unwrap_or_default();
    let state = json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}});
    status(pod, name, image, starts, false, &state, "Pending")
}

fn status(
    pod: &Pod,
    container: &str,
    image: &str,
    starts: u32,
    ready: bool,
    state: &Value,
    phase: &str,
) -> Value {
    let truth = if ready { "True" } else { "False" };
    let condition =
        |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": now()});
    json!({
        "phase": phase,
        "podIP": plan::address(pod),
        "startTime": now(),
        "conditions": [
            condition("Initialized", "True"), condition("PodScheduled", "True"),
            condition("ContainersReady", truth), condition("Ready", truth),
        ],
        "containerStatuses": [{
            "name": container, "image": image, "imageID": "", "ready": ready, "started": true,
            "restartCount": starts - 1, "state": state,
        }],
    })
}

fn now() -> Value {
    let now = k8s_openapi::jiff::Timestamp::now();
    json!(format!("{now:.0}"))
}

/// Writes the status. What cannot be written is written with the next change.
async fn write_status(host: &Host, pod: &Pod, status: &Value) {
    let pods: Api<Pod> = Api::namespaced(host.client.clone(), &pod.namespace().unwrap_or_default());
    let patch = Patch::Merge(json!({"status": status}));
    _ = pods
        .patch_status(&pod.name_any(), &PatchParams::default(), &patch)
        .await;
}
