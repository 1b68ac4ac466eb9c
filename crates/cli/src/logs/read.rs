//! The logs of the controllers' Pods, through the API server.

use std::collections::BTreeMap;

use futures::future::join_all;
use futures::stream::{BoxStream, StreamExt as _};
use futures::{AsyncBufReadExt as _, AsyncReadExt as _};

use super::line::Line;
use crate::cluster::controllers::Pod;
use crate::cluster::{Cluster, Failure};

/// From when on lines are read.
#[derive(Clone, Copy, Default)]
pub(super) struct Since {
    pub(super) seconds: Option<u64>,
    pub(super) tail: Option<i64>,
}

fn request(pod: &Pod, parameters: &[(&str, String)]) -> Result<http::Request<Vec<u8>>, Failure> {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("timestamps", "true");
    query.extend_pairs(parameters);
    if let Some(container) = &pod.container {
        query.append_pair("container", container);
    }
    pod.request(&format!("log?{}", query.finish()))
}

fn failed(pod: &Pod, error: kube::Error) -> Failure {
    Failure::request(format!("read the log of {pod}"), error)
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
    let stream = cluster.client().request_stream(request(pod, &parameters)?).await;
    let mut stream = Box::pin(stream.map_err(|error| failed(pod, error))?);
    let mut text = Vec::new();
    let read = stream.read_to_end(&mut text).await;
    read.map_err(|error| failed(pod, kube::Error::ReadEvents(error)))?;
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
    let stream = cluster.client().request_stream(request(pod, &parameters)?).await;
    let stream = stream.map_err(|error| failed(pod, error))?;
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
    use serde_json::{Value, json};

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
        let alone = Pod::of(&object(json!([{"name": "other"}])));
        let asked = request(&alone, &[("tailLines", "5".to_owned())]).unwrap();
        assert_eq!(
            asked.uri(),
            "/api/v1/namespaces/n/pods/p/log?timestamps=true&tailLines=5"
        );
        let beside = Pod::of(&object(json!([{"name": "proxy"}, {"name": "manager"}])));
        let asked = request(&beside, &[]).unwrap();
        assert_eq!(
            asked.uri(),
            "/api/v1/namespaces/n/pods/p/log?timestamps=true&container=manager"
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
            .map(|name| Pod::of(&json!({"metadata": {"name": name, "namespace": "n"}})))
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
