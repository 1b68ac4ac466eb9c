//! Objects that move from one Kustomization to another in one commit: they are handed over, never deleted.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject};
use serde_json::{Value, json};
use testkit::git::{Change, Repository};
use testkit::objects::{self, is_ready, text};
use testkit::{Controller, wait_for, wait_until_gone};

use crate::world::{PATIENCE, Test, config_map, inventory_of, run};

/// A Kustomization of one folder of the GitRepository `app`.
fn of_folder(test: &Test, namespace: &str, name: &str, spec: Value) -> Value {
    let object = objects::kustomization(namespace, name, ("GitRepository", "app"), &format!("./{name}"));
    let source = json!({"kind": "GitRepository", "name": "app", "namespace": test.namespace});
    objects::with_spec(objects::with_spec(object, json!({"sourceRef": source})), spec)
}

async fn uid(test: &Test, name: &str) -> Result<String> {
    test.config_maps().get(name).await?.metadata.uid.context("no uid")
}

fn labelled(owner: &str) -> impl Fn(&ConfigMap) -> bool + use<> {
    let owner = owner.to_owned();
    move |map| {
        let labels = map.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get("kustomize.toolkit.fluxcd.io/name")) == Some(&owner)
    }
}

/// Moves ConfigMap `moved` from `old` to `new` and back, and checks that it is the same object all the time.
async fn there_and_back(test: &Test, repository: &Repository, new_namespace: &str) -> Result<()> {
    let ns = &test.namespace;
    let before = uid(test, "moved").await?;
    let new: Api<DynamicObject> = objects::api(
        &test.client,
        crate::world::KUSTOMIZE,
        "Kustomization",
        new_namespace,
    );
    let file = || config_map(ns, "moved", "1");
    for (from, to) in [("old", "new"), ("new", "old")] {
        let changes = [
            Change::delete(&format!("{from}/moved.yaml")),
            Change::write(&format!("{to}/moved.yaml"), file()),
        ];
        let revision = test.push(repository, &changes).await?;
        let done = |object: &DynamicObject| {
            is_ready(object)
                && text(object, "/status/lastAppliedRevision") == revision
                && inventory_of(object).contains(&format!("{ns}_moved__ConfigMap"))
                    == (text_name(object) == to)
        };
        wait_for(&test.kustomizations(), "old", done, PATIENCE).await?;
        wait_for(&new, "new", done, PATIENCE).await?;
        let map = wait_for(&test.config_maps(), "moved", labelled(to), PATIENCE).await?;
        ensure!(
            map.metadata.uid.as_ref() == Some(&before),
            "{from} to {to}: it was made anew"
        );
    }
    Ok(())
}

fn text_name(object: &DynamicObject) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

async fn two(test: &Test, namespace: &str) -> Result<Repository> {
    let ns = &test.namespace;
    let repository = test.repository(&[
        ("old/a.yaml", config_map(ns, "a", "1")),
        ("old/moved.yaml", config_map(ns, "moved", "1")),
        ("new/b.yaml", config_map(ns, "b", "1")),
    ])?;
    test.git_source(&repository).await?;
    test.apply(&of_folder(test, ns, "old", json!({}))).await?;
    // The new one always comes after the old one: so the old one prunes first on the way there, last on the way back.
    let after = json!({"dependsOn": [{"name": "old", "namespace": ns}]});
    test.apply(&of_folder(test, namespace, "new", after)).await?;
    let new = objects::api(&test.client, crate::world::KUSTOMIZE, "Kustomization", namespace);
    wait_for(&new, "new", is_ready, PATIENCE).await?;
    Ok(repository)
}

#[test]
fn an_object_that_moves_is_handed_over_whoever_comes_first() {
    run("handover", |test| async move {
        let repository = two(&test, &test.namespace).await?;
        there_and_back(&test, &repository, &test.namespace).await
    });
}

#[test]
fn an_object_that_moves_to_a_kustomization_of_another_namespace_is_handed_over() {
    run("handover-far", |test| async move {
        let far = test.world.control_plane.namespace("handover-there").await?;
        let repository = two(&test, &far).await?;
        there_and_back(&test, &repository, &far).await
    });
}

#[test]
fn an_object_that_goes_nowhere_is_deleted_at_once() {
    run("handover-gone", |test| async move {
        let repository = two(&test, &test.namespace).await?;
        let changes = [
            Change::delete("old/moved.yaml"),
            Change::write("new/b.yaml", config_map(&test.namespace, "b", "2")),
        ];
        // The other one cannot get ready, and is not waited for: it does not make the object.
        test.kustomizations()
            .patch_metadata(
                "new",
                &Default::default(),
                &kube::api::Patch::Merge(json!({"metadata": {"annotations": {"a": "b"}}})),
            )
            .await?;
        let revision = test.push(&repository, &changes).await?;
        let object = test.ready("old", &revision).await?;
        ensure!(inventory_of(&object).len() == 1, "{:?}", inventory_of(&object));
        test.config_map_gone("moved").await
    });
}

#[test]
fn a_renamed_kustomization_hands_over_even_if_the_controller_dies_meanwhile() {
    run("handover-rename", |test| async move {
        let ns = &test.namespace;
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let mut apply = Controller::start_apply(kubeconfig, &test.world.source, test.own_shard()).await?;
        // The new one waits for something that is not there yet, so that it surely comes after the end of the old one.
        let child = |name: &str, gated: bool| {
            let object = objects::kustomization(ns, name, ("GitRepository", "app"), "./app");
            let gate = if gated {
                json!([{"name": "gate"}])
            } else {
                json!([])
            };
            test.in_own_shard(objects::with_spec(object, json!({"dependsOn": gate})))
                .to_string()
        };
        let repository = test.repository(&[
            ("parent/child.yaml", child("first", false)),
            ("app/moved.yaml", config_map(ns, "moved", "1")),
            ("gate/gate.yaml", config_map(ns, "gate", "1")),
        ])?;
        test.git_source(&repository).await?;
        let parent = of_folder(&test, ns, "parent", json!({"wait": false}));
        test.apply(&test.in_own_shard(parent)).await?;
        wait_for(&test.kustomizations(), "first", is_ready, PATIENCE).await?;
        let before = uid(&test, "moved").await?;

        test.push(
            &repository,
            &[Change::write("parent/child.yaml", child("second", true))],
        )
        .await?;
        let ending = |object: &DynamicObject| object.metadata.deletion_timestamp.is_some();
        wait_for(&test.kustomizations(), "first", ending, PATIENCE).await?;
        for _ in 0..3 {
            apply.kill();
            apply.restart().await?;
            // Nothing tells that something does not happen.
            tokio::time::sleep(Duration::from_millis(700)).await;
            ensure!(
                test.kustomizations().get_opt("first").await?.is_some(),
                "it did not wait"
            );
            ensure!(uid(&test, "moved").await? == before);
        }
        test.apply(&test.in_own_shard(of_folder(&test, ns, "gate", json!({}))))
            .await?;
        wait_for(&test.kustomizations(), "second", is_ready, PATIENCE).await?;
        wait_until_gone(&test.kustomizations(), "first", PATIENCE).await?;
        let map = test.config_maps().get("moved").await?;
        ensure!(map.metadata.uid.as_ref() == Some(&before) && labelled("second")(&map));
        test.kustomizations()
            .delete("parent", &DeleteParams::default())
            .await?;
        wait_until_gone(&test.kustomizations(), "second", PATIENCE).await?;
        test.delete_kustomization("gate").await
    });
}
