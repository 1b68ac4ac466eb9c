//! Causes: the sentence for each thing that goes wrong in practice.

use kube_health::why::{Evidence, Kind, first_cause};
use serde_json::{Value, json};

fn pod(status: Value) -> Value {
    json!({
        "kind": "Pod", "metadata": {"name": "web-1", "uid": "pod"},
        "spec": {"containers": [{"name": "app", "image": "nginx:nope"}]},
        "status": status
    })
}

fn container(state: &Value) -> Value {
    let mut container = json!({"name": "app", "ready": false, "restartCount": 4});
    container
        .as_object_mut()
        .unwrap()
        .extend(state.as_object().unwrap().clone());
    container
}

fn waiting(reason: &str, message: &str) -> Value {
    container(&json!({"state": {"waiting": {"reason": reason, "message": message}}}))
}

fn event(uid: &str, kind: &str, reason: &str, message: &str, time: &str) -> Value {
    json!({"involvedObject": {"uid": uid}, "type": kind, "reason": reason, "message": message, "lastTimestamp": time})
}

#[track_caller]
fn check(evidence: Evidence, cause: &str) {
    let told = first_cause(&evidence).map(|cause| cause.text);
    assert_eq!(told.unwrap_or_default(), cause);
}

#[test]
fn containers_that_cannot_start_are_named_with_their_reason() {
    let with = |container: Value| Evidence {
        pods: vec![pod(json!({"phase": "Pending", "containerStatuses": [container]}))],
        ..Evidence::default()
    };
    check(
        with(waiting("ImagePullBackOff", "not found")),
        "pod web-1 container app: ImagePullBackOff (image nginx:nope): not found",
    );
    check(
        with(waiting(
            "ErrImagePull",
            "failed to pull \"nginx:nope\":\n  not found",
        )),
        "pod web-1 container app: ErrImagePull: failed to pull \"nginx:nope\": not found",
    );
    check(
        with(waiting("CreateContainerConfigError", "secret \"db\" not found")),
        "pod web-1 container app: CreateContainerConfigError: secret \"db\" not found",
    );
}

#[test]
fn crashes_are_told_with_the_last_exit() {
    let with = |phase: &str, container: Value| Evidence {
        pods: vec![pod(json!({"phase": phase, "containerStatuses": [container]}))],
        ..Evidence::default()
    };
    let last = json!({"terminated": {"exitCode": 1, "reason": "Error", "message": "no such table\nusers"}});
    check(
        with(
            "Running",
            container(&json!({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": last})),
        ),
        "pod web-1 container app: CrashLoopBackOff after 4 restarts: exit code 1 (Error): no such table users",
    );
    check(
        with(
            "Failed",
            container(&json!({"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}})),
        ),
        "pod web-1 container app: exit code 137 (OOMKilled)",
    );
}

#[test]
fn init_containers_count() {
    let init = json!({"name": "migrate", "state": {"terminated": {"exitCode": 2}}});
    check(
        Evidence {
            pods: vec![pod(json!({"phase": "Pending", "initContainerStatuses": [init],
                "containerStatuses": [waiting("PodInitializing", "")]}))],
            ..Evidence::default()
        },
        "pod web-1 init container migrate: exit code 2",
    );
    check(
        Evidence {
            pods: vec![pod(json!({"phase": "Pending",
                "initContainerStatuses": [{"name": "migrate", "state": {"running": {}}}],
                "containerStatuses": [waiting("PodInitializing", "")]}))],
            ..Evidence::default()
        },
        "pod web-1 init container migrate: still running",
    );
}

#[test]
fn a_pod_without_a_node_is_told_in_the_schedulers_words_with_its_claim() {
    let unscheduled = pod(
        json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "pod has unbound immediate PersistentVolumeClaims"}]}),
    );
    let claim = json!({"kind": "PersistentVolumeClaim", "metadata": {"name": "data", "uid": "claim"},
        "status": {"phase": "Pending"}});
    check(
        Evidence {
            pods: vec![unscheduled],
            claims: vec![claim],
            events: vec![event(
                "claim",
                "Warning",
                "ProvisioningFailed",
                "storageclass \"x\" not found",
                "",
            )],
            ..Evidence::default()
        },
        "pod web-1: Unschedulable: pod has unbound immediate PersistentVolumeClaims: \
         claim data is Pending: ProvisioningFailed: storageclass \"x\" not found",
    );
}

#[test]
fn what_only_events_know_is_read_from_the_last_warning_on_the_pod() {
    let creating = pod(json!({"phase": "Pending", "containerStatuses": [waiting("ContainerCreating", "")]}));
    let events = vec![
        event(
            "pod",
            "Warning",
            "FailedMount",
            "secret \"tls\" not found",
            "2026-01-01T00:00:09Z",
        ),
        event(
            "pod",
            "Warning",
            "FailedMount",
            "an older one",
            "2026-01-01T00:00:01Z",
        ),
        event("pod", "Normal", "Scheduled", "to a node", "2026-01-01T00:00:10Z"),
        event(
            "other",
            "Warning",
            "FailedMount",
            "another pod's",
            "2026-01-01T00:00:11Z",
        ),
    ];
    check(
        Evidence {
            pods: vec![creating],
            events,
            ..Evidence::default()
        },
        "pod web-1: ContainerCreating: FailedMount: secret \"tls\" not found",
    );
}

#[test]
fn a_pod_that_is_not_ready_is_told_with_its_probe_or_its_gate() {
    let running = container(&json!({"state": {"running": {}}}));
    check(
        Evidence {
            pods: vec![pod(json!({"phase": "Running", "containerStatuses": [running],
                "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}]}))],
            events: vec![
                event(
                    "pod",
                    "Warning",
                    "Unhealthy",
                    "Readiness probe failed: 503",
                    "2026-01-01T00:00:01Z",
                ),
                event(
                    "pod",
                    "Warning",
                    "BackOff",
                    "later, and beside the point",
                    "2026-01-01T00:00:09Z",
                ),
            ],
            ..Evidence::default()
        },
        "pod web-1 container app: running but not ready: Unhealthy: Readiness probe failed: 503",
    );
    check(
        Evidence {
            pods: vec![pod(
                json!({"phase": "Running", "containerStatuses": [{"name": "app", "ready": true,
                "state": {"running": {}}}], "conditions": [{"type": "Ready", "status": "False",
                "reason": "ReadinessGatesNotReady", "message": "gate \"lb\" does not exist"}]}),
            )],
            ..Evidence::default()
        },
        "pod web-1: ReadinessGatesNotReady: gate \"lb\" does not exist",
    );
}

#[test]
fn pods_that_cannot_be_created_are_told_by_condition_or_event() {
    let message = "pods \"web-\" is forbidden: error looking up service account default/web: not found";
    check(
        Evidence {
            child: Some(
                json!({"status": {"conditions": [{"type": "ReplicaFailure", "status": "True",
                "reason": "FailedCreate", "message": message}]}}),
            ),
            ..Evidence::default()
        },
        &format!("pods cannot be created: {message}"),
    );
    check(
        Evidence {
            workload: json!({"kind": "StatefulSet", "metadata": {"uid": "db"}}),
            events: vec![event("db", "Warning", "FailedCreate", message, "")],
            ..Evidence::default()
        },
        &format!("pods cannot be created: {message}"),
    );
}

#[test]
fn of_many_pods_the_one_that_explains_most_is_named() {
    let named = |name: &str, status: Value| {
        let mut pod = pod(status);
        pod["metadata"]["name"] = json!(name);
        pod
    };
    let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    let crashing = json!({"phase": "Running", "containerStatuses": [waiting("CrashLoopBackOff", "")]});
    let pods = vec![
        named("a", ready),
        named(
            "b",
            json!({"phase": "Running", "containerStatuses": [container(&json!({"state": {"running": {}}}))]}),
        ),
        named("d", crashing.clone()),
        named("c", crashing),
        named(
            "e",
            json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}),
        ),
    ];
    check(
        Evidence {
            pods: pods.clone(),
            ..Evidence::default()
        },
        "pod c container app: CrashLoopBackOff after 4 restarts",
    );
    check(
        Evidence {
            pods: vec![pods[0].clone(), pods[4].clone()],
            ..Evidence::default()
        },
        "pod e: Evicted: low on memory",
    );
    assert_eq!(
        first_cause(&Evidence {
            pods: vec![pods[0].clone()],
            ..Evidence::default()
        }),
        None
    );
}

#[test]
fn a_claim_that_waits_says_for_what() {
    check(
        Evidence {
            workload: json!({"kind": "PersistentVolumeClaim", "metadata": {"uid": "claim"}}),
            events: vec![event(
                "claim",
                "Normal",
                "WaitForFirstConsumer",
                "waiting for a pod",
                "",
            )],
            ..Evidence::default()
        },
        "WaitForFirstConsumer: waiting for a pod",
    );
}

/// Sentence, word, Pod and container of the first cause.
#[track_caller]
fn check_whole(evidence: Evidence, kind: Kind, place: (Option<&str>, Option<&str>), cause: &str) {
    let told = first_cause(&evidence).unwrap();
    assert_eq!(told.text, cause);
    let told_place = (told.pod.as_deref(), told.container.as_deref());
    assert_eq!((told.kind, told_place), (kind, place), "{cause}");
}

fn one(status: Value) -> Evidence {
    Evidence {
        pods: vec![pod(status)],
        ..Evidence::default()
    }
}

const IN_APP: (Option<&str>, Option<&str>) = (Some("web-1"), Some("app"));

#[test]
fn each_cause_has_a_word_and_a_place() {
    let pending = |container: Value| one(json!({"phase": "Pending", "containerStatuses": [container]}));
    check_whole(
        pending(waiting(
            "InvalidImageName",
            "couldn't parse image name \"nginx:nope\"",
        )),
        Kind::ImagePull,
        IN_APP,
        "pod web-1 container app: InvalidImageName: couldn't parse image name \"nginx:nope\"",
    );
    for (message, kind) in [
        ("configmap \"settings\" not found", Kind::MissingConfig),
        ("couldn't find key url in Secret default/db", Kind::MissingConfig),
        (
            "container has runAsNonRoot and image will run as root",
            Kind::ContainerConfig,
        ),
    ] {
        check_whole(
            pending(waiting("CreateContainerConfigError", message)),
            kind,
            IN_APP,
            &format!("pod web-1 container app: CreateContainerConfigError: {message}"),
        );
    }
    let init = json!({"name": "migrate", "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 3, "reason": "Error", "message": "no database"}}});
    check_whole(
        one(json!({"phase": "Pending", "initContainerStatuses": [init],
            "containerStatuses": [waiting("PodInitializing", "")]})),
        Kind::Crash,
        (Some("web-1"), Some("migrate")),
        "pod web-1 init container migrate: CrashLoopBackOff after 2 restarts: exit code 3 (Error): no database",
    );
    check_whole(
        one(json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"})),
        Kind::PodFailed,
        (Some("web-1"), None),
        "pod web-1: Evicted: low on memory",
    );
}

#[test]
fn a_back_off_is_explained_by_what_the_registry_said() {
    let events = vec![
        event(
            "pod",
            "Warning",
            "Failed",
            "Failed to pull image \"nginx:nope\": 401 Unauthorized",
            "2026-01-01T00:00:01Z",
        ),
        event(
            "pod",
            "Warning",
            "Failed",
            "Error: ImagePullBackOff",
            "2026-01-01T00:00:09Z",
        ),
    ];
    let status = |message: &str| json!({"phase": "Pending", "containerStatuses": [waiting("ImagePullBackOff", message)]});
    check_whole(
        Evidence {
            events: events.clone(),
            ..one(status("Back-off pulling image \"nginx:nope\""))
        },
        Kind::ImagePull,
        IN_APP,
        "pod web-1 container app: ImagePullBackOff: Back-off pulling image \"nginx:nope\": \
         Failed: Failed to pull image \"nginx:nope\": 401 Unauthorized",
    );
    let explained = "Back-off pulling image \"nginx:nope\": ErrImagePull: 401 Unauthorized";
    check_whole(
        Evidence {
            events,
            ..one(status(explained))
        },
        Kind::ImagePull,
        IN_APP,
        &format!("pod web-1 container app: ImagePullBackOff: {explained}"),
    );
}

#[test]
fn too_little_memory_is_told_with_its_limit() {
    let killed = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
    let mut looping = waiting("CrashLoopBackOff", "");
    looping["lastState"] = killed.clone();
    let running = container(&json!({"state": {"running": {}}, "lastState": killed}));
    for (container, told) in [
        (looping, "CrashLoopBackOff after 4 restarts"),
        (running, "running but not ready after 4 restarts"),
    ] {
        let mut pod = pod(json!({"phase": "Running", "containerStatuses": [container]}));
        pod["spec"]["containers"][0]["resources"] = json!({"limits": {"memory": "64Mi"}});
        check_whole(
            Evidence {
                pods: vec![pod],
                ..Evidence::default()
            },
            Kind::OutOfMemory,
            IN_APP,
            &format!("pod web-1 container app: {told}: exit code 137 (OOMKilled, memory limit 64Mi)"),
        );
    }
}

#[test]
fn a_container_that_its_probe_ended_is_told_with_the_probe() {
    let mut looping = waiting("CrashLoopBackOff", "");
    looping["lastState"] = json!({"terminated": {"exitCode": 137, "reason": "Error"}});
    let probe = event(
        "pod",
        "Warning",
        "Unhealthy",
        "Liveness probe failed: HTTP 500",
        "",
    );
    check_whole(
        Evidence {
            events: vec![probe],
            ..one(json!({"phase": "Running", "containerStatuses": [looping]}))
        },
        Kind::Probe,
        IN_APP,
        "pod web-1 container app: CrashLoopBackOff after 4 restarts: exit code 137 (Error): \
         Unhealthy: Liveness probe failed: HTTP 500",
    );
}

#[test]
fn a_volume_whose_secret_is_missing_is_a_missing_secret() {
    let mount = |message: &str| Evidence {
        events: vec![event("pod", "Warning", "FailedMount", message, "")],
        ..one(json!({"phase": "Pending", "containerStatuses": [waiting("ContainerCreating", "")]}))
    };
    for (message, kind) in [
        (
            "MountVolume.SetUp failed for volume \"tls\" : secret \"tls\" not found",
            Kind::MissingConfig,
        ),
        ("MountVolume.MountDevice failed: timed out", Kind::Volume),
    ] {
        let told = format!("pod web-1: ContainerCreating: FailedMount: {message}");
        check_whole(mount(message), kind, (Some("web-1"), None), &told);
    }
}

#[test]
fn refused_pods_are_told_apart_by_what_refused_them() {
    let refused = |message: &str| Evidence {
        child: Some(
            json!({"status": {"conditions": [{"type": "ReplicaFailure", "status": "True",
            "reason": "FailedCreate", "message": message}]}}),
        ),
        ..Evidence::default()
    };
    for (message, kind) in [
        (
            "pods \"a\" is forbidden: exceeded quota: small, requested: pods=1",
            Kind::Quota,
        ),
        (
            "admission webhook \"w.example.com\" denied the request: no",
            Kind::Admission,
        ),
        ("the server is on fire", Kind::PodsRefused),
    ] {
        let told = format!("pods cannot be created: {message}");
        check_whole(refused(message), kind, (None, None), &told);
    }
}

#[test]
fn what_may_not_be_read_is_told_when_nothing_else_is() {
    let denied =
        "pods is forbidden: User \"system:serviceaccount:team:deployer\" cannot list resource \"pods\"";
    check_whole(
        Evidence {
            denied: Some(denied.to_owned()),
            ..Evidence::default()
        },
        Kind::Unreadable,
        (None, None),
        &format!("the cause cannot be looked up: {denied}"),
    );
    check(
        Evidence {
            denied: Some(denied.to_owned()),
            ..one(json!({"phase": "Failed", "reason": "Evicted"}))
        },
        "pod web-1: Evicted",
    );
}

#[test]
fn a_long_last_message_is_cut() {
    let ended = json!({"terminated": {"exitCode": 1, "message": "x".repeat(4096)}});
    let told = first_cause(&one(
        json!({"phase": "Failed", "containerStatuses": [container(&json!({"state": ended}))]}),
    ));
    assert!(told.unwrap().text.len() < 400);
}
