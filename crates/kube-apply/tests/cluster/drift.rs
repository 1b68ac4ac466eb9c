//! Drift is told, and only drift.

use futures::StreamExt as _;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube_apply::What;
use serde_json::json;

use crate::fixture::{Fixture, next_drift};

#[tokio::test]
async fn edits_and_deletes_are_told_and_corrected() {
    let f = Fixture::new("drift").await;
    let mut drifts = f.engine.managed().subscribe();
    let set = [f.config_map("a", "1"), f.config_map("b", "1")];
    f.apply(&set).await;

    f.edit(
        &f.config_maps(),
        "a",
        "kubectl-edit",
        json!({"data": {"key": "wrong"}}),
    )
    .await;
    let drift = next_drift(&mut drifts).await;
    assert_eq!((drift.object.name.as_str(), drift.what), ("a", What::Modified));
    assert_eq!(drift.owner, f.owner);
    assert_eq!(
        f.apply(&set).await,
        ["ConfigMap/a configured", "ConfigMap/b unchanged"]
    );
    assert_eq!(f.config_maps().get("a").await.unwrap().data["data"]["key"], "1");

    f.config_maps()
        .delete("b", &DeleteParams::default())
        .await
        .unwrap();
    let drift = next_drift(&mut drifts).await;
    assert_eq!((drift.object.name.as_str(), drift.what), ("b", What::Deleted));
    assert_eq!(
        f.apply(&set).await,
        ["ConfigMap/a unchanged", "ConfigMap/b created"]
    );
}

#[tokio::test]
async fn what_others_may_change_is_no_drift() {
    let f = Fixture::new("quiet").await;
    let mut drifts = f.engine.managed().subscribe();
    let set = [f.deployment("mark", "nginx:1"), f.deployment("web", "nginx:1")];
    f.apply(&set).await;
    let deployments = f.api("apps/v1", "Deployment", "deployments");
    let status = Patch::Merge(json!({"status": {"observedGeneration": 1, "replicas": 1}}));
    deployments
        .patch_status("web", &PatchParams::default(), &status)
        .await
        .unwrap();
    let theirs = json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"paused": true}});
    f.edit(&deployments, "web", "some-operator", theirs).await;
    // Events of one kind come in order, so that this one shows that those were no drift.
    f.edit(
        &deployments,
        "mark",
        "some-operator",
        json!({"spec": {"replicas": 3}}),
    )
    .await;
    assert_eq!(next_drift(&mut drifts).await.object.name, "mark");
    assert_eq!(
        f.apply(&set).await,
        ["Deployment/mark configured", "Deployment/web unchanged"]
    );
    let spec = |object: kube::api::DynamicObject| object.data["spec"].clone();
    assert_eq!(spec(deployments.get("mark").await.unwrap())["replicas"], 1);
    assert_eq!(spec(deployments.get("web").await.unwrap())["paused"], true);
    assert_eq!(futures::poll!(drifts.next()), std::task::Poll::Pending);
}

#[tokio::test]
async fn a_job_that_is_deleted_after_it_finished_is_not_run_again_at_once() {
    let f = Fixture::new("ttl").await;
    let mut drifts = f.engine.managed().subscribe();
    let job = |name: &str, ttl: Option<u32>| {
        let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": f.namespace},
            "spec": {"suspend": true, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}}});
        if let Some(ttl) = ttl {
            job["spec"]["ttlSecondsAfterFinished"] = json!(ttl);
        }
        job
    };
    f.apply(&[job("expires", Some(3600)), job("mark", None)]).await;
    let jobs = f.api("batch/v1", "Job", "jobs");
    for name in ["expires", "mark"] {
        jobs.delete(name, &DeleteParams::background()).await.unwrap();
    }
    assert_eq!(next_drift(&mut drifts).await.object.name, "mark");
    assert_eq!(futures::poll!(drifts.next()), std::task::Poll::Pending);
}

#[tokio::test]
async fn our_own_writes_are_never_drift() {
    let f = Fixture::new("own").await;
    let mut drifts = f.engine.managed().subscribe();
    for round in 0..20 {
        let names = ["a", "b", "c", "d"];
        let set: Vec<_> = names
            .iter()
            .map(|name| f.config_map(name, &round.to_string()))
            .collect();
        f.apply(&set).await;
    }
    f.edit(
        &f.config_maps(),
        "d",
        "kubectl-edit",
        json!({"data": {"key": "wrong"}}),
    )
    .await;
    assert_eq!(next_drift(&mut drifts).await.object.name, "d");
    assert_eq!(futures::poll!(drifts.next()), std::task::Poll::Pending);
}

#[tokio::test]
async fn two_owners_of_one_object_do_not_fight() {
    let f = Fixture::new("fight").await;
    let mut drifts = f.engine.managed().subscribe();
    f.apply(&[f.config_map("c", "1"), f.config_map("own", "1")]).await;
    let other = f.another("other").await;
    other.apply(&[f.config_map("c", "2")]).await;
    // In order after the other owner's write.
    f.edit(
        &f.config_maps(),
        "own",
        "kubectl-edit",
        json!({"data": {"key": "wrong"}}),
    )
    .await;
    let taken = next_drift(&mut drifts).await;
    assert_eq!((taken.object.name.as_str(), taken.what), ("c", What::Taken));
    assert_eq!(taken.owner, f.owner);
    let modified = next_drift(&mut drifts).await;
    assert_eq!(
        (modified.object.name.as_str(), modified.what),
        ("own", What::Modified)
    );
    // The interval still takes it back, as in Flux.
    assert_eq!(
        f.apply(&[f.config_map("c", "1"), f.config_map("own", "1")]).await,
        ["ConfigMap/c configured", "ConfigMap/own configured"]
    );
}

#[tokio::test]
async fn an_owner_that_is_forgotten_hears_nothing_and_its_watches_end() {
    let f = Fixture::new("forget").await;
    let mut drifts = f.engine.managed().subscribe();
    f.apply(&[f.config_map("c", "1")]).await;
    let id = f.inventory(&[f.config_map("c", "1")]).await.sorted().remove(0).0;
    assert!(f.engine.managed().recorded(&id).is_some());
    f.engine.managed().forget(&f.owner);
    assert_eq!(f.engine.managed().live(&id), kube_apply::managed::Live::Unknown);
    f.edit(
        &f.config_maps(),
        "c",
        "kubectl-edit",
        json!({"data": {"key": "wrong"}}),
    )
    .await;
    f.apply(&[f.config_map("c", "1")]).await;
    assert_eq!(futures::poll!(drifts.next()), std::task::Poll::Pending);
}
