//! Tests of drift: changes and deletions by others are reverted at once; additions stay.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use testkit::objects::condition;
use tokio_util::sync::CancellationToken;

use crate::world::{PATIENCE, config_map, deployment, run};

#[test]
fn an_edited_object_is_restored_and_foreign_fields_stay() {
    run("drift-edit", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[
            ("deploy/a.yaml", config_map(ns, "a", "right")),
            ("deploy/web.yaml", deployment(ns, "web", "example.com/web:1", 1)),
        ])?;
        test.deliver(&repository, json!({})).await?;

        let edit = Patch::Merge(json!({
            "metadata": {"annotations": {"theirs": "stays"}}, "data": {"key": "wrong", "foreign": "stays"},
        }));
        test.config_maps()
            .patch("a", &PatchParams::default(), &edit)
            .await?;
        let map = test.config_map_has("a", "key", "right").await?;
        ensure!(map.data.unwrap_or_default().get("foreign").map(String::as_str) == Some("stays"));
        ensure!(
            map.metadata
                .annotations
                .unwrap_or_default()
                .contains_key("theirs")
        );

        // The same for a kind with a generation, changed in the way of `kubectl scale`.
        let deployments: Api<Deployment> = Api::namespaced(test.client.clone(), ns);
        let scale = Patch::Merge(json!({"spec": {"replicas": 3}}));
        deployments.patch("web", &PatchParams::default(), &scale).await?;
        let restored = |d: &Deployment| d.spec.as_ref().and_then(|s| s.replicas) == Some(1);
        testkit::wait_for(&deployments, "web", restored, PATIENCE).await?;
        Ok(())
    });
}

#[test]
fn a_deleted_object_is_made_again() {
    run("drift-delete", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.deliver(&repository, json!({})).await?;
        for _ in 0..3 {
            let before = test.config_maps().get("a").await?.metadata.uid;
            test.config_maps().delete("a", &DeleteParams::default()).await?;
            let again = |m: &k8s_openapi::api::core::v1::ConfigMap| m.metadata.uid != before;
            testkit::wait_for(&test.config_maps(), "a", again, PATIENCE).await?;
        }
        Ok(())
    });
}

#[test]
fn what_others_own_is_no_drift() {
    run("drift-foreign", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        let object = test.deliver(&repository, json!({})).await?;
        let label = Patch::Merge(json!({"metadata": {"labels": {"theirs": "yes"}}}));
        let edited = test
            .config_maps()
            .patch("a", &PatchParams::default(), &label)
            .await?;
        // A drift that is corrected afterwards proves that the edit above has been seen and left alone.
        let drift = Patch::Merge(json!({"data": {"key": "wrong"}}));
        test.config_maps()
            .patch("a", &PatchParams::default(), &drift)
            .await?;
        let map = test.config_map_has("a", "key", "1").await?;
        ensure!(map.metadata.labels.unwrap_or_default().contains_key("theirs"));
        ensure!(edited.metadata.resource_version != map.metadata.resource_version);
        let after = test
            .ready(
                "app",
                object.data["status"]["lastAppliedRevision"]
                    .as_str()
                    .unwrap_or_default(),
            )
            .await?;
        ensure!(after.data["status"]["inventory"] == object.data["status"]["inventory"]);
        Ok(())
    });
}

#[test]
fn a_suspended_kustomization_leaves_drift_alone_until_it_is_resumed() {
    run("drift-suspend", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.deliver(&repository, json!({})).await?;
        let suspend = |yes: bool| Patch::Merge(json!({"spec": {"suspend": yes}}));
        test.kustomizations()
            .patch("app", &PatchParams::default(), &suspend(true))
            .await?;
        // A second Kustomization that is not suspended shows that the controller has gone on meanwhile.
        let drift = Patch::Merge(json!({"data": {"key": "theirs"}}));
        test.config_maps()
            .patch("a", &PatchParams::default(), &drift)
            .await?;
        test.apply(&test.kustomization("witness", json!({"namePrefix": "w-"})))
            .await?;
        test.config_map_has("w-a", "key", "1").await?;
        ensure!(test.config_maps().get("a").await?.data.unwrap_or_default()["key"] == "theirs");
        test.kustomizations()
            .patch("app", &PatchParams::default(), &suspend(false))
            .await?;
        test.config_map_has("a", "key", "1").await?;
        Ok(())
    });
}

#[test]
fn two_kustomizations_on_one_object_both_say_so() {
    run("drift-rivals", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.deliver(&repository, json!({})).await?;
        test.apply(&test.kustomization("other", json!({}))).await?;
        for (name, rival) in [("other", "app"), ("app", "other")] {
            let said = format!("; applied by others, too: ConfigMap/{ns}/a by Kustomization/{ns}/{rival}");
            let says = |object: &DynamicObject| {
                condition(object, "Ready").is_some_and(|(status, _, message)| {
                    status == "True" && message.starts_with("Applied revision: ") && message.ends_with(&said)
                })
            };
            testkit::wait_for(&test.kustomizations(), name, says, PATIENCE).await?;
        }
        // One gives it up, and the other has it alone.
        let prune = Patch::Merge(json!({"spec": {"prune": false}}));
        let kustomizations = test.kustomizations();
        kustomizations
            .patch("other", &PatchParams::default(), &prune)
            .await?;
        test.delete_kustomization("other").await?;
        let is_alone = |object: &DynamicObject| {
            condition(object, "Ready").is_some_and(|(status, _, message)| {
                status == "True" && !message.contains("applied by others")
            })
        };
        testkit::wait_for(&kustomizations, "app", is_alone, PATIENCE).await?;
        Ok(())
    });
}

/// A controller that sets a value back each time it is corrected, until it is told to stop; returns how often it did.
pub async fn fight(
    maps: Api<ConfigMap>,
    (name, key, right): (&str, &str, &str),
    stop: CancellationToken,
) -> Result<usize> {
    let wrong = Patch::Merge(json!({"data": {key: "wrong"}}));
    let bot = PatchParams {
        field_manager: Some("bot".to_owned()),
        ..PatchParams::default()
    };
    let is_corrected = |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data[key] == right);
    let mut times = 0;
    while !stop.is_cancelled() {
        maps.patch(name, &bot, &wrong).await?;
        times += 1;
        tokio::select! {
            corrected = testkit::wait_for(&maps, name, is_corrected, PATIENCE) => drop(corrected?),
            () = stop.cancelled() => {}
        }
    }
    Ok(times)
}

/// Waits for the event that says that a fight has begun.
pub async fn told_of_a_fight(client: &Client, namespace: &str) -> Result<()> {
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    let reason = ListParams::default().fields("reason=DriftRepeats");
    let told = async {
        while events.list(&reason).await?.items.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, told).await?
}

#[test]
fn who_sets_it_back_each_time_is_named_and_corrected_less_often() {
    run("drift-fight", |test| async move {
        let ns = &test.namespace;
        let files = [
            ("deploy/a.yaml", config_map(ns, "a", "right")),
            ("deploy/b.yaml", config_map(ns, "b", "1")),
        ];
        let repository = test.repository(&files)?;
        test.deliver(&repository, json!({})).await?;
        let stop = CancellationToken::new();
        let other = tokio::spawn(fight(test.config_maps(), ("a", "key", "right"), stop.clone()));
        let is_said = |object: &DynamicObject| {
            condition(object, "Ready").is_some_and(|(status, _, said)| {
                status == "True"
                    && said.contains(&format!(
                        "; changed by others again and again: ConfigMap/{ns}/a data.key, set by bot (5 times since "
                    ))
            })
        };
        testkit::wait_for(&test.kustomizations(), "app", is_said, PATIENCE).await?;
        told_of_a_fight(&test.client, ns).await?;
        // Another object is corrected at once, and with it this one.
        test.config_map_has("a", "key", "wrong").await?;
        test.config_maps().delete("b", &DeleteParams::default()).await?;
        test.config_map_has("b", "key", "1").await?;
        stop.cancel();
        let times = other.await??;
        ensure!((5..=7).contains(&times), "it was corrected {times} times");
        // It is put off, and not forgotten.
        test.config_map_has("a", "key", "right").await.map(drop)
    });
}
