//! Logs of the Pods of what an object has applied, read as the caller: the API server decides what they may read.

use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use console_pages::logs::{Container, Pod};
use delivery_graph::tree::Node;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use futures::{AsyncBufRead, AsyncBufReadExt as _};
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, LogParams};
use kube::core::{GroupVersionKind, Selector};
use kube::{Client, ResourceExt as _};
use manifest::ObjectId;
use serde_json::Value;

use crate::problem::Problem;

/// Workloads of an object whose Pods are looked for, how many at once, and Pods of each.
const MAX_WORKLOADS: usize = 20;
const AT_ONCE: usize = 4;
const MAX_PODS: u32 = 50;
/// How long the API server may take to list Pods, and to begin with a log.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a line; what follows is left out.
const MAX_LINE: usize = 16 << 10;
/// Bytes of a log that is not followed.
const MAX_LOG: i64 = 1 << 20;

/// What is read of a log.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Namespace and name of the Pod.
    pub pod: (String, String),
    /// The container.
    pub container: String,
    /// Lines from its end.
    pub lines: i64,
    /// Text that a line must have; empty for all.
    pub grep: String,
    /// Whether it is the log of the container before its last restart.
    pub previous: bool,
    /// Whether to follow: new lines are read as they are written.
    pub follow: bool,
}

/// The Pods of the workloads among what an object has applied.
///
/// # Errors
/// When the caller may not list them, or the API server does not.
pub async fn pods(client: &Client, nodes: &[Node]) -> Result<Vec<Pod>, Problem> {
    let workloads = nodes
        .iter()
        .map(|node| node.id.clone())
        .filter(|id| version(id).is_some());
    let workloads: Vec<ObjectId> = workloads.take(MAX_WORKLOADS).collect();
    let looking = stream::iter(workloads)
        .map(|id| async move { of_workload(client, &id).await })
        .buffered(AT_ONCE)
        .try_collect::<Vec<Vec<Pod>>>();
    let found = tokio::time::timeout(PATIENCE, looking)
        .await
        .map_err(|_| late())??;
    let mut pods: Vec<Pod> = found.into_iter().flatten().collect();
    // Those that need someone first.
    pods.sort_by_key(|pod| (pod.is_well(), pod.namespace.clone(), pod.name.clone()));
    pods.dedup_by(|one, other| (&one.namespace, &one.name) == (&other.namespace, &other.name));
    Ok(pods)
}

/// The version of a kind whose selector finds its Pods.
fn version(id: &ObjectId) -> Option<&'static str> {
    let kinds = match id.group.as_str() {
        "apps" => &["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"][..],
        "batch" => &["Job"][..],
        _ => return None,
    };
    kinds.contains(&id.kind.as_str()).then_some("v1")
}

async fn of_workload(client: &Client, id: &ObjectId) -> Result<Vec<Pod>, Problem> {
    let kind = GroupVersionKind::gvk(&id.group, version(id).unwrap_or_default(), &id.kind);
    let workloads: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), &id.namespace, &ApiResource::from_gvk(&kind));
    let workload = workloads
        .get_opt(&id.name)
        .await
        .map_err(|error| refused(&error, id))?;
    let selector = workload.and_then(|workload| workload.data.pointer("/spec/selector").cloned());
    let Some(selector) = selector.and_then(selector_of) else {
        return Ok(Vec::new());
    };
    let pods: Api<core::Pod> = Api::namespaced(client.clone(), &id.namespace);
    let wanted = ListParams::default()
        .labels(&selector.to_string())
        .limit(MAX_PODS);
    let listed = pods.list(&wanted).await.map_err(|error| refused(&error, id))?;
    Ok(listed.items.into_iter().map(told).collect())
}

/// A selector; None for one that selects everything, which a workload's never is.
fn selector_of(selector: Value) -> Option<Selector> {
    let selector: LabelSelector = serde_json::from_value(selector).ok()?;
    let selector = Selector::try_from(selector).ok()?;
    (!selector.to_string().is_empty()).then_some(selector)
}

fn told(pod: core::Pod) -> Pod {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let status = pod.status.unwrap_or_default();
    let known = status.container_statuses.unwrap_or_default();
    let spec = pod.spec.unwrap_or_default();
    let init = spec.init_containers.unwrap_or_default();
    let known_of_init = status.init_container_statuses.unwrap_or_default();
    let statuses: Vec<_> = known.into_iter().chain(known_of_init).collect();
    let containers = spec.containers.into_iter().chain(init).map(|container| {
        let status = statuses.iter().find(|status| status.name == container.name);
        let state = status.and_then(|status| status.state.as_ref());
        let waiting = state.and_then(|state| state.waiting.as_ref()?.reason.clone());
        let ended = state.and_then(|state| state.terminated.as_ref());
        Container {
            name: container.name,
            restarts: status.map_or(0, |status| status.restart_count),
            // One that has ended well is as well as one that runs.
            is_well: status.is_some_and(|status| status.ready)
                || ended.is_some_and(|ended| ended.exit_code == 0),
            reason: waiting
                .or(ended.and_then(|ended| ended.reason.clone()))
                .unwrap_or_default(),
        }
    });
    Pod {
        namespace,
        name,
        phase: status.phase.unwrap_or_default(),
        containers: containers.collect(),
    }
}

/// The container of an address; without one the first that is not well, or of all.
pub fn choose<'a>(pods: &'a [Pod], address: &str) -> Option<(&'a Pod, &'a Container)> {
    let all = || {
        let of_pod = |pod: &'a Pod| pod.containers.iter().map(move |container| (pod, container));
        pods.iter().flat_map(of_pod)
    };
    match address {
        "" => all()
            .find(|(_, container)| !container.is_well)
            .or_else(|| all().next()),
        address => all().find(|(pod, container)| pod.address(container) == address),
    }
}

/// Opens a log. The Pod must be one of the object's.
///
/// # Errors
/// When the caller may not read it, or it cannot be had.
pub async fn open(
    client: &Client,
    wanted: &Wanted,
) -> Result<impl AsyncBufRead + Send + Unpin + use<>, Problem> {
    let (namespace, name) = &wanted.pod;
    let parameters = LogParams {
        container: Some(wanted.container.clone()),
        follow: wanted.follow,
        previous: wanted.previous,
        tail_lines: Some(wanted.lines),
        limit_bytes: (!wanted.follow).then_some(MAX_LOG),
        ..LogParams::default()
    };
    let api: Api<core::Pod> = Api::namespaced(client.clone(), namespace);
    let opening = tokio::time::timeout(PATIENCE, api.log_stream(name, &parameters));
    let log = opening.await.map_err(|_| late())?;
    let log = log.map_err(|error| {
        let pod = ObjectId {
            group: String::new(),
            kind: "Pod".to_owned(),
            namespace: namespace.clone(),
            name: name.clone(),
        };
        refused(&error, &pod)
    })?;
    Ok(Box::pin(log))
}

/// The end of a log as text, without what terminals read as commands.
///
/// # Errors
/// When it cannot be read, and why.
pub async fn tail(client: &Client, wanted: &Wanted) -> Result<String, String> {
    let mut log = open(client, wanted).await.map_err(|problem| problem.message)?;
    let mut text = String::new();
    while let Some(line) = next(&mut log, &wanted.grep)
        .await
        .map_err(|error| error.to_string())?
    {
        let line = String::from_utf8_lossy(&line);
        text.extend(
            line.chars()
                .filter(|c| matches!(c, '\n' | '\t') || !c.is_control()),
        );
    }
    Ok(text)
}

/// The next line that has the text, with its end; None at the end of the log.
///
/// # Errors
/// When the log breaks off.
pub async fn next(
    log: &mut (impl AsyncBufRead + Unpin),
    grep: &str,
) -> Result<Option<Bytes>, std::io::Error> {
    loop {
        let Some(line) = line(log).await? else {
            return Ok(None);
        };
        if grep.is_empty() || has(&line, grep.as_bytes()) {
            return Ok(Some(line.into()));
        }
    }
}

/// A line, cut where it is too long: it is not kept whole.
async fn line(log: &mut (impl AsyncBufRead + Unpin)) -> Result<Option<Vec<u8>>, std::io::Error> {
    let mut line = Vec::new();
    loop {
        let piece = log.fill_buf().await?;
        if piece.is_empty() {
            return Ok((!line.is_empty()).then(|| ended(line)));
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(piece.len(), |end| end + 1);
        let text = &piece[..end.unwrap_or(piece.len())];
        let room = MAX_LINE.saturating_sub(line.len());
        line.extend_from_slice(&text[..text.len().min(room)]);
        log.consume_unpin(taken);
        if end.is_some() {
            return Ok(Some(ended(line)));
        }
    }
}

fn ended(mut line: Vec<u8>) -> Vec<u8> {
    line.push(b'\n');
    line
}

fn has(line: &[u8], text: &[u8]) -> bool {
    line.windows(text.len())
        .any(|window| window.eq_ignore_ascii_case(text))
}

fn late() -> Problem {
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "the cluster does not answer; try again",
    )
}

fn refused(error: &kube::Error, about: &ObjectId) -> Problem {
    let (code, message) = match error {
        kube::Error::Api(status) if status.code == 403 && about.kind == "Pod" => (
            StatusCode::FORBIDDEN,
            format!(
                "you may not read the logs of Pods in namespace {}",
                about.namespace
            ),
        ),
        kube::Error::Api(status) if status.code == 403 => (
            StatusCode::FORBIDDEN,
            format!("you may not get {about}, or list Pods in its namespace"),
        ),
        // As kubectl says it: that there is no such container, or no log before.
        kube::Error::Api(status) if (400..500).contains(&status.code) => {
            let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::BAD_REQUEST);
            (code, status.message.clone())
        }
        error => {
            tracing::debug!(%error, "a log is not read");
            (
                StatusCode::BAD_GATEWAY,
                format!("the API server does not give the log of {about}"),
            )
        }
    };
    Problem::new(code, message)
}

#[cfg(test)]
mod tests {
    use futures::io::{BufReader, Cursor};
    use serde_json::json;

    use super::*;

    async fn read(text: &str, grep: &str) -> Vec<String> {
        // Pieces of three bytes: lines do not arrive whole.
        let mut log = BufReader::with_capacity(3, Cursor::new(text.as_bytes().to_vec()));
        let mut lines = Vec::new();
        while let Some(line) = next(&mut log, grep).await.unwrap() {
            lines.push(String::from_utf8_lossy(&line).into_owned());
        }
        lines
    }

    #[tokio::test]
    async fn lines_are_chosen_and_bounded() {
        assert_eq!(
            read("a b\n\nERROR x\nlast", "").await,
            ["a b\n", "\n", "ERROR x\n", "last\n"]
        );
        assert_eq!(
            read("a b\n\nERROR x\nlast error", "error").await,
            ["ERROR x\n", "last error\n"]
        );
        assert!(read("", "").await.is_empty());
        let long = format!("{}\nnext\n", "x".repeat(3 * MAX_LINE));
        let lines = read(&long, "").await;
        assert_eq!((lines[0].len(), lines[1].as_str()), (MAX_LINE + 1, "next\n"));
    }

    #[test]
    fn only_workloads_with_selectors_have_pods() {
        let id = |text: &str| -> Option<&'static str> {
            let (group, kind) = text.split_once('/').unwrap();
            version(&ObjectId {
                group: group.to_owned(),
                kind: kind.to_owned(),
                namespace: "n".to_owned(),
                name: "a".to_owned(),
            })
        };
        assert_eq!(id("apps/Deployment"), Some("v1"));
        assert_eq!(id("batch/Job"), Some("v1"));
        for other in [
            "/Pod",
            "example.com/Deployment",
            "apps/ControllerRevision",
            "batch/CronJob",
        ] {
            assert_eq!(id(other), None, "{other}");
        }
        // What selects everything would show Pods of others.
        assert!(selector_of(json!({})).is_none());
        assert!(selector_of(json!({"matchLabels": {"app": "web"}})).is_some());
    }
}
