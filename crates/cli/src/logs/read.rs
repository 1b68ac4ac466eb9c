//! The logs of the controllers' Pods, through the API server.

use std::collections::BTreeMap;

use delivery_graph::object::{self, list, text};
use futures::future::join_all;
use futures::stream::{BoxStream, StreamExt as _};
use futures::{AsyncBufReadExt as _, AsyncReadExt as _};
use kube::core::ApiResource;
use serde_json::Value;

use super::line::Line;
use crate::cluster::{Cluster, Failure};

/// Label that Flux and our chart put on all their objects.
const PART_OF: &str = "app.kubernetes.io/part-of=flux";
/// The container with the controller, where there are others beside it.
const CONTAINER: &str = "manager";

/// A Pod of a controller.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pod {
    namespace: String,
    pub(super) name: String,
    container: Option<String>,
}

/// From when on lines are read.
#[derive(Clone, Copy, Default)]
pub(super) struct Since {
    pub(super) seconds: Option<u64>,
    pub(super) tail: Option<i64>,
}

/// Finds the Pods of the controllers: by their own labels, and by those of their Deployments, whose Pods need not have them.
pub(super) async fn pods(cluster: &Cluster, namespace: &str) -> Result<Vec<Pod>, Failure> {
    let kind = |group: &str, kind: &str, plural: &str| ApiResource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        api_version: format!("{group}/v1").trim_start_matches('/').to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    let (pods, deployments) = (kind("", "Pod", "pods"), kind("apps", "Deployment", "deployments"));
    let mut found = BTreeMap::new();
    for pod in cluster.list_any(&pods, namespace, PART_OF).await? {
        found.insert(object::name(&pod).to_owned(), pod);
    }
    // Who may not look at Deployments sees those Pods that say themselves what they are.
    let deployments = cluster.list_any(&deployments, namespace, PART_OF).await;
    for deployment in deployments.unwrap_or_default() {
        let Some(selector) = selector(&deployment) else {
            continue;
        };
        for pod in cluster.list_any(&pods, namespace, &selector).await? {
            found.insert(object::name(&pod).to_owned(), pod);
        }
    }
    if found.is_empty() {
        return Err(Failure::NotReady(format!(
            "no controllers are in the namespace {namespace:?}; name theirs with --flux-namespace"
        )));
    }
    Ok(found.values().map(pod).collect())
}

fn selector(deployment: &Value) -> Option<String> {
    let labels = deployment.pointer("/spec/selector/matchLabels")?.as_object()?;
    let pairs = labels
        .iter()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
    Some(pairs.collect::<Vec<_>>().join(",")).filter(|selector| !selector.is_empty())
}

fn pod(object: &Value) -> Pod {
    let containers = list(object, "/spec/containers");
    let is_controller = |container: &&Value| text(container, "/name") == CONTAINER;
    let container = containers
        .iter()
        .find(is_controller)
        .filter(|_| containers.len() > 1);
    Pod {
        namespace: object::namespace(object).to_owned(),
        name: object::name(object).to_owned(),
        container: container.map(|container| text(container, "/name").to_owned()),
    }
}

impl Pod {
    fn request(&self, parameters: &[(&str, String)]) -> Result<http::Request<Vec<u8>>, Failure> {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("timestamps", "true");
        query.extend_pairs(parameters);
        if let Some(container) = &self.container {
            query.append_pair("container", container);
        }
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}/log?{}",
            self.namespace,
            self.name,
            query.finish()
        );
        let request = http::Request::get(path).body(Vec::new());
        request.map_err(|error| Failure::Usage(error.to_string()))
    }

    fn failed(&self, error: kube::Error) -> Failure {
        Failure::request(
            format!("read the log of Pod/{}/{}", self.namespace, self.name),
            error,
        )
    }
}

/// Reads the logs of all Pods in the order of time, and reports those that could not be read.
pub(super) async fn all(cluster: &Cluster, pods: &[Pod], since: Since) -> (Vec<Line>, Vec<String>) {
    let read = join_all(pods.iter().map(|pod| one(cluster, pod, since))).await;
    let (mut lines, mut refused) = (Vec::new(), Vec::new());
    for outcome in read {
        match outcome {
            Ok(found) => lines.push(found),
            Err(failure) => refused.push(failure.to_string()),
        }
    }
    (merged(lines), refused)
}

async fn one(cluster: &Cluster, pod: &Pod, since: Since) -> Result<Vec<Line>, Failure> {
    let mut parameters = Vec::new();
    parameters.extend(since.seconds.map(|seconds| ("sinceSeconds", seconds.to_string())));
    parameters.extend(since.tail.map(|lines| ("tailLines", lines.to_string())));
    let stream = cluster.client().request_stream(pod.request(&parameters)?).await;
    let mut stream = Box::pin(stream.map_err(|error| pod.failed(error))?);
    let mut text = Vec::new();
    let read = stream.read_to_end(&mut text).await;
    read.map_err(|error| pod.failed(kube::Error::ReadEvents(error)))?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().map(|line| Line::read(&pod.name, line)).collect())
}

/// Merges logs, each of which is in order. Lines without a time stay behind the one before them.
fn merged(logs: Vec<Vec<Line>>) -> Vec<Line> {
    let mut timed = Vec::new();
    for log in logs {
        let mut latest = None;
        for line in log {
            latest = line.instant().or(latest);
            timed.push((latest, line));
        }
    }
    timed.sort_by_key(|(time, _)| *time);
    timed.into_iter().map(|(_, line)| line).collect()
}

/// When each Pod has logged its last line so far. Asked for before a window is read: what comes later is new even of a Pod
/// that has nothing in the window. The node says when, as a clock here may be wrong.
pub(super) async fn ends(cluster: &Cluster, pods: &[Pod]) -> BTreeMap<String, String> {
    let last = Since {
        seconds: None,
        tail: Some(1),
    };
    // Who cannot be read now is told by the read that comes next.
    let (lines, _) = all(cluster, pods, last).await;
    last_times(&lines)
}

/// When each Pod has logged the last of these lines.
pub(super) fn last_times(lines: &[Line]) -> BTreeMap<String, String> {
    let timed = lines.iter().filter(|line| !line.time.is_empty());
    timed.map(|line| (line.pod.clone(), line.time.clone())).collect()
}

/// Follows the log of a Pod from a time until it ends.
pub(super) async fn follow(
    cluster: &Cluster,
    pod: &Pod,
    after: String,
) -> Result<BoxStream<'static, Line>, Failure> {
    let mut parameters = vec![("follow", "true".to_owned())];
    if !after.is_empty() {
        parameters.push(("sinceTime", after.clone()));
    }
    let stream = cluster.client().request_stream(pod.request(&parameters)?).await;
    let stream = stream.map_err(|error| pod.failed(error))?;
    let (name, after) = (pod.name.clone(), after.parse::<jiff::Timestamp>().ok());
    // The API server knows whole seconds only: what was shown comes again.
    let lines = Box::pin(stream).lines().filter_map(move |line| {
        let line = line.ok().map(|line| Line::read(&name, &line));
        let is_new = |line: &Line| line.instant().is_none() || line.instant() > after;
        std::future::ready(line.filter(is_new))
    });
    Ok(lines.boxed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stand_in;
    use serde_json::json;

    #[test]
    fn logs_are_merged_by_time_and_keep_what_belongs_together() {
        let line = |pod: &str, text: &str| Line::read(pod, text);
        let one = vec![
            line("a", "2026-01-01T00:00:01Z one"),
            line("a", "no time of its own"),
            line("a", "2026-01-01T00:00:03.5Z four"),
        ];
        let other = vec![
            line("b", "2026-01-01T00:00:02.25Z two"),
            line("b", "2026-01-01T00:00:03.250000001Z three"),
        ];
        let merged = merged(vec![one, other]);
        let raw: Vec<_> = merged.iter().map(|line| line.raw.as_str()).collect();
        assert_eq!(raw, ["one", "no time of its own", "two", "three", "four"]);
        let last = last_times(&merged);
        assert_eq!(last["a"], "2026-01-01T00:00:03.5Z");
    }

    #[test]
    fn a_request_names_the_container_where_there_are_several() {
        let object = |containers: Value| json!({"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": containers}});
        let alone = pod(&object(json!([{"name": "other"}])));
        let request = alone.request(&[("tailLines", "5".to_owned())]).unwrap();
        assert_eq!(
            request.uri(),
            "/api/v1/namespaces/n/pods/p/log?timestamps=true&tailLines=5"
        );
        let beside = pod(&object(json!([{"name": "proxy"}, {"name": "manager"}])));
        let request = beside.request(&[]).unwrap();
        assert_eq!(
            request.uri(),
            "/api/v1/namespaces/n/pods/p/log?timestamps=true&container=manager"
        );
        let deployment =
            json!({"spec": {"selector": {"matchLabels": {"app": "source-controller", "x": "y"}}}});
        assert_eq!(
            selector(&deployment).as_deref(),
            Some("app=source-controller,x=y")
        );
    }

    #[tokio::test]
    async fn a_pod_that_is_silent_in_the_window_is_followed_from_its_end() {
        const OLD: &str = "2026-01-01T00:00:01.5Z old\n";
        let (address, asked) = stand_in::serve(|request| {
            let body = match () {
                () if request.what.contains("/pods/new/") => String::new(),
                () if request.what.contains("tailLines=1") => OLD.to_owned(),
                () if request.what.contains("follow=true") => format!("{OLD}2026-01-01T00:00:01.7Z more\n"),
                () => String::new(),
            };
            (200, String::new(), body)
        });
        let cluster = Cluster::at(&address);
        let pods: Vec<_> = ["silent", "new"]
            .map(|name| pod(&json!({"metadata": {"name": name, "namespace": "n"}})))
            .into();
        let last = ends(&cluster, &pods).await;
        assert_eq!(
            last,
            BTreeMap::from([("silent".to_owned(), "2026-01-01T00:00:01.5Z".to_owned())])
        );
        let lines = follow(&cluster, &pods[0], last["silent"].clone()).await.unwrap();
        let lines: Vec<_> = lines.map(|line| line.raw).collect().await;
        assert_eq!(lines, ["more"]);
        let asked = asked.lock().unwrap();
        let followed = asked.last().unwrap();
        assert!(
            followed.what.ends_with("&sinceTime=2026-01-01T00%3A00%3A01.5Z"),
            "{}",
            followed.what
        );
    }
}
