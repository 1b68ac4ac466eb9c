//! Waits by the rules of Helm 3, for who asks for them (`waitStrategy: legacy`). Helm asks every two seconds; here the object
//! that is not ready is watched.
//!
//! Other rules than kstatus': a Deployment is ready with as many Pods as its strategy lets be there at least, a Service with
//! an address, and kinds without a rule are always.

mod changes;

use std::time::Duration;

use kube::core::params::ListParams;
use kube_health::report::{Ending, ObjectReport, Report};
use kube_health::{Status, why};
use manifest::ObjectId;
use serde_json::Value;
use tokio::time::Instant;

use changes::Changes;

use crate::resources::Resource;
use crate::{Cluster, Context, Error, ErrorKind, Waiting};

/// Interval of checks on objects of others, such as the ReplicaSets of a Deployment.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// After so long it is told what is waited for, and then ever more rarely.
const TOLD_AFTER: Duration = Duration::from_secs(5);
/// But so often at least.
const TOLD_AT_LEAST: Duration = Duration::from_secs(60);
/// So many objects are explained.
const EXPLAINED: usize = 5;
/// Looking for causes may take so long after the wait.
const WHY_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits until all objects are ready.
pub(super) async fn until_ready(
    context: &Context<'_>,
    resources: &[Resource],
    waiting: &Waiting,
) -> Result<(), Error> {
    let cluster = context.cluster;
    let deadline = Instant::now() + waiting.timeout;
    let mut open: Vec<&Resource> = resources.iter().collect();
    let mut watched: Option<(ObjectId, Changes)> = None;
    let (mut tell_at, mut pause) = (Instant::now() + TOLD_AFTER, TOLD_AFTER);
    loop {
        let looked = context
            .wait_for(still_open(cluster, &open, waiting.for_jobs))
            .await?;
        open = looked.map_err(|problem| Error::new(ErrorKind::Wait, problem))?;
        let Some(first) = open.first() else {
            return Ok(());
        };
        let now = Instant::now();
        if now >= deadline {
            return Err(Error::of_report(report(cluster, &open, Ending::TimedOut).await));
        }
        if now >= tell_at {
            let told = context.wait_for(report(cluster, &open, Ending::NotYet)).await?;
            (context.tell)(told.brief());
            pause = TOLD_AT_LEAST.min(pause * 2);
            tell_at = Instant::now() + pause;
        }
        if watched.as_ref().is_none_or(|(id, _)| *id != first.id()) {
            watched = Some((first.id(), Changes::new(&cluster.client, &first.at)));
        }
        let until = deadline.min(tell_at).min(now + LOOK_AGAIN);
        let changed = async {
            match &mut watched {
                Some((_, changes)) => changes.next().await,
                None => futures::future::pending().await,
            }
        };
        // That nothing has changed until then is no reason not to look.
        let _ = context.wait_for(tokio::time::timeout_at(until, changed)).await?;
    }
}

/// Returns the objects that are not ready. Each is asked until it is ready once, in their order, as Helm does.
async fn still_open<'a>(
    cluster: &Cluster,
    resources: &[&'a Resource],
    for_jobs: bool,
) -> Result<Vec<&'a Resource>, String> {
    for (index, resource) in resources.iter().enumerate() {
        if !is_ready(cluster, resource, for_jobs).await? {
            return Ok(resources[index..].to_vec());
        }
    }
    Ok(Vec::new())
}

async fn is_ready(cluster: &Cluster, resource: &Resource, for_jobs: bool) -> Result<bool, String> {
    let api = &resource.at.resource.api;
    let kind = (api.group.as_str(), api.kind.as_str());
    if !has_rule(kind, for_jobs) || resource.at.name.is_empty() {
        return Ok(true);
    }
    let live = match cluster.engine.read_one(&resource.at).await {
        Ok(Some(live)) => live,
        Ok(None) => return Ok(false),
        // Time may help; the wait's own is bounded.
        Err(failure) => {
            tracing::debug!(object = %resource.id(), %failure, "asking whether an object is ready");
            return Ok(false);
        }
    };
    let replica_sets = match kind {
        ("apps", "Deployment") => replica_sets(cluster, &live).await,
        _ => Vec::new(),
    };
    verdict(kind, &live, &replica_sets)
}

fn has_rule(kind: (&str, &str), for_jobs: bool) -> bool {
    match kind {
        ("batch", "Job") => for_jobs,
        ("apps", "Deployment" | "DaemonSet" | "StatefulSet" | "ReplicaSet")
        | ("", "Pod" | "PersistentVolumeClaim" | "Service" | "ReplicationController")
        | ("apiextensions.k8s.io", "CustomResourceDefinition") => true,
        _ => false,
    }
}

/// Reads the ReplicaSets of a Deployment; none where they cannot be read, and then it is not ready.
async fn replica_sets(cluster: &Cluster, deployment: &Value) -> Vec<Value> {
    let text = |pointer: &str| {
        deployment
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let labels = deployment
        .pointer("/spec/selector/matchLabels")
        .and_then(Value::as_object);
    let selector: Vec<String> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    let path = format!(
        "/apis/apps/v1/namespaces/{}/replicasets",
        text("/metadata/namespace")
    );
    let params = ListParams::default().labels(&selector.join(","));
    let Ok(request) = kube::core::Request::new(path).list(&params) else {
        return Vec::new();
    };
    let listed: Result<Value, _> = cluster.client.request(request).await;
    let uid = text("/metadata/uid");
    let Some(Value::Array(items)) = listed
        .ok()
        .and_then(|mut list| list.get_mut("items").map(Value::take))
    else {
        return Vec::new();
    };
    let is_its_own = |set: &Value| {
        let owners = set.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        owners.is_some_and(|owners| {
            owners
                .iter()
                .any(|owner| owner.get("uid").and_then(Value::as_str) == Some(uid))
        })
    };
    items.into_iter().filter(is_its_own).collect()
}

/// Judges an object; an error where it has failed for good.
fn verdict(kind: (&str, &str), live: &Value, replica_sets: &[Value]) -> Result<bool, String> {
    let number = |pointer: &str| live.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
    let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let is_observed = number("/status/observedGeneration") == number("/metadata/generation");
    Ok(match kind.1 {
        "Pod" => condition(live, "Ready") == Some("True"),
        "PersistentVolumeClaim" => text("/status/phase") == "Bound",
        "CustomResourceDefinition" => {
            condition(live, "Established") == Some("True")
                || condition(live, "NamesAccepted") == Some("False")
        }
        "ReplicaSet" | "ReplicationController" => is_observed,
        "Service" => service(live),
        "DaemonSet" => is_observed && daemon_set(live),
        "StatefulSet" => is_observed && stateful_set(live),
        "Deployment" => {
            live.pointer("/spec/paused").and_then(Value::as_bool) == Some(true)
                || (is_observed && deployment(live, replica_sets))
        }
        "Job" => {
            let limit = live
                .pointer("/spec/backoffLimit")
                .and_then(Value::as_i64)
                .unwrap_or(6);
            if number("/status/failed") > limit {
                let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
                return Err(format!("job is failed: {namespace}/{name}"));
            }
            number("/status/succeeded") >= number("/spec/completions")
        }
        _ => true,
    })
}

fn condition<'a>(live: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = live.pointer("/status/conditions")?.as_array()?;
    let found = conditions
        .iter()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind));
    found?.get("status")?.as_str()
}

fn service(live: &Value) -> bool {
    let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let has = |pointer: &str| {
        live.pointer(pointer)
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty())
    };
    match text("/spec/type") {
        "ExternalName" => true,
        _ if text("/spec/clusterIP").is_empty() => false,
        "LoadBalancer" => has("/spec/externalIPs") || has("/status/loadBalancer/ingress"),
        _ => true,
    }
}

fn deployment(live: &Value, replica_sets: &[Value]) -> bool {
    let revision = |object: &Value| {
        let revision = object
            .pointer("/metadata/annotations")?
            .get("deployment.kubernetes.io/revision")?;
        revision.as_str().map(str::to_owned)
    };
    let newest = revision(live);
    let Some(set) = replica_sets
        .iter()
        .find(|set| newest.is_some() && revision(set) == newest)
    else {
        return false;
    };
    let number = |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    let replicas = number(live, "/spec/replicas").unwrap_or(1);
    let is_observed = number(set, "/status/observedGeneration") == number(set, "/metadata/generation");
    is_observed
        && number(set, "/status/readyReplicas").unwrap_or_default()
            >= replicas - max_unavailable(live, replicas)
}

/// How many Pods of a Deployment may be missing while it rolls out.
fn max_unavailable(live: &Value, replicas: i64) -> i64 {
    if live.pointer("/spec/strategy/type").and_then(Value::as_str) != Some("RollingUpdate") || replicas == 0 {
        return 0;
    }
    let scaled = |field: &str, up: bool| {
        let value = live.pointer(&format!("/spec/strategy/rollingUpdate/{field}"));
        scaled(value, replicas, up).unwrap_or(0)
    };
    let (surge, unavailable) = (scaled("maxSurge", true), scaled("maxUnavailable", false));
    // Both may round to nothing, and then one may be missing.
    let unavailable = if surge == 0 && unavailable == 0 {
        1
    } else {
        unavailable
    };
    unavailable.min(replicas)
}

/// Reads a number, or a share of a total.
fn scaled(value: Option<&Value>, total: i64, up: bool) -> Option<i64> {
    match value? {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            let share = percent.checked_mul(total)?;
            Some(if up {
                share.checked_add(99)? / 100
            } else {
                share / 100
            })
        }
        _ => None,
    }
}

fn daemon_set(live: &Value) -> bool {
    let number = |pointer: &str| live.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
    if live.pointer("/spec/updateStrategy/type").and_then(Value::as_str) != Some("RollingUpdate") {
        return true;
    }
    let desired = number("/status/desiredNumberScheduled");
    let unavailable = live.pointer("/spec/updateStrategy/rollingUpdate/maxUnavailable");
    let unavailable = scaled(unavailable, desired, true).unwrap_or(desired);
    number("/status/updatedNumberScheduled") == desired
        && number("/status/numberReady") >= desired - unavailable
}

fn stateful_set(live: &Value) -> bool {
    let number = |pointer: &str| live.pointer(pointer).and_then(Value::as_i64);
    let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str);
    if text("/spec/updateStrategy/type") != Some("RollingUpdate") {
        return true;
    }
    let partition = number("/spec/updateStrategy/rollingUpdate/partition").unwrap_or_default();
    let replicas = number("/spec/replicas").unwrap_or(1);
    number("/status/updatedReplicas").unwrap_or_default() >= replicas - partition
        && number("/status/readyReplicas").unwrap_or_default() == replicas
        && (partition != 0 || text("/status/currentRevision") == text("/status/updateRevision"))
}

/// Tells which objects are not ready, and why as far as that can be found.
async fn report(cluster: &Cluster, open: &[&Resource], ending: Ending) -> Report {
    let mut objects = Vec::new();
    for resource in open {
        let id = resource.id();
        let mut cause = None;
        if objects.len() < EXPLAINED {
            let looked = tokio::time::timeout(WHY_TIMEOUT, why::gather(&cluster.client, &id)).await;
            cause = looked.ok().and_then(Result::ok).flatten();
        }
        objects.push(ObjectReport {
            id,
            status: Status::InProgress,
            message: String::new(),
            why: cause,
        });
    }
    Report { ending, objects }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ready(kind: (&str, &str), live: Value) -> bool {
        verdict(kind, &live, &[]).unwrap()
    }

    #[test]
    fn a_deployment_is_ready_with_the_pods_that_may_not_be_missing() {
        let deployment = |replicas: i64, unavailable: Value| {
            json!({"metadata": {"generation": 1, "annotations": {"deployment.kubernetes.io/revision": "2"}},
                "spec": {"replicas": replicas, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": 1}}},
                "status": {"observedGeneration": 1}})
        };
        let set = |revision: &str, ready: i64| {
            json!({"metadata": {"generation": 1, "annotations": {"deployment.kubernetes.io/revision": revision}},
                "status": {"observedGeneration": 1, "readyReplicas": ready}})
        };
        let check = |live: &Value, sets: &[Value]| verdict(("apps", "Deployment"), live, sets).unwrap();
        assert!(check(&deployment(4, json!("25%")), &[set("1", 4), set("2", 3)]));
        assert!(!check(&deployment(4, json!("25%")), &[set("1", 4), set("2", 2)]));
        assert!(!check(&deployment(4, json!(0)), &[set("2", 3)]));
        assert!(!check(&deployment(4, json!(0)), &[set("1", 4)]));
        let mut behind = deployment(1, json!(1));
        behind["metadata"]["generation"] = json!(2);
        assert!(!check(&behind, &[set("2", 1)]));
        behind["spec"]["paused"] = json!(true);
        assert!(check(&behind, &[]));
    }

    #[test]
    fn jobs_end_or_fail() {
        let job = |succeeded: i64, failed: i64| {
            json!({"metadata": {"name": "a", "namespace": "b"}, "spec": {"completions": 1, "backoffLimit": 2},
                "status": {"succeeded": succeeded, "failed": failed}})
        };
        assert!(ready(("batch", "Job"), job(1, 1)));
        assert!(!ready(("batch", "Job"), job(0, 2)));
        let error = verdict(("batch", "Job"), &job(0, 3), &[]).unwrap_err();
        assert_eq!(error, "job is failed: b/a");
        assert!(!has_rule(("batch", "Job"), false));
    }

    #[test]
    fn services_have_addresses() {
        let service = |kind: &str, ip: &str| json!({"spec": {"type": kind, "clusterIP": ip}});
        assert!(ready(("", "Service"), service("ClusterIP", "10.0.0.1")));
        assert!(!ready(("", "Service"), service("ClusterIP", "")));
        assert!(ready(("", "Service"), service("ExternalName", "")));
        assert!(!ready(("", "Service"), service("LoadBalancer", "10.0.0.1")));
    }

    #[test]
    fn sets_are_rolled_out() {
        let daemons = |updated: i64, ready: i64| {
            json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}},
                "status": {"desiredNumberScheduled": 3, "updatedNumberScheduled": updated, "numberReady": ready}})
        };
        assert!(ready(("apps", "DaemonSet"), daemons(3, 2)));
        assert!(!ready(("apps", "DaemonSet"), daemons(2, 3)));
        let stateful = |current: &str| {
            json!({"spec": {"replicas": 2, "updateStrategy": {"type": "RollingUpdate"}},
                "status": {"updatedReplicas": 2, "readyReplicas": 2, "currentRevision": current, "updateRevision": "b"}})
        };
        assert!(ready(("apps", "StatefulSet"), stateful("b")));
        assert!(!ready(("apps", "StatefulSet"), stateful("a")));
    }
}
