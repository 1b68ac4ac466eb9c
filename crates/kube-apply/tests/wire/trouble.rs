//! Conflicts, lost connections, silence and missing permissions.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::StatusCode;
use kube_apply::managed::Live;
use kube_apply::{Action, ApplyOptions, Class, Settings};
use manifest::ObjectId;
use serde_json::json;

use crate::server::{Fate, Server, apply, owner, refuse};

fn writes(log: &[String]) -> Vec<&str> {
    log.iter()
        .map(String::as_str)
        .filter(|r| r.starts_with("DRY") || r.starts_with("APPLY"))
        .collect()
}

#[tokio::test]
async fn dry_runs_ask_for_metadata_and_writes_for_the_whole_when_it_is_wanted() {
    let server = Server::default();
    let metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let engine = server.engine();
    apply(&engine, &["a"], &ApplyOptions::default()).await.unwrap();
    assert_eq!(writes(&server.log()), ["DRY a", "APPLY a"]);
    assert_eq!(server.accepts(), [metadata, metadata]);
    let options = ApplyOptions {
        want_live: true,
        ..ApplyOptions::default()
    };
    let applied = apply(&engine, &["a", "b"], &options).await.unwrap();
    assert_eq!(server.accepts(), [metadata, "application/json"]);
    assert_eq!(applied.changes[1].live.as_ref().unwrap()["data"]["key"], "value");
}

#[tokio::test(start_paused = true)]
async fn conflicts_and_lost_connections_are_tried_again_a_few_times() {
    for (fate, class) in [(0, Class::Conflict), (1, Class::Transient)] {
        for (failures, expected) in [(2, Ok(Action::Created)), (9, Err(class))] {
            let left = AtomicUsize::new(failures);
            let server = Server::scripted(move |request| {
                let fails = request == "APPLY a"
                    && left
                        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                        .is_ok();
                match fate {
                    _ if !fails => None,
                    0 => refuse(409, "Conflict", "the object has been modified"),
                    _ => Some(Fate::ConnectionLost),
                }
            });
            let outcome = apply(&server.engine(), &["a"], &ApplyOptions::default()).await;
            let outcome = outcome
                .map(|applied| applied.changes[0].action)
                .map_err(|error| error.errors[0].class);
            assert_eq!(outcome, expected);
            assert_eq!(writes(&server.log()), ["DRY a", "APPLY a", "APPLY a", "APPLY a"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_changes_while_it_is_pruned_is_looked_at_again_after_a_pause() {
    let live = json!({"metadata": {"name": "a", "namespace": "default", "resourceVersion": "2",
        "uid": "00000000-0000-0000-0000-000000000001",
        "labels": {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}}});
    let started = tokio::time::Instant::now();
    let server = Server::scripted(move |request| match request {
        "GET a" => Some(Fate::Answer(StatusCode::OK, live.clone())),
        "DELETE a" if started.elapsed() < Duration::from_secs(2) => {
            refuse(409, "Conflict", "the object has been modified")
        }
        _ => None,
    });
    let id = ObjectId {
        group: String::new(),
        kind: "ConfigMap".into(),
        namespace: "default".into(),
        name: "a".into(),
    };
    let pruned = server
        .engine()
        .prune(&owner(), &[(id.clone(), "v1".to_owned())], &Default::default())
        .await;
    assert_eq!(pruned.deleted, [id], "{pruned:?}");
    let log = server.log();
    let deletes = log.iter().filter(|request| *request == "DELETE a").count();
    assert_eq!(deletes, 8, "{log:?}");
}

#[tokio::test]
async fn a_refusal_is_not_tried_again() {
    let server = Server::scripted(|request| {
        if request == "APPLY a" {
            refuse(403, "Forbidden", "no")
        } else {
            None
        }
    });
    let error = apply(&server.engine(), &["a", "b"], &ApplyOptions::default())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "ConfigMap/default/a apply failed (Forbidden): no\nConfigMap/default/b created"
    );
    assert_eq!(
        writes(&server.log()).iter().filter(|r| **r == "APPLY a").count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_does_not_hold_a_reconcile_for_ever() {
    let server = Server::scripted(|request| (request == "DRY a").then_some(Fate::Silence));
    let error = apply(&server.engine(), &["a"], &ApplyOptions::default())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "ConfigMap/default/a dry-run failed: the API server did not answer within 30 s"
    );
    assert!(error.is_transient());
}

#[tokio::test(start_paused = true)]
async fn all_calls_to_one_cluster_share_a_bound() {
    let server = Server::scripted(|request| request.starts_with("DRY slow").then_some(Fate::Silence));
    let engine = server.engine_with(Settings {
        requests_in_flight: 3,
        ..Settings::default()
    });
    let (first, second) = (["slow-1", "slow-2"], ["slow-3", "slow-4"]);
    let options = ApplyOptions::default();
    let both = futures::future::join(
        apply(&engine, &first, &options),
        apply(&engine, &second, &options),
    );
    let limit = std::time::Duration::from_secs(20);
    assert!(tokio::time::timeout(limit, both).await.is_err());
    assert_eq!(writes(&server.log()), ["DRY slow-1", "DRY slow-2", "DRY slow-3"]);
}

#[tokio::test]
async fn without_permission_to_watch_objects_are_applied_each_time_and_not_told_as_changed() {
    let server = Server::scripted(|request| {
        if request == "GET configmaps" {
            refuse(403, "Forbidden", "may not list")
        } else {
            None
        }
    });
    let engine = server.engine();
    for _ in 0..2 {
        apply(&engine, &["a"], &ApplyOptions::default()).await.unwrap();
        assert_eq!(writes(&server.log()), ["DRY a", "APPLY a"]);
    }
    let id = ObjectId {
        group: String::new(),
        kind: "ConfigMap".into(),
        namespace: "default".into(),
        name: "a".into(),
    };
    assert_eq!(engine.managed().live(&id), Live::Unknown);
}

#[tokio::test]
async fn a_list_that_comes_back_makes_objects_known_again() {
    let refusals = AtomicUsize::new(1);
    let server = Server::scripted(move |request| {
        let fails = request == "GET configmaps" && refusals.swap(0, Ordering::SeqCst) > 0;
        if fails {
            refuse(403, "Forbidden", "may not list")
        } else {
            None
        }
    });
    let engine = server.engine();
    apply(&engine, &["a"], &ApplyOptions::default()).await.unwrap();
    let id = ObjectId {
        group: String::new(),
        kind: "ConfigMap".into(),
        namespace: "default".into(),
        name: "a".into(),
    };
    let known = async {
        while engine.managed().live(&id) == Live::Unknown {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), known)
        .await
        .unwrap();
}
