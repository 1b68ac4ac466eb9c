//! Waiting: which requests are made, what ends a wait, and with what words.

mod telling;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use kube_health::{Hub, Outcome, Resolve, ResolveError, Resolved, Status, Target, WaitRequest};
use manifest::{GroupVersionKind, ObjectId};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::fake_api::{ByRule, FakeApi};

const DEPLOYMENTS: &str = "/apis/apps/v1/deployments";
const STATEFUL_SETS: &str = "/apis/apps/v1/statefulsets";
const JOBS: &str = "/apis/batch/v1/jobs";
const PODS: &str = "/api/v1/namespaces/default/pods";
const NAMED_DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn setup() -> (FakeApi, Hub) {
    let api = FakeApi::default();
    let hub = Hub::new(api.client(), Arc::new(ByRule));
    (api, hub)
}

fn owner() -> Value {
    json!({"kustomize.toolkit.fluxcd.io/name": "apps"})
}

fn deployment(name: &str, available: u64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "generation": 2, "uid": name, "labels": owner()},
        "spec": {"replicas": 3, "progressDeadlineSeconds": 600},
        "status": {
            "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3,
            "readyReplicas": available, "availableReplicas": available,
            "conditions": [
                {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
                {"type": "Available", "status": "True"}
            ]
        }
    })
}

fn stalled(name: &str) -> Value {
    let mut object = deployment(name, 0);
    object["status"]["conditions"] = json!([{"type": "Progressing", "status": "False",
        "reason": "ProgressDeadlineExceeded", "message": "it has timed out progressing"}]);
    object
}

fn job(name: &str, conditions: &Value) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default", "uid": name, "labels": owner()},
        "status": {"startTime": "2026-01-01T00:00:00Z", "active": 1, "conditions": conditions}})
}

fn id(object: &Value) -> ObjectId {
    let (group, _) = object["apiVersion"]
        .as_str()
        .unwrap()
        .split_once('/')
        .unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ObjectId {
        group: group.to_owned(),
        kind: text(&object["kind"]),
        namespace: text(&object["metadata"]["namespace"]),
        name: text(&object["metadata"]["name"]),
    }
}

/// A target as an apply leaves it: labelled, with the answer.
fn applied(object: &Value) -> Target {
    Target {
        id: id(object),
        version: "v1".into(),
        labelled: true,
        initial: Some(object.clone()),
        ..Target::default()
    }
}

/// A target of spec.healthChecks: nothing is known of it.
fn foreign(object: &Value) -> Target {
    Target {
        id: id(object),
        version: "v1".into(),
        ..Target::default()
    }
}

fn request(objects: Vec<Target>) -> WaitRequest {
    WaitRequest {
        objects,
        timeout: Duration::from_secs(60),
        fail_fast: true,
        ..WaitRequest::default()
    }
}

fn start(hub: &Hub, request: WaitRequest) -> JoinHandle<Outcome> {
    let hub = hub.clone();
    tokio::spawn(async move { hub.wait(request).await })
}

fn shown(outcome: &Outcome) -> String {
    outcome
        .report()
        .map_or_else(|| "healthy".to_owned(), ToString::to_string)
}

#[tokio::test(start_paused = true)]
async fn an_apply_that_answers_with_a_healthy_object_needs_no_request() {
    let (api, hub) = setup();
    let outcome = hub.wait(request(vec![applied(&deployment("web", 3))])).await;
    assert_eq!((outcome, api.log()), (Outcome::Healthy, vec![]));
    assert_eq!(hub.wait(request(vec![])).await, Outcome::Healthy);
}

#[tokio::test(start_paused = true)]
async fn waits_share_one_watch_of_a_kind_and_end_when_their_objects_are_current() {
    let (api, hub) = setup();
    let waits: Vec<_> = (0..20)
        .map(|i| {
            let object = api.put(DEPLOYMENTS, deployment(&format!("web-{i}"), 1));
            start(&hub, request(vec![applied(&object)]))
        })
        .collect();
    api.has_served("watch", 1).await;
    for i in 0..20 {
        api.put(DEPLOYMENTS, deployment(&format!("web-{i}"), 3));
    }
    for wait in waits {
        assert_eq!(wait.await.unwrap(), Outcome::Healthy);
    }
    assert_eq!(
        (api.requests("list"), api.requests("watch"), api.log().len()),
        (1, 1, 2),
        "{:?}",
        api.log()
    );
    let labelled = "labelSelector=kustomize.toolkit.fluxcd.io%2Fname";
    assert!(
        api.log().iter().all(|line| line.contains(labelled)),
        "{:?}",
        api.log()
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_joins_late_reads_what_the_watch_has_seen() {
    let (api, hub) = setup();
    let slow = api.put(DEPLOYMENTS, deployment("slow", 1));
    let fresh = api.put(DEPLOYMENTS, deployment("fresh", 1));
    let first = start(&hub, request(vec![applied(&slow)]));
    api.has_served("watch", 1).await;
    api.put(DEPLOYMENTS, deployment("fresh", 3));
    assert_eq!(hub.wait(request(vec![applied(&fresh)])).await, Outcome::Healthy);
    assert_eq!(api.log().len(), 2);
    first.abort();
}

#[tokio::test(start_paused = true)]
async fn a_watch_lingers_for_the_next_wait_and_then_ends() {
    let (api, hub) = setup();
    let object = api.put(DEPLOYMENTS, deployment("web", 1));
    let wait = start(&hub, request(vec![applied(&object)]));
    api.has_served("watch", 1).await;
    assert_eq!(hub.open_watches(), 1);
    wait.abort();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(hub.open_watches(), 1, "kept for a while");

    let wait = start(&hub, request(vec![applied(&object)]));
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!((hub.open_watches(), api.log().len()), (1, 2), "used again");

    wait.abort();
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(hub.open_watches(), 0);
    let before = api.log().len();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(api.log().len(), before, "nothing goes on");
}

#[tokio::test(start_paused = true)]
async fn foreign_objects_are_watched_one_by_one() {
    let (api, hub) = setup();
    let object = api.put(NAMED_DEPLOYMENTS, deployment("web", 1));
    let wait = start(&hub, request(vec![foreign(&object)]));
    api.has_served("watch", 1).await;
    assert!(
        api.log()
            .iter()
            .all(|line| line.contains("fieldSelector=metadata.name%3Dweb")),
        "{:?}",
        api.log()
    );
    api.put(NAMED_DEPLOYMENTS, deployment("web", 3));
    assert_eq!(wait.await.unwrap(), Outcome::Healthy);
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_label_was_taken_away_is_watched_by_name() {
    let (api, hub) = setup();
    let mut object = deployment("web", 1);
    object["metadata"]["labels"] = json!({});
    let object = api.put(NAMED_DEPLOYMENTS, object);
    let wait = start(&hub, request(vec![applied(&object)]));
    api.has_served("watch", 1).await;
    api.put(NAMED_DEPLOYMENTS, deployment("web", 3));
    assert_eq!(wait.await.unwrap(), Outcome::Healthy);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_found_whatever_namespace_its_reference_gives() {
    let (api, hub) = setup();
    let path = "/api/v1/namespaces";
    api.put(
        path,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "apps"}}),
    );
    let mut target = foreign(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "apps"}}));
    target.id.namespace = "default".into();
    assert_eq!(hub.wait(request(vec![target])).await, Outcome::Healthy);
}

#[tokio::test(start_paused = true)]
async fn time_outs_name_every_object_that_is_not_there_yet() {
    let (api, hub) = setup();
    let web = api.put(DEPLOYMENTS, deployment("web", 1));
    let done = api.put(DEPLOYMENTS, deployment("done", 3));
    let gone = deployment("gone", 1);
    let begun = Instant::now();
    let outcome = hub
        .wait(request(vec![applied(&web), applied(&done), foreign(&gone)]))
        .await;
    assert_eq!(begun.elapsed(), Duration::from_secs(60));
    assert!(matches!(outcome, Outcome::TimedOut(_)));
    assert_eq!(
        shown(&outcome),
        "timeout waiting for: [Deployment/default/web status: 'InProgress': 1 of 3 replicas available, \
         Deployment/default/gone status: 'NotFound': does not exist]"
    );
}

#[tokio::test(start_paused = true)]
async fn a_time_out_tells_the_cause() {
    let (api, hub) = setup();
    let mut web = deployment("web", 1);
    web["spec"]["selector"] = json!({"matchLabels": {"app": "web"}});
    api.put(NAMED_DEPLOYMENTS, web.clone());
    let web = api.put(DEPLOYMENTS, web);
    let owned = |by: &str| json!([{"uid": by}]);
    for (revision, uid) in [("1", "rs-old"), ("2", "rs-new")] {
        api.put(
            "/apis/apps/v1/namespaces/default/replicasets",
            json!({"metadata": {"name": uid, "namespace": "default", "uid": uid, "ownerReferences": owned("web"),
                "annotations": {"deployment.kubernetes.io/revision": revision}},
                "spec": {"selector": {"matchLabels": {"app": "web", "hash": uid}}}}),
        );
    }
    for (name, owner) in [("web-old", "rs-old"), ("web-new", "rs-new")] {
        api.put(
            PODS,
            json!({"metadata": {"name": name, "namespace": "default", "ownerReferences": owned(owner)},
                "spec": {"containers": [{"name": "app", "image": "nginx:nope"}]},
                "status": {"phase": "Pending", "containerStatuses": [
                    {"name": "app", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}]}}),
        );
    }
    let outcome = hub.wait(request(vec![applied(&web)])).await;
    assert_eq!(
        shown(&outcome),
        "timeout waiting for: [Deployment/default/web status: 'InProgress': 1 of 3 replicas available: \
         pod web-new container app: ImagePullBackOff (image nginx:nope): not found]"
    );
    let bounded = |line: &&String| line.starts_with("list") && line.contains(PODS);
    let log = api.log();
    let pods: Vec<_> = log.iter().filter(bounded).collect();
    assert!(
        pods.len() == 1 && pods[0].contains("limit=50") && pods[0].contains("hash%3Drs-new"),
        "{pods:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn with_fail_fast_the_first_failure_ends_the_wait() {
    let (api, hub) = setup();
    let (bad, slow) = (
        api.put(DEPLOYMENTS, deployment("bad", 1)),
        api.put(DEPLOYMENTS, deployment("slow", 1)),
    );
    let wait = start(&hub, request(vec![applied(&bad), applied(&slow)]));
    api.has_served("watch", 1).await;
    api.put(DEPLOYMENTS, stalled("bad"));
    assert_eq!(
        shown(&wait.await.unwrap()),
        "failed early due to stalled resources: [Deployment/default/bad status: 'Failed': \
         no progress within the deadline of 600s: it has timed out progressing]"
    );
}

#[tokio::test(start_paused = true)]
async fn a_failure_from_before_the_change_does_not_end_the_wait() {
    let (api, hub) = setup();
    let mut changed = stalled("web");
    changed["metadata"]["generation"] = json!(3);
    let changed = api.put(DEPLOYMENTS, changed);
    let wait = start(&hub, request(vec![applied(&changed)]));
    api.has_served("watch", 1).await;
    let mut observed = stalled("web");
    observed["metadata"]["generation"] = json!(3);
    observed["status"]["observedGeneration"] = json!(3);
    // The generation is reported first, beside the conditions of the one before.
    api.put(DEPLOYMENTS, observed.clone());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!wait.is_finished(), "it was blamed for what was before");
    observed["status"]["conditions"][0]["message"] = json!("the new one has timed out progressing");
    api.put(DEPLOYMENTS, observed);
    let failed = shown(&wait.await.unwrap());
    assert!(failed.contains("the new one has timed out"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn without_fail_fast_a_failure_waits_for_the_others_to_settle() {
    let (api, hub) = setup();
    let (bad, slow) = (
        api.put(DEPLOYMENTS, deployment("bad", 1)),
        api.put(DEPLOYMENTS, deployment("slow", 1)),
    );
    let begun = Instant::now();
    let wait = WaitRequest {
        fail_fast: false,
        ..request(vec![applied(&bad), applied(&slow)])
    };
    let wait = start(&hub, wait);
    api.has_served("watch", 1).await;
    api.put(DEPLOYMENTS, stalled("bad"));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(!wait.is_finished());
    api.put(DEPLOYMENTS, deployment("slow", 3));
    let outcome = wait.await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(31));
    let report = outcome.report().unwrap();
    assert!(matches!(outcome, Outcome::Unhealthy(_)));
    assert_eq!(
        report
            .objects
            .iter()
            .map(|o| (o.id.name.as_str(), o.status))
            .collect::<Vec<_>>(),
        [("bad", Status::Failed)]
    );
}

#[tokio::test(start_paused = true)]
async fn an_older_state_than_the_apply_made_does_not_count() {
    let (api, hub) = setup();
    // The watch is open, and still shows the object as it was before the apply.
    let other = api.put(DEPLOYMENTS, deployment("other", 1));
    let keep_open = start(&hub, request(vec![applied(&other)]));
    api.has_served("watch", 1).await;
    api.put(DEPLOYMENTS, deployment("web", 3));

    let mut target = foreign(&deployment("web", 3));
    (target.labelled, target.minimum_generation) = (true, Some(3));
    let by_generation = start(&hub, request(vec![target]));
    let mut answer = deployment("web", 1);
    answer["metadata"]["resourceVersion"] = json!("1000");
    let by_version = start(&hub, request(vec![applied(&answer)]));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!by_generation.is_finished() && !by_version.is_finished());

    let mut newer = deployment("web", 3);
    newer["metadata"]["generation"] = json!(3);
    newer["status"]["observedGeneration"] = json!(3);
    newer["metadata"]["resourceVersion"] = json!("1001");
    api.send(DEPLOYMENTS, json!({"type": "MODIFIED", "object": newer}));
    assert_eq!(by_generation.await.unwrap(), Outcome::Healthy);
    assert_eq!(by_version.await.unwrap(), Outcome::Healthy);
    keep_open.abort();
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_created_anew_counts_its_generations_anew() {
    let (api, hub) = setup();
    let mut anew = deployment("web", 3);
    anew["metadata"]["generation"] = json!(1);
    anew["metadata"]["uid"] = json!("another");
    anew["status"]["observedGeneration"] = json!(1);
    api.put(DEPLOYMENTS, anew.clone());
    let mut target = foreign(&anew);
    (target.labelled, target.minimum_generation, target.uid) = (true, Some(7), Some("web".into()));
    assert_eq!(hub.wait(request(vec![target])).await, Outcome::Healthy);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_is_waited_for_until_it_is_back() {
    let (api, hub) = setup();
    let web = api.put(DEPLOYMENTS, deployment("web", 1));
    let wait = start(&hub, request(vec![applied(&web)]));
    api.has_served("watch", 1).await;
    api.delete(DEPLOYMENTS, "web");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(!wait.is_finished());
    api.put(DEPLOYMENTS, deployment("web", 3));
    assert_eq!(wait.await.unwrap(), Outcome::Healthy);
}

#[tokio::test(start_paused = true)]
async fn a_job_with_a_ttl_is_done_once_it_is_gone() {
    let (api, hub) = setup();
    let migrate = api.put(JOBS, job("migrate", &json!([])));
    let ttl = |target: Target| WaitRequest {
        jobs_with_ttl: [target.id.clone()].into(),
        ..request(vec![target])
    };
    let with_ttl = start(&hub, ttl(applied(&migrate)));
    let without = start(&hub, request(vec![applied(&migrate)]));
    api.has_served("watch", 1).await;
    api.delete(JOBS, "migrate");
    assert_eq!(with_ttl.await.unwrap(), Outcome::Healthy);
    assert_eq!(
        shown(&without.await.unwrap()),
        "timeout waiting for: [Job/default/migrate status: 'NotFound': does not exist]"
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_with_a_ttl_that_the_watch_has_not_seen_yet_is_not_done() {
    let (api, hub) = setup();
    let other = api.put(JOBS, job("other", &json!([])));
    let keep_open = start(&hub, request(vec![applied(&other)]));
    api.has_served("watch", 1).await;
    let mut answer = job("migrate", &json!([]));
    answer["metadata"]["resourceVersion"] = json!("1000");
    let target = applied(&answer);
    let wait = WaitRequest {
        jobs_with_ttl: [target.id.clone()].into(),
        ..request(vec![target])
    };
    let wait = start(&hub, wait);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!wait.is_finished());
    // It was created and deleted while no one looked: any later event proves that the watch has come past it.
    answer["metadata"]["resourceVersion"] = json!("1001");
    api.send(JOBS, json!({"type": "DELETED", "object": answer}));
    assert_eq!(wait.await.unwrap(), Outcome::Healthy);
    keep_open.abort();
}

#[tokio::test(start_paused = true)]
async fn a_refused_watch_ends_the_wait_at_once_and_is_tried_anew_by_the_next() {
    let (api, hub) = setup();
    let web = api.put(DEPLOYMENTS, deployment("web", 1));
    api.refuse(DEPLOYMENTS, 403);
    let begun = Instant::now();
    assert_eq!(
        shown(&hub.wait(request(vec![applied(&web)])).await),
        "failed early due to stalled resources: [Deployment/default/web status: 'Unknown': \
         cannot list and watch deployments.apps: user cannot use /apis/apps/v1/deployments]"
    );
    assert!(begun.elapsed() < Duration::from_secs(1));
    api.refuse(DEPLOYMENTS, 0);
    api.put(DEPLOYMENTS, deployment("web", 3));
    assert_eq!(hub.wait(request(vec![applied(&web)])).await, Outcome::Healthy);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_expires_or_breaks_lists_again_or_resumes() {
    let (api, hub) = setup();
    let web = api.put(DEPLOYMENTS, deployment("web", 1));
    let gone = api.put(DEPLOYMENTS, deployment("gone", 1));
    let wait = start(&hub, request(vec![applied(&web)]));
    let deleted = start(&hub, request(vec![applied(&gone)]));
    api.has_served("watch", 1).await;
    api.cut(DEPLOYMENTS);
    api.has_served("watch", 2).await;
    assert_eq!(api.requests("list"), 1, "a cut watch resumes where it was");
    api.expire(DEPLOYMENTS);
    // Neither change is seen by any watch.
    api.put(DEPLOYMENTS, deployment("web", 3));
    api.delete(DEPLOYMENTS, "gone");
    assert_eq!(wait.await.unwrap(), Outcome::Healthy);
    assert_eq!(api.requests("list"), 2);
    assert!(shown(&deleted.await.unwrap()).contains("'NotFound'"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_for_a_while_only_delays() {
    let (api, hub) = setup();
    let web = api.put(DEPLOYMENTS, deployment("web", 3));
    api.refuse(DEPLOYMENTS, 500);
    let wait = start(
        &hub,
        request(vec![Target {
            labelled: true,
            ..foreign(&web)
        }]),
    );
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(!wait.is_finished());
    api.refuse(DEPLOYMENTS, 0);
    assert_eq!(wait.await.unwrap(), Outcome::Healthy);

    api.refuse("/apis/batch/v1/jobs", 500);
    let target = Target {
        labelled: true,
        ..foreign(&job("migrate", &json!([])))
    };
    let text = shown(&hub.wait(request(vec![target])).await);
    assert!(
        text.starts_with("timeout waiting for: [Job/default/migrate status: 'Unknown': failed to"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn dropping_a_wait_cancels_it() {
    let (api, hub) = setup();
    let web = api.put(DEPLOYMENTS, deployment("web", 1));
    {
        let wait = hub.wait(request(vec![applied(&web)]));
        assert!(tokio::time::timeout(Duration::from_secs(1), wait).await.is_err());
    }
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(hub.open_watches(), 0);
    api.cut(DEPLOYMENTS);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(api.log().len(), 2, "{:?}", api.log());
}

#[tokio::test(start_paused = true)]
async fn a_crash_looping_pod_fails_its_stateful_set() {
    let (api, hub) = setup();
    let db = api.put(
        STATEFUL_SETS,
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "default", "labels": owner()},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "db"}}}, "status": {"replicas": 1}}),
    );
    let wait = start(&hub, request(vec![applied(&db)]));
    api.has_served("watch /api/v1/namespaces/default/pods?", 1).await;
    assert!(
        api.log()
            .iter()
            .any(|line| line.contains("pods?") && line.contains("labelSelector=app%3Ddb"))
    );
    let pod = |status: Value| json!({"metadata": {"name": "db-0", "namespace": "default"}, "status": status});
    api.put(PODS, pod(json!({"phase": "Running"})));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!wait.is_finished());
    api.put(
        PODS,
        pod(json!({"phase": "Running", "containerStatuses": [
            {"name": "db", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]})),
    );
    assert_eq!(
        shown(&wait.await.unwrap()),
        "failed early due to stalled resources: [StatefulSet/default/db status: 'Failed': \
         0 of 1 replicas ready, 1 pod has failed]"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_finds_no_node_fails_when_its_time_is_up() {
    let (api, hub) = setup();
    let created = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(5);
    let begun = Instant::now();
    let pod = api.put(
        PODS,
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "one", "namespace": "default", "creationTimestamp": created.to_string()},
            "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
                "reason": "Unschedulable", "message": "0/1 nodes are available"}]}}),
    );
    let outcome = hub.wait(request(vec![foreign(&pod)])).await;
    assert!(
        (8..=10).contains(&begun.elapsed().as_secs()),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(
        shown(&outcome),
        "failed early due to stalled resources: [Pod/default/one status: 'Failed': \
         no node takes it: 0/1 nodes are available: \
         pod one: Unschedulable: 0/1 nodes are available]"
    );
}

/// Does not know a kind at first, as when its CRD is on the way.
struct KnowsLater(AtomicUsize);

impl Resolve for KnowsLater {
    fn resolve<'a>(&'a self, gvk: &'a GroupVersionKind) -> BoxFuture<'a, Result<Resolved, ResolveError>> {
        if self.0.fetch_add(1, Ordering::Relaxed) < 3 {
            return Box::pin(async { Err("the server does not serve the kind".into()) });
        }
        ByRule.resolve(gvk)
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_yet_is_waited_for() {
    let api = FakeApi::default();
    let hub = Hub::new(api.client(), Arc::new(KnowsLater(AtomicUsize::new(0))));
    let web = api.put(NAMED_DEPLOYMENTS, deployment("web", 3));
    let patient = start(&hub, request(vec![foreign(&web)]));
    let hasty = WaitRequest {
        timeout: Duration::from_secs(1),
        ..request(vec![foreign(&web)])
    };
    assert_eq!(
        shown(&hub.wait(hasty).await),
        "timeout waiting for: [Deployment/default/web status: 'Unknown': the server does not serve the kind]"
    );
    assert_eq!(patient.await.unwrap(), Outcome::Healthy);
}

struct Panics;

impl Resolve for Panics {
    fn resolve<'a>(&'a self, _: &'a GroupVersionKind) -> BoxFuture<'a, Result<Resolved, ResolveError>> {
        panic!("as a bug would")
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_watch_ends_its_waits_and_leaves_nothing_behind() {
    let hub = Hub::new(FakeApi::default().client(), Arc::new(Panics));
    let text = shown(&hub.wait(request(vec![foreign(&deployment("web", 1))])).await);
    assert!(
        text.ends_with("status: 'Unknown': the watch has ended]"),
        "{text}"
    );
    assert_eq!(hub.open_watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_namespaced_object_needs_a_namespace() {
    let (api, hub) = setup();
    let mut target = foreign(&deployment("web", 1));
    target.id.namespace.clear();
    let text = shown(&hub.wait(request(vec![target])).await);
    assert!(
        text.ends_with("its kind is namespaced, but no namespace is given]"),
        "{text}"
    );
    assert_eq!(api.log().len(), 0);
}
