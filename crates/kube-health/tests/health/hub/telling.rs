//! Tests of the progress reports of a wait, and of the causes that it finds.

use super::*;

/// Collects the reports of a wait, with the seconds after which they came.
async fn tellings(hub: &Hub, request: WaitRequest) -> (Vec<(u64, String)>, Outcome) {
    let begun = Instant::now();
    let mut tellings = Vec::new();
    let outcome = hub
        .wait_telling(request, |report| {
            tellings.push((begun.elapsed().as_secs(), report.to_string()));
        })
        .await;
    (tellings, outcome)
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_goes_on_tells_what_it_waits_for_and_only_what_is_new() {
    let (api, hub) = setup();
    let web = api.put(DEPLOYMENTS, deployment("web", 1));
    let feed = api.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(20)).await;
        feed.put(DEPLOYMENTS, deployment("web", 2));
    });
    let (told, outcome) = tellings(&hub, request(vec![applied(&web)])).await;
    assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
    let told: Vec<_> = told.iter().map(|(at, text)| (*at, text.as_str())).collect();
    assert_eq!(
        told,
        [
            (
                5,
                "waiting for: [Deployment/default/web status: 'InProgress': 1 of 3 replicas available]"
            ),
            (
                35,
                "waiting for: [Deployment/default/web status: 'InProgress': 2 of 3 replicas available]"
            ),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_not_late_for_a_look_that_hangs() {
    let (api, hub) = setup();
    let web = api.put(DEPLOYMENTS, deployment("web", 1));
    api.hang("/apis/apps/v1/namespaces/default/deployments/web");
    let feed = api.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(6)).await;
        feed.put(DEPLOYMENTS, deployment("web", 3));
    });
    let begun = Instant::now();
    let (told, outcome) = tellings(&hub, request(vec![applied(&web)])).await;
    assert_eq!((told, outcome), (vec![], Outcome::Healthy));
    assert_eq!(begun.elapsed().as_secs(), 6);
}

#[tokio::test(start_paused = true)]
async fn pods_that_may_not_be_listed_are_named_as_what_is_lacking() {
    let (api, hub) = setup();
    let mut web = deployment("web", 1);
    web["spec"]["selector"] = json!({"matchLabels": {"app": "web"}});
    api.put(NAMED_DEPLOYMENTS, web.clone());
    let web = api.put(DEPLOYMENTS, web);
    api.refuse("/apis/apps/v1/namespaces/default/replicasets", 403);
    api.refuse(PODS, 403);
    let outcome = hub.wait(request(vec![applied(&web)])).await;
    assert_eq!(
        shown(&outcome),
        "timeout waiting for: [Deployment/default/web status: 'InProgress': 1 of 3 replicas available: \
         the cause cannot be looked up: user cannot use /apis/apps/v1/namespaces/default/replicasets]"
    );
    // Who may look at Pods only is told what they tell.
    api.refuse(PODS, 0);
    api.put(
        PODS,
        json!({"metadata": {"name": "web-1", "namespace": "default", "uid": "web-1"},
            "status": {"phase": "Failed", "reason": "Evicted"}}),
    );
    let outcome = hub.wait(request(vec![applied(&web)])).await;
    assert!(
        shown(&outcome).ends_with("1 of 3 replicas available: pod web-1: Evicted]"),
        "{}",
        shown(&outcome)
    );
}

#[tokio::test(start_paused = true)]
async fn the_newest_job_of_a_cron_job_is_looked_at() {
    let (api, hub) = setup();
    let failed_pod = json!({"metadata": {"name": "run-2", "namespace": "default", "uid": "pod",
        "ownerReferences": [{"uid": "new"}]},
        "status": {"phase": "Failed", "containerStatuses": [
            {"name": "main", "state": {"terminated": {"exitCode": 2}}}]}});
    api.put(PODS, failed_pod);
    for (uid, created) in [("old", "2026-01-01T00:00:00Z"), ("new", "2026-01-02T00:00:00Z")] {
        api.put(
            "/apis/batch/v1/namespaces/default/jobs",
            json!({"metadata": {"name": uid, "namespace": "default", "uid": uid, "creationTimestamp": created,
                "ownerReferences": [{"uid": "cron"}]},
                "spec": {"selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}}}),
        );
    }
    let cron_job = json!({"apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": "nightly", "namespace": "default", "uid": "cron", "generation": 2},
        "status": {"observedGeneration": 1}});
    api.put("/apis/batch/v1/namespaces/default/cronjobs", cron_job.clone());
    let outcome = hub.wait(request(vec![foreign(&cron_job)])).await;
    assert!(
        shown(&outcome).ends_with(": pod run-2 container main: exit code 2]"),
        "{}",
        shown(&outcome)
    );
}

#[tokio::test(start_paused = true)]
async fn of_other_kinds_the_last_fresh_warning_is_told_unless_the_object_says_it_itself() {
    const EVENTS: &str = "/api/v1/namespaces/default/events";
    let (api, hub) = setup();
    let now = jiff::Timestamp::now().to_string();
    for (message, kind, time, group, end) in [
        (
            "",
            "Warning",
            now.as_str(),
            "example.com/v1",
            "not ready: Sync: no licence]",
        ),
        (
            "no licence",
            "Warning",
            &now,
            "example.com/v1",
            "'InProgress': no licence]",
        ),
        ("", "Normal", &now, "example.com/v1", "not ready]"),
        (
            "",
            "Warning",
            "2026-01-01T00:00:00Z",
            "example.com/v1",
            "not ready]",
        ),
        ("", "Warning", &now, "v1", "not ready]"),
    ] {
        let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing",
            "metadata": {"name": "thing", "namespace": "default", "uid": "thing", "labels": owner()},
            "status": {"conditions": [{"type": "Ready", "status": "False", "message": message}]}});
        let thing = api.put("/apis/example.com/v1/things", thing);
        api.put(
            EVENTS,
            json!({"metadata": {"name": "event", "namespace": "default"}, "type": kind, "reason": "Sync",
                "message": "no licence", "lastTimestamp": time,
                "involvedObject": {"apiVersion": group, "name": "thing"}}),
        );
        let outcome = hub.wait(request(vec![applied(&thing)])).await;
        assert!(
            shown(&outcome).ends_with(end),
            "{end} is not at the end of {}",
            shown(&outcome)
        );
    }
    let asked = "involvedObject.kind%3DThing%2CinvolvedObject.name%3Dthing";
    assert!(
        api.log().iter().any(|line| line.contains(asked)),
        "{:?}",
        api.log()
    );
}
