//! Suspending, resuming and asking for a reconcile, as the flux CLI does; force; and what is written when.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use testkit::git::Change;
use testkit::objects::{self, condition, text};
use testkit::{Controller, wait_for};
use tokio::time::{sleep, timeout};

use crate::world::{PATIENCE, config_map, run};

#[test]
fn a_suspended_source_does_not_move_and_a_resumed_one_catches_up() {
    run("suspend", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.deliver(&repository, json!({})).await?;
        let suspend = |yes: bool| Patch::Merge(json!({"spec": {"suspend": yes}}));
        test.git_repositories()
            .patch("app", &PatchParams::default(), &suspend(true))
            .await?;
        let requests = test.world.git.requests(repository.name()).len();
        let revision = test
            .push(
                &repository,
                &[Change::write("deploy/a.yaml", config_map(ns, "a", "2"))],
            )
            .await?;
        // The request for a reconcile is answered, and nothing is fetched for it.
        test.apply(&test.kustomization("witness", json!({"namePrefix": "w-"})))
            .await?;
        test.config_map_has("w-a", "key", "1").await?;
        ensure!(test.world.git.requests(repository.name()).len() == requests);
        test.git_repositories()
            .patch("app", &PatchParams::default(), &suspend(false))
            .await?;
        test.ready("app", &revision).await?;
        test.config_map_has("a", "key", "2").await.map(drop)
    });
}

#[test]
fn a_requested_reconcile_is_acknowledged() {
    run("requested", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.deliver(&repository, json!({})).await?;
        let token = objects::poke(&test.kustomizations(), "app").await?;
        let handled = |o: &_| text(o, "/status/lastHandledReconcileAt") == token && objects::is_ready(o);
        wait_for(&test.kustomizations(), "app", handled, PATIENCE)
            .await
            .map(drop)
    });
}

#[test]
fn a_first_sync_takes_at_most_three_status_patches() {
    run("patches", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[
            ("deploy/a.yaml", config_map(ns, "a", "1")),
            (
                "deploy/web.yaml",
                crate::world::deployment(ns, "web", "example.com/web:1", 1),
            ),
        ])?;
        test.git_source(&repository).await?;
        wait_for(&test.git_repositories(), "app", objects::is_ready, PATIENCE).await?;
        let parameters = kube::runtime::watcher::Config::default();
        let events = kube::runtime::watcher(test.kustomizations(), parameters);
        test.apply(&test.kustomization("app", json!({}))).await?;
        let mut versions = std::collections::BTreeSet::new();
        let mut events = std::pin::pin!(events);
        use futures::StreamExt as _;
        let count = async {
            while let Some(event) = events.next().await {
                let (kube::runtime::watcher::Event::Apply(object)
                | kube::runtime::watcher::Event::InitApply(object)) = event?
                else {
                    continue;
                };
                let status = object.data["status"].clone();
                versions.insert(status.to_string());
                if objects::is_ready(&object) {
                    break;
                }
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(PATIENCE, count).await??;
        // What the definition sets by default is no one's patch.
        versions.retain(|status| status != "null" && status != r#"{"observedGeneration":-1}"#);
        ensure!(
            versions.len() <= 3,
            "{} statuses were written: {versions:#?}",
            versions.len()
        );
        Ok(())
    });
}

#[test]
fn an_immutable_field_is_told_and_force_recreates() {
    run("force", |test| async move {
        let ns = &test.namespace;
        let job = |image: &str| {
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": ns},
                "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": image}]}}}})
            .to_string()
        };
        let repository = test.repository(&[("deploy/j.yaml", job("example.com/a:1"))])?;
        test.deliver(&repository, json!({"wait": false})).await?;
        let jobs = test.objects("batch/v1", "Job");
        let uid = jobs.get("j").await?.metadata.uid;
        let revision = test
            .push(
                &repository,
                &[Change::write("deploy/j.yaml", job("example.com/a:2"))],
            )
            .await?;
        let message = test
            .not_ready(&test.kustomizations(), "app", "ReconciliationFailed")
            .await?;
        ensure!(
            message.contains("immutable") && message.contains("deploy/j.yaml"),
            "{message}"
        );
        ensure!(jobs.get("j").await?.metadata.uid == uid);
        let force = Patch::Merge(json!({"spec": {"force": true}}));
        test.kustomizations()
            .patch("app", &PatchParams::default(), &force)
            .await?;
        let object = test.ready("app", &revision).await?;
        ensure!(jobs.get("j").await?.metadata.uid != uid);
        ensure!(condition(&object, "Ready").is_some());
        Ok(())
    });
}

#[test]
fn named_health_checks_are_waited_for() {
    run("health-checks", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.git_source(&repository).await?;
        let checks =
            json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "theirs", "namespace": ns}]);
        test.apply(&test.kustomization("app", json!({"wait": false, "healthChecks": checks})))
            .await?;
        test.config_map_has("a", "key", "1").await?;
        let waiting = |o: &_| condition(o, "Healthy").is_some_and(|(status, ..)| status == "Unknown");
        wait_for(&test.kustomizations(), "app", waiting, PATIENCE).await?;
        let theirs: serde_json::Value =
            serde_json::from_str(&crate::world::deployment(ns, "theirs", "example.com/web:1", 1))?;
        test.apply(&theirs).await?;
        test.ready("app", &format!("main@sha1:{}", repository.resolve("main")?))
            .await
            .map(drop)
    });
}

#[test]
fn an_object_that_a_label_moves_to_another_shard_is_taken_up_there() {
    run("moved", |test| async move {
        let repository = test.repository(&[("deploy/a.yaml", config_map(&test.namespace, "a", "1"))])?;
        test.deliver(&repository, json!({})).await?;
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let other = Controller::start_apply(kubeconfig, &test.world.source, test.own_shard()).await?;
        // When it has done this, it has seen the other, and left it alone.
        let witness = test.kustomization("witness", json!({"namePrefix": "w-"}));
        test.apply(&test.in_own_shard(witness)).await?;
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        test.ready("witness", &revision).await?;
        let runs = r#"gotk_reconcile_duration_seconds_count{kind="Kustomization",name="app""#;
        ensure!(other.metric(runs).await?.is_none(), "it is in another shard");

        test.apply(&test.in_own_shard(test.kustomization("app", json!({}))))
            .await?;
        let taken_up = async {
            while other.metric(runs).await?.is_none() {
                sleep(Duration::from_millis(100)).await;
            }
            anyhow::Ok(())
        };
        timeout(PATIENCE, taken_up).await.context("it is not taken up")?
    });
}
