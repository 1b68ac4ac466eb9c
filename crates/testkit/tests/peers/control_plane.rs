//! A control plane in which things really happen.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use testkit::objects;
use testkit::process::Process;
use testkit::{ControlPlane, Options, wait_for, wait_until_gone};

const PATIENCE: Duration = Duration::from_secs(30);

fn deployment(namespace: &str, name: &str, outcome: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name, "testkit.windlass.dev/outcome": outcome}},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{"name": "main", "image": "example.com/app:1"}],
                },
            },
        },
    })
}

#[tokio::test]
async fn a_deployment_becomes_available_and_its_pods_go_with_it() {
    let control_plane = ControlPlane::shared().await.unwrap();
    println!("the control plane started in {:?}", control_plane.start_time());
    let namespace = control_plane.namespace("deployment").await.unwrap();
    let client = control_plane.client();
    objects::apply(&client, &deployment(&namespace, "web", "runs"))
        .await
        .unwrap();

    let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
    let available = |deployment: &Deployment| {
        deployment
            .status
            .as_ref()
            .is_some_and(|status| status.available_replicas == Some(2))
    };
    wait_for(&deployments, "web", available, PATIENCE).await.unwrap();

    deployments
        .delete("web", &DeleteParams::foreground())
        .await
        .unwrap();
    wait_until_gone(&deployments, "web", PATIENCE).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_pod_with_a_bad_outcome_says_so_in_its_container_status() {
    let control_plane = ControlPlane::shared().await.unwrap();
    let namespace = control_plane.namespace("outcome").await.unwrap();
    let client = control_plane.client();
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    for (outcome, reason) in [
        ("image-pull-error", "ImagePullBackOff"),
        ("crash-loop", "CrashLoopBackOff"),
    ] {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": outcome, "labels": {"testkit.windlass.dev/outcome": outcome}},
            "spec": {"containers": [{"name": "main", "image": "example.com/app:1"}]},
        }))
        .unwrap();
        pods.create(&PostParams::default(), &pod).await.unwrap();
        let waits = |pod: &Pod| {
            let status = serde_json::to_value(&pod.status).unwrap();
            status.pointer("/containerStatuses/0/state/waiting/reason") == Some(&json!(reason))
        };
        wait_for(&pods, outcome, waits, PATIENCE).await.unwrap();
    }
}

#[tokio::test]
async fn a_job_completes_or_fails_as_its_label_asks() {
    let control_plane = ControlPlane::shared().await.unwrap();
    let namespace = control_plane.namespace("job").await.unwrap();
    let jobs: Api<Job> = Api::namespaced(control_plane.client(), &namespace);
    for (outcome, condition) in [("succeeds", "Complete"), ("job-failure", "Failed")] {
        let job: Job = serde_json::from_value(json!({
            "metadata": {"name": outcome},
            "spec": {
                "backoffLimit": 0,
                "template": {
                    "metadata": {"labels": {"testkit.windlass.dev/outcome": outcome}},
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{"name": "main", "image": "example.com/job:1"}],
                    },
                },
            },
        }))
        .unwrap();
        jobs.create(&PostParams::default(), &job).await.unwrap();
        let ended = |job: &Job| {
            let conditions = job
                .status
                .as_ref()
                .and_then(|status| status.conditions.as_deref())
                .unwrap_or_default();
            conditions
                .iter()
                .any(|given| given.type_ == condition && given.status == "True")
        };
        wait_for(&jobs, outcome, ended, PATIENCE).await.unwrap();
    }
}

#[tokio::test]
async fn a_deleted_namespace_goes_with_everything_in_it() {
    let control_plane = ControlPlane::shared().await.unwrap();
    let namespace = control_plane.namespace("gone").await.unwrap();
    let client = control_plane.client();
    objects::apply(&client, &deployment(&namespace, "web", "pending"))
        .await
        .unwrap();
    control_plane.delete_namespace(&namespace).await.unwrap();
    wait_until_gone(&Api::<Namespace>::all(client), &namespace, PATIENCE)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_time_out_shows_what_was_seen_last() {
    let control_plane = ControlPlane::shared().await.unwrap();
    let namespaces: Api<Namespace> = Api::all(control_plane.client());
    let waited = wait_for(&namespaces, "default", |_| false, Duration::from_millis(300)).await;
    let message = waited.unwrap_err().to_string();
    assert!(
        message.contains("default") && message.contains("Active"),
        "{message}"
    );
    let message = wait_for(&namespaces, "nobody", |_| true, Duration::from_millis(300))
        .await
        .unwrap_err()
        .to_string();
    assert!(message.contains("it does not exist"), "{message}");
    let message = wait_until_gone(&namespaces, "default", Duration::from_millis(300))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("to be gone") && message.contains("Active"),
        "{message}"
    );
}

#[tokio::test]
async fn the_api_server_alone_counts_our_requests_and_runs_nothing() {
    let control_plane = ControlPlane::start(Options::api_server_only()).await.unwrap();
    let namespace = control_plane.namespace("wire").await.unwrap();
    let client = control_plane.client();
    let before = control_plane.api_metrics().await.unwrap();
    objects::apply(&client, &deployment(&namespace, "web", "runs"))
        .await
        .unwrap();
    let deployments: Api<Deployment> = Api::namespaced(client, &namespace);
    for _ in 0..3 {
        deployments.get("web").await.unwrap();
    }
    let counted = control_plane.api_metrics().await.unwrap().since(&before);
    assert_eq!(counted.count("APPLY", "deployments"), 1, "{counted:?}");
    assert_eq!(counted.count("GET", "deployments"), 3, "{counted:?}");
    let names: Vec<&str> = control_plane.processes().iter().map(Process::name).collect();
    assert_eq!(names, ["kube-apiserver", "etcd"]);
}

#[tokio::test]
async fn dropping_a_control_plane_ends_its_processes_and_removes_its_files() {
    let control_plane = ControlPlane::start(Options::api_server_only()).await.unwrap();
    let directory = control_plane.directory().unwrap().to_owned();
    let pids: Vec<u32> = control_plane.processes().iter().map(Process::pid).collect();
    assert!(directory.join("kubeconfig").is_file());
    drop(control_plane);
    assert!(!directory.exists());
    for pid in pids {
        assert!(
            !std::path::Path::new(&format!("/proc/{pid}")).exists(),
            "{pid} still runs"
        );
    }
}
