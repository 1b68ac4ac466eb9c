//! The hub against a real API server, its controllers and its scheduler: what the in-process server can only imitate.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use kube::Client;
use kube::core::ApiResource;
use kube_health::{Hub, Outcome, Resolve, ResolveError, Resolved, Target, WaitRequest};
use manifest::{GroupVersionKind, ObjectId};
use serde_json::{Value, json};
use testkit::{ControlPlane, objects};

/// Long enough for any rollout here.
const PATIENCE: Duration = Duration::from_secs(30);
/// Long enough for the controllers to come to what cannot work.
const SHORT: Duration = Duration::from_secs(4);

/// All kinds here are namespaced and have regular plurals.
struct ByRule;

impl Resolve for ByRule {
    fn resolve<'a>(&'a self, gvk: &'a GroupVersionKind) -> BoxFuture<'a, Result<Resolved, ResolveError>> {
        let gvk = kube::core::GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind);
        let resolved = Resolved {
            resource: ApiResource::from_gvk(&gvk),
            namespaced: true,
        };
        Box::pin(async move { Ok(resolved) })
    }
}

struct Setup {
    client: Client,
    hub: Hub,
    namespace: String,
}

impl Setup {
    async fn new(purpose: &str) -> Self {
        let control_plane = ControlPlane::shared().await.unwrap();
        let client = control_plane.client();
        let hub = Hub::new(client.clone(), Arc::new(ByRule));
        Self {
            client,
            hub,
            namespace: control_plane.namespace(purpose).await.unwrap(),
        }
    }

    /// Applies an object as the controller does, and makes a target of the answer.
    async fn apply(&self, mut object: Value) -> Target {
        object["metadata"]["namespace"] = json!(self.namespace);
        object["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/name"] = json!("apps");
        let answer = serde_json::to_value(objects::apply(&self.client, &object).await.unwrap()).unwrap();
        let (group, version) = object["apiVersion"]
            .as_str()
            .unwrap()
            .split_once('/')
            .unwrap_or(("", "v1"));
        Target {
            id: ObjectId {
                group: group.to_owned(),
                kind: object["kind"].as_str().unwrap().to_owned(),
                namespace: self.namespace.clone(),
                name: object["metadata"]["name"].as_str().unwrap().to_owned(),
            },
            version: version.to_owned(),
            labelled: true,
            minimum_generation: answer["metadata"]["generation"].as_i64(),
            uid: answer["metadata"]["uid"].as_str().map(str::to_owned),
            initial: Some(answer),
        }
    }

    async fn wait(&self, objects: Vec<Target>, timeout: Duration) -> Outcome {
        self.hub
            .wait(WaitRequest {
                objects,
                timeout,
                fail_fast: true,
                ..WaitRequest::default()
            })
            .await
    }

    /// Waits for objects that will not become healthy, and returns the report without the namespace's name.
    async fn report(&self, objects: Vec<Value>) -> String {
        let mut targets = Vec::new();
        for object in objects {
            targets.push(self.apply(object).await);
        }
        let outcome = self.wait(targets, SHORT).await;
        outcome
            .report()
            .unwrap()
            .to_string()
            .replace(&self.namespace, "ns")
    }
}

fn workload(kind: &str, name: &str, outcome: &str, pod: Value) -> Value {
    let mut spec = json!({
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "app", "image": "example.com/app:nope"}]
    });
    spec.as_object_mut()
        .unwrap()
        .extend(pod.as_object().unwrap().clone());
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name, "testkit.windlass.dev/outcome": outcome}}, "spec": spec
            }
        }
    })
}

fn deployment(name: &str, outcome: &str, pod: Value) -> Value {
    workload("Deployment", name, outcome, pod)
}

#[track_caller]
fn check(report: &str, parts: &[&str]) {
    for part in parts {
        assert!(report.contains(part), "{part:?} is not in {report}");
    }
}

#[tokio::test]
async fn a_rollout_is_waited_for_with_one_watch_per_kind() {
    let setup = Setup::new("rollout").await;
    let mut targets = Vec::new();
    for name in ["a", "b", "c"] {
        targets.push(setup.apply(deployment(name, "runs", json!({}))).await);
    }
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}});
    targets.push(setup.apply(config_map).await);
    let begun = Instant::now();
    assert_eq!(setup.wait(targets, PATIENCE).await, Outcome::Healthy);
    println!("rolled out in {:?}", begun.elapsed());
    assert_eq!(setup.hub.open_watches(), 1, "only Deployments had to be watched");

    // A change is not taken for done by what was there before.
    let mut changed = deployment("a", "runs", json!({}));
    changed["spec"]["replicas"] = json!(3);
    let target = setup.apply(changed).await;
    let asked = target.initial.clone().unwrap();
    assert_eq!(setup.wait(vec![target], PATIENCE).await, Outcome::Healthy);
    let (api, name) = objects::api_of(&setup.client, &asked).unwrap();
    let live = api.get(&name).await.unwrap();
    assert_eq!(live.data["status"]["availableReplicas"], 3);
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_is_named() {
    let setup = Setup::new("image").await;
    let report = setup
        .report(vec![deployment("web", "image-pull-error", json!({}))])
        .await;
    check(
        &report,
        &[
            "timeout waiting for: [Deployment/ns/web status: 'InProgress': 0 of 2 replicas available: pod web-",
            " container app: ",
            "ImagePull",
            "example.com/app:nope",
        ],
    );
}

#[tokio::test]
async fn a_crash_loop_fails_a_stateful_set_early_and_is_told() {
    let setup = Setup::new("crash").await;
    let target = setup
        .apply(workload("StatefulSet", "db", "crash-loop", json!({})))
        .await;
    let outcome = setup.wait(vec![target], PATIENCE).await;
    assert!(matches!(outcome, Outcome::Unhealthy(_)), "{outcome:?}");
    let report = outcome
        .report()
        .unwrap()
        .to_string()
        .replace(&setup.namespace, "ns");
    check(
        &report,
        &[
            "failed early due to stalled resources: [StatefulSet/ns/db status: 'Failed': ",
            "1 pod has failed: pod db-0 container app: CrashLoopBackOff",
            "exit code",
        ],
    );
}

#[tokio::test]
async fn a_missing_service_account_is_named() {
    let setup = Setup::new("account").await;
    let pod = json!({"serviceAccountName": "nobody"});
    let workloads = vec![
        deployment("web", "runs", pod.clone()),
        workload("StatefulSet", "db", "runs", pod),
    ];
    let report = setup.report(workloads).await;
    for name in ["Deployment/ns/web", "StatefulSet/ns/db"] {
        let cause = "0 of 2 replicas created: pods cannot be created: ";
        check(&report, &[&format!("{name} status: 'InProgress': {cause}")]);
    }
    assert_eq!(
        report.matches("serviceaccount \"nobody\" not found").count(),
        2,
        "{report}"
    );
}

#[tokio::test]
async fn a_pod_that_fits_nowhere_is_told_in_the_schedulers_words() {
    let setup = Setup::new("schedule").await;
    let greedy = json!({"containers": [{"name": "app", "image": "example.com/app:1",
        "resources": {"requests": {"cpu": "100000"}}}]});
    let report = setup.report(vec![deployment("web", "runs", greedy)]).await;
    check(&report, &["pod web-", ": Unschedulable: ", "Insufficient cpu"]);
}

#[tokio::test]
async fn a_claim_without_a_storage_class_is_told() {
    let setup = Setup::new("claim").await;
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "gone",
            "resources": {"requests": {"storage": "1Gi"}}}});
    let with_claim = json!({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]});
    let report = setup
        .report(vec![claim, deployment("web", "runs", with_claim)])
        .await;
    check(
        &report,
        &[
            "PersistentVolumeClaim/ns/data status: 'InProgress': not bound, its phase is Pending: \
             ProvisioningFailed: storageclass",
            ": Unschedulable: ",
            "claim data is Pending: ProvisioningFailed: storageclass",
        ],
    );
}

#[tokio::test]
async fn jobs_are_done_when_complete_or_cleaned_up_and_fail_with_their_reason() {
    let setup = Setup::new("job").await;
    let job = |name: &str, outcome: &str| {
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"backoffLimit": 0, "ttlSecondsAfterFinished": 0, "template": {
                "metadata": {"labels": {"testkit.windlass.dev/outcome": outcome}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "app", "image": "example.com/job:1"}]}}}})
    };
    let cleaned = setup.apply(job("cleaned", "succeeds")).await;
    let request = WaitRequest {
        jobs_with_ttl: [cleaned.id.clone()].into(),
        objects: vec![cleaned],
        timeout: PATIENCE,
        fail_fast: true,
        ..WaitRequest::default()
    };
    assert_eq!(setup.hub.wait(request).await, Outcome::Healthy);

    let mut failing = job("failing", "job-failure");
    failing["spec"]["ttlSecondsAfterFinished"] = json!(600);
    let target = setup.apply(failing).await;
    let outcome = setup.wait(vec![target], PATIENCE).await;
    let report = outcome.report().unwrap().to_string();
    check(
        &report,
        &[
            "failed early due to stalled resources: [Job/",
            "1 pods failed: BackoffLimitExceeded",
            "pod failing-",
        ],
    );
}

#[tokio::test]
async fn a_client_that_may_not_watch_is_told_which_permission_it_lacks() {
    let setup = Setup::new("forbidden").await;
    let mut config = ControlPlane::shared().await.unwrap().config().clone();
    config.auth_info.impersonate = Some("system:serviceaccount:team:deployer".to_owned());
    let hub = Hub::new(Client::try_from(config).unwrap(), Arc::new(ByRule));
    let target = setup.apply(deployment("web", "runs", json!({}))).await;
    let request = WaitRequest {
        objects: vec![target],
        timeout: PATIENCE,
        ..WaitRequest::default()
    };
    let report = hub.wait(request).await.report().unwrap().to_string();
    check(
        &report,
        &[
            "status: 'Unknown': cannot list and watch deployments.apps: ",
            "User \"system:serviceaccount:team:deployer\" cannot list resource \"deployments\" in API group \"apps\"",
        ],
    );
}
