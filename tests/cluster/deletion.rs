//! The end of a Kustomization, with each deletion policy, and of a source.

use anyhow::{Result, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::{wait_for, wait_until_gone};

use crate::world::{PATIENCE, Test, config_map, run};

async fn delivered(test: &Test, spec: Value) -> Result<()> {
    let repository = test.repository(&[("deploy/a.yaml", config_map(&test.namespace, "a", "1"))])?;
    test.deliver(&repository, spec).await.map(drop)
}

#[test]
fn mirror_prune_deletes_with_prune() {
    run("delete-prune", |test| async move {
        delivered(&test, json!({"deletionPolicy": "MirrorPrune", "prune": true})).await?;
        test.delete_kustomization("app").await?;
        test.config_map_gone("a").await
    });
}

#[test]
fn mirror_prune_keeps_without_prune() {
    run("delete-no-prune", |test| async move {
        delivered(&test, json!({"prune": false})).await?;
        test.delete_kustomization("app").await?;
        test.config_map_has("a", "key", "1").await.map(drop)
    });
}

#[test]
fn delete_deletes_without_prune() {
    run("delete-delete", |test| async move {
        delivered(&test, json!({"deletionPolicy": "Delete", "prune": false})).await?;
        test.delete_kustomization("app").await?;
        test.config_map_gone("a").await
    });
}

#[test]
fn orphan_keeps_with_prune() {
    run("delete-orphan", |test| async move {
        delivered(&test, json!({"deletionPolicy": "Orphan", "prune": true})).await?;
        test.delete_kustomization("app").await?;
        test.config_map_has("a", "key", "1").await.map(drop)
    });
}

#[test]
fn a_suspended_kustomization_keeps_everything() {
    run("delete-suspended", |test| async move {
        delivered(&test, json!({"deletionPolicy": "Delete"})).await?;
        let suspend = Patch::Merge(json!({"spec": {"suspend": true}}));
        test.kustomizations()
            .patch("app", &PatchParams::default(), &suspend)
            .await?;
        test.delete_kustomization("app").await?;
        test.config_map_has("a", "key", "1").await.map(drop)
    });
}

#[test]
fn wait_for_termination_goes_after_what_it_managed() {
    run("delete-wait", |test| async move {
        delivered(&test, json!({"deletionPolicy": "WaitForTermination"})).await?;
        let hold = |finalizers: Value| Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
        test.config_maps()
            .patch("a", &PatchParams::default(), &hold(json!(["example.com/hold"])))
            .await?;
        test.kustomizations()
            .delete("app", &DeleteParams::default())
            .await?;
        let terminating = |m: &k8s_openapi::api::core::v1::ConfigMap| m.metadata.deletion_timestamp.is_some();
        wait_for(&test.config_maps(), "a", terminating, PATIENCE).await?;
        ensure!(
            test.kustomizations().get_opt("app").await?.is_some(),
            "gone before what it managed"
        );
        test.config_maps()
            .patch("a", &PatchParams::default(), &hold(Value::Null))
            .await?;
        wait_until_gone(&test.kustomizations(), "app", PATIENCE).await?;
        test.no_config_map("a").await
    });
}

#[test]
fn what_another_kustomization_took_over_is_not_pruned() {
    run("hand-over", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.deliver(&repository, json!({})).await?;
        let uid = test.config_maps().get("a").await?.metadata.uid;
        // The new owner applies the same object, as after a move in the repository; then the old one goes.
        test.apply(&test.kustomization("heir", json!({}))).await?;
        test.ready("heir", &format!("main@sha1:{}", repository.resolve("main")?))
            .await?;
        test.delete_kustomization("app").await?;
        ensure!(
            test.config_maps().get("a").await?.metadata.uid == uid,
            "the object was deleted or made again"
        );
        Ok(())
    });
}

#[test]
fn a_deleted_source_takes_its_artifact_along_and_the_objects_stay() {
    run("delete-source", |test| async move {
        delivered(&test, json!({})).await?;
        let source = test.git_repositories().get("app").await?;
        let url = source.data["status"]["artifact"]["url"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        ensure!(
            reqwest::get(&url).await?.status() == 200,
            "{url} should be served"
        );
        test.git_repositories()
            .delete("app", &DeleteParams::default())
            .await?;
        wait_until_gone(&test.git_repositories(), "app", PATIENCE).await?;
        ensure!(reqwest::get(&url).await?.status() == 404, "{url} should be gone");
        test.config_map_has("a", "key", "1").await.map(drop)
    });
}
