//! Back to an earlier revision by hand, with `windlass rollback`, and what ends that.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::git::{Change, Repository};
use testkit::objects::{self, condition, text};
use testkit::{Controller, wait_for};

use crate::cli::Windlass;
use crate::freezes::DELIVERY;
use crate::helm::{self, HelmTest};
use crate::world::{PATIENCE, Test, config_map, run};

const KEEPS: &str = "windlass.dev/rollback";
const TO: &str = "windlass.dev/rollback-to";

fn files(ns: &str, value: &str) -> Vec<(&'static str, String)> {
    vec![
        ("deploy/web.yaml", config_map(ns, "web", value)),
        ("deploy/more.yaml", config_map(ns, "more", "1")),
    ]
}

/// A Kustomization of which the revisions are kept.
fn kept(test: &Test, spec: Value) -> Value {
    let mut object = test.kustomization("app", spec);
    object["metadata"]["annotations"] = json!({KEEPS: "by-hand"});
    object
}

fn revision(repository: &Repository) -> Result<String> {
    Ok(format!("main@sha1:{}", repository.resolve("main")?))
}

/// Delivers revisions with the values 1, 2 and so on, the last of which has another object; returns them.
async fn deliver(test: &Test, repository: &Repository, count: u8) -> Result<Vec<String>> {
    let ns = &test.namespace;
    test.git_source(repository).await?;
    let mut revisions = vec![revision(repository)?];
    test.ready("app", &revisions[0]).await?;
    for number in 2..=count {
        let mut changes = vec![Change::write(
            "deploy/web.yaml",
            config_map(ns, "web", &number.to_string()),
        )];
        if number == count {
            changes.push(Change::delete("deploy/more.yaml"));
            changes.push(Change::write("deploy/new.yaml", config_map(ns, "new", "1")));
        }
        let pushed = test.push(repository, &changes).await?;
        test.ready("app", &pushed).await?;
        revisions.push(pushed);
    }
    Ok(revisions)
}

async fn annotate(api: &Api<DynamicObject>, name: &str, annotations: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    api.patch_metadata(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

fn is_back_at(revision: &str) -> impl Fn(&DynamicObject) -> bool {
    let begins = format!("rolled back by hand to revision {revision} since ");
    move |object| {
        let is_so = |type_, expected| {
            condition(object, type_).is_some_and(|(status, reason, said)| {
                (status, reason) == (expected, "RolledBack") && said.starts_with(&begins)
            })
        };
        is_so("Ready", "False") && is_so("Held", "True")
    }
}

async fn back_at(test: &Test, revision: &str) -> Result<DynamicObject> {
    wait_for(&test.kustomizations(), "app", is_back_at(revision), PATIENCE).await
}

fn since(object: &DynamicObject) -> Option<String> {
    let (_, _, said) = condition(object, "Held")?;
    let (_, rest) = said.split_once(" since ")?;
    Some(rest.split_once(": ")?.0.to_owned())
}

#[test]
fn a_person_goes_back_and_stays_there_until_it_is_released() {
    run("by-hand", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&files(ns, "1"))?;
        test.apply(&kept(&test, json!({"interval": "1h"}))).await?;
        let mut revisions = deliver(&test, &repository, 2).await?;
        // Nothing of it changes with this one, which is the revision that people know.
        let elsewhere = [Change::write("elsewhere/readme.md", "2".to_owned())];
        revisions[1] = test.push(&repository, &elsewhere).await?;
        test.ready("app", &revisions[1]).await?;
        let changes = [
            Change::write("deploy/web.yaml", config_map(ns, "web", "3")),
            Change::write("deploy/more.yaml", config_map(ns, "more", "1")),
            Change::delete("deploy/new.yaml"),
        ];
        revisions.push(test.push(&repository, &changes).await?);
        test.ready("app", &revisions[2]).await?;
        let windlass = Windlass { test: &test };
        let said = windlass
            .run(&["rollback", "ks/app", "--reason", "carts are empty"], 0)
            .await?;
        ensure!(
            said.contains(&format!("rolled back by hand to revision {} since", revisions[1]))
                && said.contains("carts are empty")
                && said.contains(&format!("The source has revision {}", revisions[2]))
                && said.contains(&format!("windlass release kustomization/app -n {ns}")),
            "{said}"
        );
        test.config_map_has("web", "key", "2").await?;
        test.config_map_has("new", "key", "1").await?;
        test.config_map_gone("more").await?;
        let object = back_at(&test, &revisions[1]).await?;
        ensure!(text(&object, "/status/lastAppliedRevision") == revisions[1]);
        ensure!(text(&object, "/status/lastAttemptedRevision") == revisions[2]);

        // Neither drift nor a newer revision changes that, and it is said since when.
        let began = since(&object);
        test.config_maps().delete("new", &DeleteParams::default()).await?;
        test.config_map_has("new", "key", "1").await?;
        let change = Change::write("deploy/web.yaml", config_map(ns, "web", "4"));
        let fourth = test.push(&repository, &[change]).await?;
        let is_told = |object: &DynamicObject| {
            is_back_at(&revisions[1])(object)
                && condition(object, "Held").is_some_and(|(_, _, said)| said.contains(&fourth))
        };
        let object = wait_for(&test.kustomizations(), "app", is_told, PATIENCE).await?;
        ensure!(began.is_some() && since(&object) == began, "{began:?}");
        test.config_map_has("web", "key", "2").await?;

        // Further back, by a part of the revision.
        let part = &revisions[0][10..20];
        windlass
            .run(&["rollback", "ks/app", "--to", part, "--reason", "x"], 0)
            .await?;
        test.config_map_has("web", "key", "1").await?;
        test.config_map_gone("new").await?;
        let said = windlass.run(&["release", "ks/app"], 0).await?;
        ensure!(said.contains("the rollback is ended"), "{said}");
        let object = test.ready("app", &fourth).await?;
        ensure!(condition(&object, "Held").is_none());
        test.config_map_has("web", "key", "4").await?;
        test.config_map_has("more", "key", "1").await.map(drop)
    });
}

#[test]
fn a_rollback_by_hand_outlives_the_controller() {
    run("by-hand-restart", |test| async move {
        let ns = &test.namespace;
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let repository = test.repository(&files(ns, "1"))?;
        let start = || Controller::start_apply(kubeconfig, &test.world.source, test.own_shard());
        let apply = start().await?;
        test.apply(&test.in_own_shard(kept(&test, json!({"interval": "1h"}))))
            .await?;
        let revisions = deliver(&test, &repository, 2).await?;
        apply.kill();
        annotate(&test.kustomizations(), "app", json!({TO: revisions[0]})).await?;
        let apply = start().await?;
        let before = back_at(&test, &revisions[0]).await?;
        test.config_map_has("web", "key", "1").await?;
        apply.kill();
        test.config_maps().delete("web", &DeleteParams::default()).await?;
        let _apply = start().await?;
        // The first thing that it does is the right one.
        test.config_map_has("web", "key", "1").await?;
        let object = back_at(&test, &revisions[0]).await?;
        ensure!(since(&object) == since(&before), "it is told since when");
        Ok(())
    });
}

#[test]
fn only_what_is_kept_of_this_spec_can_be_gone_back_to() {
    run("by-hand-refused", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&files(ns, "1"))?;
        let mut object = kept(&test, json!({"interval": "1h"}));
        test.apply(&object).await?;
        let revisions = deliver(&test, &repository, 2).await?;
        let windlass = Windlass { test: &test };
        let unknown = "main@sha1:0123456789012345678901234567890123456789";
        let back = ["rollback", "ks/app", "--reason", "x", "--to"];
        let said = windlass.run(&[&back[..], &[unknown]].concat(), 3).await?;
        ensure!(
            said.contains(&format!("asks for revision {unknown}, which is not kept"))
                && revisions.iter().all(|kept| said.contains(kept)),
            "{said}"
        );
        // Nothing is applied before somebody decides.
        test.config_map_has("web", "key", "2").await?;
        windlass.run(&["release", "ks/app"], 0).await?;
        test.ready("app", &revisions[1]).await?;

        // As it was made by another spec it may belong elsewhere, or to another account.
        object["spec"]["commonMetadata"] = json!({"labels": {"team": "shop"}});
        test.apply(&object).await?;
        let labelled = |map: &DynamicObject| {
            map.metadata
                .labels
                .as_ref()
                .is_some_and(|all| all.contains_key("team"))
        };
        let maps = objects::api(&test.client, "v1", "ConfigMap", ns);
        wait_for(&maps, "web", labelled, PATIENCE).await?;
        test.ready("app", &revisions[1]).await?;
        let said = windlass.run(&[&back[..], &[&revisions[0]]].concat(), 3).await?;
        ensure!(said.contains("which another spec made"), "{said}");
        windlass.run(&["release", "ks/app"], 0).await?;
        test.ready("app", &revisions[1]).await?;

        // Who keeps nothing is told how to.
        annotate(&test.kustomizations(), "app", json!({KEEPS: null})).await?;
        let said = windlass.run(&["rollback", "ks/app", "--reason", "x"], 3).await?;
        ensure!(said.contains("windlass.dev/rollback=by-hand"), "{said}");
        Ok(())
    });
}

#[test]
fn a_rollback_by_hand_waits_for_the_end_of_a_freeze() {
    run("by-hand-freeze", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&files(ns, "1"))?;
        test.apply(&kept(&test, json!({"interval": "1h"}))).await?;
        let revisions = deliver(&test, &repository, 2).await?;
        let windlass = Windlass { test: &test };
        windlass
            .run(&["hold", "ks/app", "--reason", "the auditors are here"], 0)
            .await?;
        let said = windlass.run(&["rollback", "ks/app", "--reason", "x"], 3).await?;
        ensure!(said.contains("the auditors are here"), "{said}");
        test.config_map_has("web", "key", "2").await?;
        let freezes: Api<DynamicObject> = objects::api(&test.client, DELIVERY, "Freeze", ns);
        freezes
            .delete("hold-kustomization-app", &DeleteParams::default())
            .await?;
        back_at(&test, &revisions[0]).await?;
        test.config_map_has("web", "key", "1").await.map(drop)
    });
}

/// Releases two revisions of `web`, with the values `first` and `second`.
async fn release_two(test: &HelmTest) -> Result<()> {
    test.oci_chart("1.0.0", helm::chart("1.0.0", &[])?).await?;
    for (value, version) in [("first", 1), ("second", 2)] {
        let spec = json!({"values": {"value": value}, "driftDetection": {"mode": "enabled"}});
        test.apply(&test.release(spec)).await?;
        test.ready_at(version).await?;
    }
    Ok(())
}

#[test]
fn a_release_goes_back_and_stays_there_until_it_is_released() {
    helm::run("by-hand-helm", |test| async move {
        release_two(&test).await?;
        let windlass = Windlass { test: &test };
        let said = windlass
            .run(&["rollback", "hr/web", "--reason", "carts are empty"], 0)
            .await?;
        ensure!(
            said.contains("rolled back by hand to revision 1 (chart web@1.0.0+")
                && said.contains("carts are empty")
                && said.contains("windlass release helmrelease/web"),
            "{said}"
        );
        test.map_has("value", "first").await?;
        // Neither a request, drift, nor a newer chart changes that, and it is not rolled back again.
        objects::poke(&test.releases(), "web").await?;
        test.config_maps()
            .delete("web-map", &DeleteParams::default())
            .await?;
        test.map_has("value", "first").await?;
        test.oci_chart("1.1.0", helm::chart("1.1.0", &[])?).await?;
        test.settle().await?;
        test.map_has("value", "first").await?;
        ensure!(test.records("web").await?.len() == 3);
        let object = test.releases().get("web").await?;
        helm::ensure_condition(&object, "Ready", "False", "RolledBack")?;
        helm::ensure_condition(&object, "Held", "True", "RolledBack")?;
        helm::ensure_condition(&object, "Remediated", "True", "RollbackSucceeded")?;

        windlass.run(&["release", "hr/web"], 0).await?;
        let object = test.ready_at(4).await?;
        ensure!(condition(&object, "Held").is_none() && condition(&object, "Remediated").is_none());
        let version = helm::newest(&object)["chartVersion"].as_str().unwrap_or_default();
        ensure!(version.starts_with("1.1.0"), "{version}");
        test.map_has("value", "second").await
    });
}

#[test]
fn a_release_goes_back_to_its_own_revisions_only() {
    helm::run("by-hand-forged", |test| async move {
        release_two(&test).await?;
        let windlass = Windlass { test: &test };
        let back = ["rollback", "hr/web", "--reason", "x", "--to"];
        let said = windlass.run(&[&back[..], &["7"]].concat(), 3).await?;
        ensure!(
            said.contains("the status knows no such revision, only 2, 1"),
            "{said}"
        );
        windlass.run(&["release", "hr/web"], 0).await?;
        test.ready_at(2).await?;

        // Who writes Secrets would otherwise have anything released, as whoever the HelmRelease acts as.
        let secrets: Api<Secret> = Api::namespaced(test.client.clone(), &test.namespace);
        let other = secrets.get("sh.helm.release.v1.web.v2").await?;
        let patch = Patch::Merge(
            json!({"data": {"release": other.data.and_then(|data| data.get("release").cloned())}}),
        );
        let first = "sh.helm.release.v1.web.v1";
        secrets.patch(first, &PatchParams::default(), &patch).await?;
        let said = windlass.run(&[&back[..], &["1"]].concat(), 3).await?;
        ensure!(
            said.contains("its record is not there any more, or was changed"),
            "{said}"
        );
        ensure!(test.records("web").await?.len() == 2, "nothing was released");
        annotate(&test.releases(), "web", json!({TO: "first"})).await?;
        let said = test.refused("ReconciliationFailed").await?;
        ensure!(said.contains("must be the number of a revision"), "{said}");
        windlass.run(&["release", "hr/web"], 0).await?;
        test.ready_at(2).await?;
        test.map_has("value", "second").await
    });
}

#[test]
fn a_release_goes_back_though_its_source_and_values_are_gone() {
    helm::run("by-hand-without", |test| async move {
        release_two(&test).await?;
        // What broke it broke the way forward, too.
        let missing = json!({"valuesFrom": [{"kind": "ConfigMap", "name": "none"}]});
        test.apply(&test.release(missing)).await?;
        test.refused("ValuesError").await?;
        let sources: Api<DynamicObject> = objects::api(
            &test.client,
            "source.toolkit.fluxcd.io/v1",
            "OCIRepository",
            &test.namespace,
        );
        sources.delete("web", &DeleteParams::default()).await?;
        let windlass = Windlass { test: &test };
        windlass.run(&["rollback", "hr/web", "--reason", "x"], 0).await?;
        test.map_has("value", "first").await
    });
}
