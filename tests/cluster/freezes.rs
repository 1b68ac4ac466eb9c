//! Freezes (ADR 28): what arrives meanwhile waits, the rest goes on, and nobody gets around them.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::git::{Change, Repository};
use testkit::objects::{self, condition, field, text};
use testkit::{Controller, wait_for};

use crate::cli::Windlass;
use crate::helm;
use crate::world::{PATIENCE, Test, config_map, run};

pub const DELIVERY: &str = "delivery.windlass.dev/v1alpha1";
/// Where the controllers of these tests are.
const PLATFORM: &str = "default";

fn freeze(namespace: &str, name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": DELIVERY, "kind": "Freeze", "metadata": {"name": name, "namespace": namespace},
        "spec": {"reason": "it is Friday"},
    });
    if let (Some(all), Some(more)) = (object["spec"].as_object_mut(), spec.as_object()) {
        all.extend(more.clone());
    }
    object
}

fn freezes(test: &Test, namespace: &str) -> Api<DynamicObject> {
    objects::api(&test.client, DELIVERY, "Freeze", namespace)
}

fn is_handled(object: &DynamicObject) -> bool {
    let annotations = object.metadata.annotations.as_ref();
    let asked = annotations.and_then(|all| all.get("reconcile.fluxcd.io/requestedAt"));
    asked.is_some_and(|asked| text(object, "/status/lastHandledReconcileAt") == asked)
}

/// Applies a Freeze, and waits until the controller knows it: watches of different kinds are not in step.
async fn begin(test: &Test, freeze: &Value, is_own_shard: bool) -> Result<()> {
    test.apply(freeze).await?;
    let mut canary = test.kustomization("canary", json!({"path": "./none"}));
    if is_own_shard {
        canary = test.in_own_shard(canary);
    }
    test.apply(&canary).await?;
    let api = test.kustomizations();
    let is_frozen = async {
        loop {
            objects::poke(&api, "canary").await?;
            let answer = wait_for(&api, "canary", is_handled, PATIENCE).await?;
            if condition(&answer, "Frozen").is_some() {
                return anyhow::Ok(());
            }
        }
    };
    tokio::time::timeout(PATIENCE, is_frozen).await?
}

async fn thaw(test: &Test, name: &str) -> Result<()> {
    freezes(test, &test.namespace)
        .delete(name, &DeleteParams::default())
        .await?;
    Ok(())
}

fn files(ns: &str, value: &str) -> Vec<(&'static str, String)> {
    vec![
        ("deploy/web.yaml", config_map(ns, "web", value)),
        ("deploy/more.yaml", config_map(ns, "more", "1")),
    ]
}

async fn push(test: &Test, repository: &Repository, value: &str) -> Result<String> {
    let change = Change::write("deploy/web.yaml", config_map(&test.namespace, "web", value));
    test.push(repository, &[change]).await
}

/// Waits until something is said to wait; returns the object and what is said.
async fn frozen(api: &Api<DynamicObject>, name: &str, what: &str) -> Result<(DynamicObject, String)> {
    let is_said = |object: &DynamicObject| {
        condition(object, "Frozen").is_some_and(|(status, reason, said)| {
            (status, reason) == ("True", "Frozen") && said.starts_with(what)
        })
    };
    let object = wait_for(api, name, is_said, PATIENCE).await?;
    let said = condition(&object, "Frozen").map(|(_, _, said)| said.to_owned());
    Ok((object, said.unwrap_or_default()))
}

#[test]
fn what_arrives_in_a_freeze_waits_and_goes_when_it_ends() {
    run("freeze", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&files(ns, "1"))?;
        // What is delivered before it begins is known to it.
        let mut object = freeze(ns, "friday", json!({"from": "2126-01-01T00:00:00Z"}));
        test.apply(&object).await?;
        let first = text(
            &test.deliver(&repository, json!({})).await?,
            "/status/lastAppliedRevision",
        )
        .to_owned();
        object["spec"]["from"] = json!("2026-01-01T00:00:00Z");
        begin(&test, &object, false).await?;
        // What is delivered is in the record now, however soon the Freeze was known.
        objects::poke(&test.kustomizations(), "app").await?;
        wait_for(&test.kustomizations(), "app", is_handled, PATIENCE).await?;

        let second = push(&test, &repository, "2").await?;
        let (object, said) = frozen(
            &test.kustomizations(),
            "app",
            &format!("revision {second} waits "),
        )
        .await?;
        let why = format!("until it is ended by Freeze {ns}/friday: it is Friday");
        ensure!(said == format!("revision {second} waits {why}"), "{said}");
        ensure!(
            condition(&object, "Ready")
                == Some((
                    "True",
                    "ReconciliationSucceeded",
                    &*format!("Applied revision: {first}; frozen: {said}")
                )),
            "{:?}",
            condition(&object, "Ready")
        );
        ensure!(text(&object, "/status/lastAppliedRevision") == first);
        ensure!(text(&object, "/status/lastAttemptedRevision") == first);
        let windlass = Windlass { test: &test };
        let why = windlass.run(&["why", "ks/app"], 3).await?;
        ensure!(why.contains("behind") && why.contains(&said), "{why}");

        // Against drift it is what was delivered that is applied.
        test.config_maps()
            .delete("more", &DeleteParams::default())
            .await?;
        test.config_map_has("more", "key", "1").await?;
        test.config_map_has("web", "key", "1").await?;
        // Flux's command for it gets its answer, and changes nothing.
        let api = test.kustomizations();
        objects::poke(&api, "app").await?;
        wait_for(&api, "app", is_handled, PATIENCE).await?;
        test.config_map_has("web", "key", "1").await?;

        thaw(&test, "friday").await?;
        let object = test.ready("app", &second).await?;
        test.config_map_has("web", "key", "2").await?;
        ensure!(condition(&object, "Frozen").is_none());
        Ok(())
    });
}

#[test]
fn it_opens_by_itself_and_takes_what_is_newest_then() {
    run("freeze-opens", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&files(ns, "1"))?;
        test.deliver(&repository, json!({})).await?;
        let until = Timestamp::now() + Duration::from_secs(10);
        let until = until.round(jiff::Unit::Second)?;
        begin(
            &test,
            &freeze(ns, "short", json!({"until": until.to_string()})),
            false,
        )
        .await?;
        let second = push(&test, &repository, "2").await?;
        let (_, said) = frozen(&test.kustomizations(), "app", &format!("revision {second}")).await?;
        ensure!(
            said.contains(&format!(" waits until {until} by Freeze")),
            "{said}"
        );
        let third = push(&test, &repository, "3").await?;
        test.ready("app", &third).await?;
        ensure!(Timestamp::now() >= until, "it did not wait");
        test.config_map_has("web", "key", "3").await.map(drop)
    });
}

#[test]
fn what_changes_nothing_moves_on() {
    run("freeze-same", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&files(ns, "1"))?;
        test.deliver(&repository, json!({})).await?;
        begin(
            &test,
            &freeze(ns, "friday", json!({"driftCorrection": "Pause"})),
            false,
        )
        .await?;
        let second = push(&test, &repository, "2").await?;
        let (_, said) = frozen(&test.kustomizations(), "app", &format!("revision {second}")).await?;
        ensure!(said.ends_with("; drift is not corrected meanwhile"), "{said}");
        test.config_maps()
            .delete("more", &DeleteParams::default())
            .await?;
        let change = [
            Change::write("elsewhere/a.txt", "text"),
            Change::write("deploy/web.yaml", config_map(ns, "web", "1")),
        ];
        let third = test.push(&repository, &change).await?;
        let object = test.ready("app", &third).await?;
        ensure!(condition(&object, "Frozen").is_none());
        test.no_config_map("more").await?;
        thaw(&test, "friday").await?;
        test.apply(&test.kustomization("app", json!({"interval": "59m"})))
            .await?;
        test.config_map_has("more", "key", "1").await.map(drop)
    });
}

#[test]
fn another_spec_and_what_is_new_wait_too() {
    run("freeze-spec", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&files(ns, "1"))?;
        test.deliver(&repository, json!({})).await?;
        begin(&test, &freeze(ns, "friday", json!({})), false).await?;
        let label = json!({"commonMetadata": {"labels": {"a": "b"}}});
        test.apply(&test.kustomization("app", label)).await?;
        let (object, said) = frozen(&test.kustomizations(), "app", "the new spec waits").await?;
        ensure!(text(&object, "/status/observedGeneration") != "2", "{said}");
        test.apply(&test.kustomization("new", json!({"targetNamespace": ns})))
            .await?;
        let (object, said) = frozen(&test.kustomizations(), "new", "revision ").await?;
        ensure!(condition(&object, "Ready") == Some(("False", "Frozen", &*said)));
        ensure!(field(&object, "/status/inventory").is_none());
        let labels = test
            .config_maps()
            .get("web")
            .await?
            .metadata
            .labels
            .unwrap_or_default();
        ensure!(!labels.contains_key("a"));
        // Whoever deletes the object by hand means it.
        test.delete_kustomization("new").await?;
        thaw(&test, "friday").await?;
        let has_label = |map: &k8s_openapi::api::core::v1::ConfigMap| {
            map.metadata
                .labels
                .as_ref()
                .is_some_and(|all| all.contains_key("a"))
        };
        wait_for(&test.config_maps(), "web", has_label, PATIENCE)
            .await
            .map(drop)
    });
}

#[test]
fn it_holds_over_a_restart_and_against_a_forged_status() {
    run("freeze-forged", |test| async move {
        let ns = &test.namespace;
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let start = || Controller::start_apply(kubeconfig, &test.world.source, test.own_shard());
        let repository = test.repository(&files(ns, "2"))?;
        test.git_source(&repository).await?;
        test.apply(&freeze(ns, "friday", json!({"from": "2126-01-01T00:00:00Z"})))
            .await?;
        let apply = start().await?;
        test.apply(&test.in_own_shard(test.kustomization("app", json!({}))))
            .await?;
        let before = test
            .ready("app", &format!("main@sha1:{}", repository.resolve("main")?))
            .await?;
        let newer = before.data["status"]["history"][0]["digest"].clone();
        let first = push(&test, &repository, "1").await?;
        test.ready("app", &first).await?;
        begin(&test, &freeze(ns, "friday", json!({})), true).await?;
        let second = push(&test, &repository, "2").await?;
        let api = test.kustomizations();
        frozen(&api, "app", &format!("revision {second}")).await?;
        apply.kill();
        // With the rights of Flux's role `edit`, a tenant writes the status.
        let mut history = api.get("app").await?.data["status"]["history"].clone();
        let last = history
            .as_array_mut()
            .and_then(|all| all.first_mut())
            .context("no history")?;
        last["digest"] = newer;
        let forged = json!({"status": {"history": history, "lastAppliedRevision": second}});
        api.patch_status("app", &PatchParams::default(), &Patch::Merge(forged))
            .await?;
        let _apply = start().await?;
        let is_seen = |object: &DynamicObject| {
            condition(object, "Frozen")
                .is_some_and(|(_, _, said)| said.ends_with("drift is not corrected meanwhile"))
        };
        wait_for(&api, "app", is_seen, PATIENCE).await?;
        test.config_map_has("web", "key", "1").await.map(drop)
    });
}

#[test]
fn a_restart_corrects_drift_to_what_was_delivered() {
    run("freeze-restart", |test| async move {
        let ns = &test.namespace;
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let start = || Controller::start_apply(kubeconfig, &test.world.source, test.own_shard());
        let repository = test.repository(&files(ns, "1"))?;
        test.git_source(&repository).await?;
        test.apply(&freeze(ns, "friday", json!({"from": "2126-01-01T00:00:00Z"})))
            .await?;
        let apply = start().await?;
        test.apply(&test.in_own_shard(test.kustomization("app", json!({}))))
            .await?;
        test.ready("app", &format!("main@sha1:{}", repository.resolve("main")?))
            .await?;
        apply.kill();
        test.apply(&freeze(ns, "friday", json!({}))).await?;
        let second = push(&test, &repository, "2").await?;
        test.config_maps()
            .delete("more", &DeleteParams::default())
            .await?;
        let _apply = start().await?;
        test.config_map_has("more", "key", "1").await?;
        frozen(&test.kustomizations(), "app", &format!("revision {second}")).await?;
        test.config_map_has("web", "key", "1").await.map(drop)
    });
}

#[test]
fn a_release_gets_no_new_chart_or_values_and_keeps_what_it_has() {
    helm::run("freeze-helm", |test| async move {
        let ns = &test.namespace;
        test.oci_chart("1.0.0", helm::chart("1.0.0", &[])?).await?;
        let spec = json!({"driftDetection": {"mode": "enabled"}, "values": {"value": "1"}});
        test.apply(&test.release(spec.clone())).await?;
        test.ready().await?;
        test.apply(&freeze(
            ns,
            "friday",
            json!({"apps": [{"kind": "HelmRelease", "name": "w*"}]}),
        ))
        .await?;
        test.config_maps()
            .delete("web-map", &DeleteParams::default())
            .await?;
        test.map_has("value", "1").await?;
        test.oci_chart("1.1.0", helm::chart("1.1.0", &[])?).await?;
        let releases = test.releases();
        let (object, said) = frozen(&releases, "web", "chart web@1.1.0+").await?;
        ensure!(
            said.contains(&format!(
                " waits until it is ended by Freeze {ns}/friday: it is Friday"
            )),
            "{said}"
        );
        let ready = condition(&object, "Ready").context("no Ready")?;
        ensure!(
            ready.0 == "True" && ready.2.ends_with(&format!("; frozen: {said}")),
            "{ready:?}"
        );
        ensure!(test.records("web").await? == [(1, "deployed".to_owned())]);
        let why = Windlass { test: &test }.run(&["why", "hr/web"], 3).await?;
        ensure!(why.contains(&said), "{why}");

        test.choose_tag("1.0.0").await?;
        let is_thawed = |object: &DynamicObject| {
            objects::is_ready(object)
                && condition(object, "Frozen").is_none()
                && condition(object, "Ready").is_some_and(|(_, _, said)| !said.contains("frozen"))
        };
        test.when(is_thawed).await?;
        let mut other = spec;
        other["values"]["value"] = json!("2");
        test.apply(&test.release(other)).await?;
        frozen(&releases, "web", "a change waits").await?;
        test.map_has("value", "1").await?;
        // What was never released waits as well.
        let mut young = test.release(json!({}));
        young["metadata"]["name"] = json!("w2");
        test.apply(&young).await?;
        let (object, said) = frozen(&releases, "w2", "chart web@1.0.0+").await?;
        ensure!(condition(&object, "Ready") == Some(("False", "Frozen", &*said)));

        thaw(&test, "friday").await?;
        test.map_has("value", "2").await?;
        let object = test.when(is_thawed).await?;
        ensure!(
            helm::newest(&object)["version"] == 2,
            "{:?}",
            helm::newest(&object)
        );
        wait_for(&releases, "w2", objects::is_ready, PATIENCE)
            .await
            .map(drop)
    });
}

#[test]
fn only_the_platform_reaches_into_other_namespaces() {
    run("freeze-reach", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&files(ns, "1"))?;
        test.deliver(&repository, json!({})).await?;
        let other = test.world.control_plane.namespace("freeze-tenant").await?;
        test.apply(&freeze(&other, "theirs", json!({"namespaces": ["*"]})))
            .await?;
        let second = push(&test, &repository, "2").await?;
        test.ready("app", &second).await?;

        let ours = freeze(PLATFORM, ns, json!({"namespaces": [ns]}));
        begin(&test, &ours, false).await?;
        let third = push(&test, &repository, "3").await?;
        frozen(&test.kustomizations(), "app", &format!("revision {third}")).await?;
        // Where nothing guards it the annotation of the owner has no effect.
        let exception = json!({"metadata": {"annotations": {"windlass.dev/freeze-exception": format!("{PLATFORM}/{ns}")}}});
        let api = test.kustomizations();
        api.patch("app", &PatchParams::default(), &Patch::Merge(exception))
            .await?;
        objects::poke(&api, "app").await?;
        wait_for(&api, "app", is_handled, PATIENCE).await?;
        test.config_map_has("web", "key", "2").await?;
        freezes(&test, PLATFORM)
            .delete(ns, &DeleteParams::default())
            .await?;
        test.ready("app", &third).await.map(drop)
    });
}

#[test]
fn an_exception_lets_one_object_through() {
    run("freeze-exception", |test| async move {
        let ns = &test.namespace;
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let repository = test.repository(&files(ns, "1"))?;
        test.git_source(&repository).await?;
        test.apply(&freeze(ns, "friday", json!({}))).await?;
        let mut options = test.own_shard();
        options.flags.push("--freeze-exceptions".to_owned());
        let _apply = Controller::start_apply(kubeconfig, &test.world.source, options).await?;
        test.apply(&test.in_own_shard(test.kustomization("app", json!({}))))
            .await?;
        let api = test.kustomizations();
        frozen(&api, "app", "revision ").await?;
        let exception =
            json!({"metadata": {"annotations": {"windlass.dev/freeze-exception": format!("{ns}/friday")}}});
        api.patch("app", &PatchParams::default(), &Patch::Merge(exception))
            .await?;
        test.config_map_has("web", "key", "1").await.map(drop)
    });
}

#[test]
fn people_hold_and_release_an_application() {
    run("freeze-by-hand", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&files(ns, "1"))?;
        test.deliver(&repository, json!({})).await?;
        let windlass = Windlass { test: &test };
        let said = windlass
            .run(&["hold", "ks/app", "--reason", "it leaks", "--for", "2h"], 0)
            .await?;
        ensure!(
            said.contains(&format!("Freeze/{ns}/hold-kustomization-app")),
            "{said}"
        );
        let second = push(&test, &repository, "2").await?;
        let (_, said) = frozen(&test.kustomizations(), "app", &format!("revision {second}")).await?;
        ensure!(said.contains("hold-kustomization-app: it leaks"), "{said}");
        windlass.run(&["release", "ks/app"], 0).await?;
        test.ready("app", &second).await?;
        windlass.run(&["release", "ks/app"], 3).await.map(drop)
    });
}
