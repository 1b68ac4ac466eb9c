//! Back to the last revision that was healthy (ADR 27), and what ends that.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Event, Secret};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::git::{Change, Repository};
use testkit::objects::{condition, text};
use testkit::{Controller, wait_for, wait_until_gone};

use crate::cli::Windlass;
use crate::world::{PATIENCE, Test, config_map, run};

const WISH: &str = "windlass.dev/rollback";

/// A ConfigMap whose key says whether it is healthy, and one beside it.
fn files(ns: &str, healthy: &str, more: &str) -> Vec<(&'static str, String)> {
    vec![
        ("deploy/web.yaml", config_map(ns, "web", healthy)),
        ("deploy/more.yaml", config_map(ns, more, "1")),
    ]
}

fn spec() -> Value {
    json!({
        "wait": true, "timeout": "1m", "interval": "1h", "retryInterval": "1h",
        "healthCheckExprs": [{
            "apiVersion": "v1", "kind": "ConfigMap",
            "current": "!has(data.key) || data.key != 'bad'", "failed": "data.key == 'bad'",
        }],
    })
}

/// Delivers a healthy revision; returns it.
async fn healthy(test: &Test, repository: &Repository, wish: &[(&str, &str)]) -> Result<String> {
    let mut object = test.kustomization("app", spec());
    for (key, value) in wish {
        object["metadata"]["annotations"][*key] = json!(value);
    }
    test.git_source(repository).await?;
    test.apply(&object).await?;
    let revision = format!("main@sha1:{}", repository.resolve("main")?);
    test.ready("app", &revision).await?;
    Ok(revision)
}

/// Pushes what is not healthy: another value, one object less, and one more.
async fn break_it(test: &Test, repository: &Repository) -> Result<String> {
    let ns = &test.namespace;
    let changes = [
        Change::write("deploy/web.yaml", config_map(ns, "web", "bad")),
        Change::delete("deploy/more.yaml"),
        Change::write("deploy/new.yaml", config_map(ns, "new", "1")),
    ];
    test.push(repository, &changes).await
}

async fn held(test: &Test, revision: &str) -> Result<DynamicObject> {
    let is_held = |object: &DynamicObject| {
        condition(object, "Held").is_some_and(|(status, reason, message)| {
            status == "True" && reason == "RolledBack" && message.contains(revision)
        })
    };
    wait_for(&test.kustomizations(), "app", is_held, PATIENCE).await
}

async fn annotate(test: &Test, key: &str, value: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
    let api = test.kustomizations();
    api.patch_metadata("app", &PatchParams::default(), &patch).await?;
    Ok(())
}

fn records(test: &Test) -> Api<Secret> {
    Api::namespaced(test.client.clone(), "default")
}

async fn record(test: &Test) -> Result<String> {
    let uid = test.kustomizations().get("app").await?.metadata.uid;
    Ok(format!("last-known-good-{}", uid.unwrap_or_default()))
}

#[test]
fn what_is_not_healthy_goes_back_and_is_held_until_there_is_a_newer_one() {
    run("back", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&files(ns, "good", "more"))?;
        let first = healthy(&test, &repository, &[(WISH, "last-known-good")]).await?;
        let second = break_it(&test, &repository).await?;
        let object = held(&test, &second).await?;
        test.config_map_has("web", "key", "good").await?;
        test.config_map_has("more", "key", "1").await?;
        test.config_map_gone("new").await?;
        let (status, reason, message) = condition(&object, "Ready").unwrap_or_default();
        ensure!(
            (status, reason) == ("False", "HealthCheckFailed"),
            "{reason}: {message}"
        );
        ensure!(
            message.contains(&format!(
                "Revision {first}, the last that was healthy, is applied instead"
            )) && message.contains(&format!("windlass release kustomization/app -n {ns}"))
                && message.contains("web"),
            "{message}"
        );
        ensure!(text(&object, "/status/lastAppliedRevision") == first);
        ensure!(text(&object, "/status/lastAttemptedRevision") == second);
        ensure!(condition(&object, "Healthy").is_some_and(|(status, ..)| status == "True"));

        // A commit status that is made of it must not fall on the good commit.
        let events: Api<Event> = Api::namespaced(test.client.clone(), ns);
        let params = ListParams::default().fields("reason=RolledBack");
        let told = async {
            loop {
                if let Some(event) = events.list(&params).await?.items.pop() {
                    return anyhow::Ok(event);
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        let event = tokio::time::timeout(PATIENCE, told).await??;
        let annotations = event.metadata.annotations.unwrap_or_default();
        ensure!(
            annotations.get("kustomize.toolkit.fluxcd.io/revision") == Some(&second),
            "{annotations:?}"
        );

        // Against drift the good one is applied.
        test.config_maps()
            .delete("more", &DeleteParams::default())
            .await?;
        test.config_map_has("more", "key", "1").await?;

        let good = [
            Change::write("deploy/web.yaml", config_map(ns, "web", "better")),
            Change::delete("deploy/new.yaml"),
        ];
        let third = test.push(&repository, &good).await?;
        let object = test.ready("app", &third).await?;
        ensure!(condition(&object, "Held").is_none());
        test.config_map_gone("more").await?;
        test.config_map_has("web", "key", "better").await?;
        // That is the one to go back to now.
        let fourth = break_it(&test, &repository).await?;
        held(&test, &fourth).await?;
        test.config_map_has("web", "key", "better").await?;

        let name = record(&test).await?;
        ensure!(records(&test).get_opt(&name).await?.is_some());
        test.delete_kustomization("app").await?;
        wait_until_gone(&records(&test), &name, PATIENCE).await
    });
}

#[test]
fn a_hold_outlives_the_controller() {
    run("back-restart", |test| async move {
        let ns = &test.namespace;
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let repository = test.repository(&files(ns, "good", "more"))?;
        test.git_source(&repository).await?;
        let start = || Controller::start_apply(kubeconfig, &test.world.source, test.own_shard());
        let apply = start().await?;
        let mut object = test.in_own_shard(test.kustomization("app", spec()));
        object["metadata"]["annotations"] = json!({WISH: "last-known-good"});
        test.apply(&object).await?;
        let first = format!("main@sha1:{}", repository.resolve("main")?);
        test.ready("app", &first).await?;
        let second = break_it(&test, &repository).await?;
        let before = held(&test, &second).await?;
        apply.kill();
        test.config_maps()
            .delete("more", &DeleteParams::default())
            .await?;
        let _apply = start().await?;
        // The first thing that it does is the right one.
        test.config_map_has("more", "key", "1").await?;
        test.no_config_map("new").await?;
        let now = held(&test, &second).await?;
        let since = |object: &DynamicObject| {
            let conditions = object.data["status"]["conditions"].clone();
            let all = conditions.as_array().cloned().unwrap_or_default();
            all.into_iter().find(|one| one["type"] == "Held")
        };
        ensure!(
            since(&before).is_some() && since(&now) == since(&before),
            "it was tried again"
        );
        Ok(())
    });
}

#[test]
fn a_released_revision_is_applied_whatever_its_health() {
    run("back-released", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&files(ns, "good", "more"))?;
        healthy(&test, &repository, &[(WISH, "last-known-good")]).await?;
        let second = break_it(&test, &repository).await?;
        held(&test, &second).await?;
        let windlass = Windlass { test: &test };
        let said = windlass.run(&["release", "ks/app"], 0).await?;
        ensure!(said.contains(&format!("{second} is released")), "{said}");
        test.config_map_has("web", "key", "bad").await?;
        let failed = |object: &DynamicObject| {
            condition(object, "Ready").is_some_and(|(status, reason, message)| {
                status == "False"
                    && reason == "HealthCheckFailed"
                    && message.starts_with("health check failed")
            }) && condition(object, "Held").is_none()
        };
        wait_for(&test.kustomizations(), "app", failed, PATIENCE).await?;
        test.config_map_has("new", "key", "1").await?;
        windlass.run(&["release", "ks/app"], 3).await?;
        Ok(())
    });
}

#[test]
fn what_cannot_go_back_stays_and_is_named() {
    run("back-stays", |test| async move {
        let ns = &test.namespace;
        let fixed = |value: &str| config_map(ns, "fixed", value) + "immutable: true\n";
        let mut all = files(ns, "good", "more");
        all.push(("deploy/fixed.yaml", config_map(ns, "fixed", "1")));
        let repository = test.repository(&all)?;
        healthy(&test, &repository, &[(WISH, "last-known-good")]).await?;
        let changes = [
            Change::write("deploy/web.yaml", config_map(ns, "web", "bad")),
            Change::write("deploy/fixed.yaml", fixed("2")),
        ];
        let second = test.push(&repository, &changes).await?;
        let object = held(&test, &second).await?;
        let (_, _, message) = condition(&object, "Held").unwrap_or_default();
        ensure!(
            message.contains(&format!(
                "These objects stayed as they were: ConfigMap/{ns}/fixed."
            )),
            "{message}"
        );
        test.config_map_has("web", "key", "good").await?;
        test.config_map_has("fixed", "key", "2").await?;
        // It is managed still: the next revision may delete it.
        let changes = [
            Change::write("deploy/web.yaml", config_map(ns, "web", "good")),
            Change::delete("deploy/fixed.yaml"),
        ];
        let third = test.push(&repository, &changes).await?;
        test.ready("app", &third).await?;
        test.config_map_gone("fixed").await
    });
}

#[test]
fn nothing_is_kept_or_held_of_who_does_not_ask_for_it() {
    run("back-unasked", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&files(ns, "good", "more"))?;
        healthy(&test, &repository, &[]).await?;
        let name = record(&test).await?;
        ensure!(records(&test).get_opt(&name).await?.is_none());
        let second = break_it(&test, &repository).await?;
        test.not_ready_at("app", &second).await?;
        test.config_map_has("web", "key", "bad").await?;
        // Who asks later has to be healthy once before there is a way back; who does not ask any more leaves nothing.
        annotate(&test, WISH, json!("last-known-good")).await?;
        let third = test
            .push(
                &repository,
                &[Change::write("deploy/web.yaml", config_map(ns, "web", "good"))],
            )
            .await?;
        test.ready("app", &third).await?;
        ensure!(records(&test).get_opt(&name).await?.is_some());
        annotate(&test, WISH, Value::Null).await?;
        wait_until_gone(&records(&test), &name, PATIENCE).await?;
        annotate(&test, WISH, json!("always")).await?;
        let message = test
            .not_ready(&test.kustomizations(), "app", "ReconciliationFailed")
            .await?;
        ensure!(message.contains("must be 'last-known-good'"), "{message}");
        Ok(())
    });
}

#[test]
fn records_do_not_fill_etcd_and_deliveries_go_on() {
    run("back-full", |test| async move {
        let ns = &test.namespace;
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let repository = test.repository(&files(ns, "good", "more"))?;
        test.git_source(&repository).await?;
        let mut options = test.own_shard();
        options.flags.push("--rollback-storage=0".to_owned());
        let _apply = Controller::start_apply(kubeconfig, &test.world.source, options).await?;
        let mut object = test.in_own_shard(test.kustomization("app", spec()));
        object["metadata"]["annotations"] = json!({WISH: "last-known-good"});
        test.apply(&object).await?;
        test.ready("app", &format!("main@sha1:{}", repository.resolve("main")?))
            .await?;
        ensure!(records(&test).get_opt(&record(&test).await?).await?.is_none());
        // Without a way back it stays as it is.
        let second = break_it(&test, &repository).await?;
        let message = test.not_ready_at("app", &second).await?;
        ensure!(message.starts_with("health check failed"), "{message}");
        test.config_map_has("web", "key", "bad").await.map(drop)
    });
}
