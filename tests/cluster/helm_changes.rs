//! Tests of what changes a release and what does not: values, versions, records and objects that others
//! touch, requests, suspension.

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Secret};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::json;
use testkit::objects::{self, condition};
use testkit::wait_for;
use tokio_util::sync::CancellationToken;

use crate::drift::{fight, told_of_a_fight};
use crate::helm::{HELM, chart, ensure_condition, newest, run, said};
use crate::world::PATIENCE;

#[test]
fn another_value_or_another_version_is_another_revision() {
    run("helm-upgrade", |test| async move {
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        test.apply(&test.release(json!({"values": {"value": "one"}})))
            .await?;
        test.ready().await?;
        test.apply(&test.release(json!({"values": {"value": "two"}})))
            .await?;
        let object = test.ready_at(2).await?;
        ensure_condition(&object, "Ready", "True", "UpgradeSucceeded")?;
        test.map_has("value", "two").await?;
        ensure!(
            test.records("web").await? == [(1, "superseded".to_owned()), (2, "deployed".to_owned())],
            "{:?}",
            test.records("web").await?
        );
        test.push_chart("1.1.0", chart("1.1.0", &[])?).await?;
        test.choose_tag("1.1.0").await?;
        let object = test.ready_at(3).await?;
        ensure!(
            newest(&object)["chartVersion"]
                .as_str()
                .is_some_and(|version| version.starts_with("1.1.0+"))
        );
        test.map_has("value", "two").await
    });
}

#[test]
fn values_are_taken_from_config_maps_and_secrets_and_followed() {
    run("helm-values-from", |test| async move {
        let ns = &test.namespace;
        let map = |value: &str| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "values", "namespace": ns},
                   "data": {"values.yaml": format!("value: {value}\n")}})
        };
        test.apply(&map("first")).await?;
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        test.apply(&test.release(json!({"valuesFrom": [
            {"kind": "ConfigMap", "name": "values"},
            {"kind": "Secret", "name": "more", "targetPath": "value", "optional": true},
        ]})))
        .await?;
        test.ready().await?;
        test.map_has("value", "first").await?;
        test.apply(&map("second")).await?;
        test.map_has("value", "second").await?;
        test.apply(
            &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "more", "namespace": ns},
                           "stringData": {"values.yaml": "third"}}),
        )
        .await?;
        test.map_has("value", "third").await?;

        test.config_maps()
            .delete("values", &DeleteParams::default())
            .await?;
        let message = test.refused("ValuesError").await?;
        let expected = format!(
            "could not resolve ConfigMap chart values reference '{ns}/values' with key 'values.yaml': configmaps \
             \"values\" not found"
        );
        ensure!(message == expected, "{message}");
        test.apply(&map("fourth")).await?;
        test.ready().await.map(drop)
    });
}

#[test]
fn drift_is_corrected_at_once_or_only_told() {
    run("helm-drift", |test| async move {
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        let mode = |mode: &str| test.release(json!({"driftDetection": {"mode": mode}}));
        test.apply(&mode("enabled")).await?;
        let object = test.ready().await?;
        ensure_condition(&object, "Drifted", "False", "NoDriftDetected")?;
        let change = |value: &str| Patch::Merge(json!({"data": {"value": value}}));
        let maps = test.config_maps();
        maps.patch("web-map", &PatchParams::default(), &change("drifted"))
            .await?;
        test.map_has("value", "default").await?;
        // What kubectl added is no drift, and stays when something else is corrected: a rollout that was restarted, for one.
        let kubectl = PatchParams {
            field_manager: Some("kubectl-rollout".to_owned()),
            ..PatchParams::default()
        };
        let noted = Patch::Merge(
            json!({"metadata": {"annotations": {"note": "mine"}}, "data": {"value": "drifted"}}),
        );
        maps.patch("web-map", &kubectl, &noted).await?;
        let map = test.config_map_has("web-map", "value", "default").await?;
        let note = map.metadata.annotations.unwrap_or_default().remove("note");
        ensure!(note.as_deref() == Some("mine"), "the annotation is gone");
        maps.delete("web-map", &DeleteParams::default()).await?;
        test.map_has("value", "default").await?;
        ensure!(test.records("web").await? == [(1, "deployed".to_owned())]);

        test.apply(&mode("warn")).await?;
        test.ready().await?;
        maps.patch("web-map", &PatchParams::default(), &change("drifted"))
            .await?;
        let drifted = |object: &_| condition(object, "Drifted").is_some_and(|(status, ..)| status == "True");
        let object = test.when(drifted).await?;
        let (_, reason, message) = condition(&object, "Drifted").unwrap_or_default();
        let ns = &test.namespace;
        ensure!(
            reason == "DriftDetected"
                && message.contains(&format!(
                    "ConfigMap/{ns}/web-map changed (0 additions, 1 changes, 0 removals)"
                )),
            "{message}"
        );
        test.map_has("value", "drifted").await
    });
}

#[test]
fn who_sets_an_object_of_a_release_back_each_time_is_named_and_corrected_less_often() {
    run("helm-fight", |test| async move {
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        test.apply(&test.release(json!({"driftDetection": {"mode": "enabled"}})))
            .await?;
        test.ready().await?;
        let stop = CancellationToken::new();
        let maps = test.config_maps();
        let other = tokio::spawn(fight(maps.clone(), ("web-map", "value", "default"), stop.clone()));
        let said = format!(
            "; changed by others again and again: ConfigMap/{}/web-map data.value, set by bot (5 times since ",
            test.namespace
        );
        let is_said = |object: &DynamicObject| {
            condition(object, "Ready")
                .is_some_and(|(status, _, told)| status != "False" && told.contains(&said))
        };
        test.when(is_said).await?;
        told_of_a_fight(&test.client, &test.namespace).await?;
        // It is put off, and not forgotten.
        test.map_has("value", "wrong").await?;
        stop.cancel();
        let times = other.await??;
        ensure!((5..=7).contains(&times), "it was corrected {times} times");
        test.map_has("value", "default").await
    });
}

#[test]
fn drift_of_what_is_left_to_others_is_neither_told_nor_corrected() {
    run("helm-drift-left", |test| async move {
        let labelled = |name: &str, label: &str| {
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  labels: {{of: {label}}}\ndata: {{value: \"1\"}}\n"
            )
        };
        let templates = [
            ("theirs.yaml", labelled("theirs", "them")),
            ("held.yaml", labelled("held", "us")),
        ];
        let templates = templates.each_ref().map(|(name, text)| (*name, text.as_str()));
        test.oci_chart("1.0.0", chart("1.0.0", &templates)?).await?;
        let left = json!([{"paths": [""], "target": {"kind": "ConfigMap", "labelSelector": "of=them"}}]);
        test.apply(&test.release(json!({"driftDetection": {"mode": "enabled", "ignore": left}})))
            .await?;
        test.ready().await?;
        let maps = test.config_maps();
        let change = async |name: &str, metadata: serde_json::Value| {
            let patch = Patch::Merge(json!({"metadata": metadata, "data": {"value": "2"}}));
            maps.patch(name, &PatchParams::default(), &patch).await
        };
        // By a rule of the spec, by an annotation and a label in the cluster, and the one that is ours last.
        let excluded = json!({"helm.toolkit.fluxcd.io/driftDetection": "disabled"});
        change("theirs", json!({})).await?;
        change("held", json!({"annotations": excluded})).await?;
        change("web-map", json!({})).await?;
        test.map_has("value", "default").await?;
        change(
            "held",
            json!({"annotations": {"helm.toolkit.fluxcd.io/driftDetection": null}, "labels": excluded}),
        )
        .await?;
        change("web-map", json!({})).await?;
        test.map_has("value", "default").await?;
        for name in ["theirs", "held"] {
            test.config_map_has(name, "value", "2").await?;
        }
        // Who is no longer left alone is put right by the next run.
        change(
            "held",
            json!({"labels": {"helm.toolkit.fluxcd.io/driftDetection": null}}),
        )
        .await?;
        objects::poke(&test.releases(), "web").await?;
        test.config_map_has("held", "value", "1").await.map(drop)
    });
}

#[test]
fn a_record_that_somebody_else_deletes_or_writes_is_seen() {
    run("helm-records", |test| async move {
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        test.apply(&test.release(json!({}))).await?;
        test.ready().await?;
        let secrets: Api<Secret> = Api::namespaced(test.client.clone(), &test.namespace);
        secrets
            .delete("sh.helm.release.v1.web.v1", &DeleteParams::default())
            .await?;
        // The release is re-created over what is there.
        let is_back = |_: &Secret| true;
        wait_for(&secrets, "sh.helm.release.v1.web.v1", is_back, PATIENCE).await?;
        test.ready().await.map(drop)
    });
}

#[test]
fn what_somebody_does_to_a_release_by_hand_is_named_when_it_is_set_back() {
    run("helm-by-hand", |test| async move {
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        test.apply(&test.release(json!({}))).await?;
        test.ready().await?;
        let secrets: Api<Secret> = Api::namespaced(test.client.clone(), &test.namespace);
        // What `helm uninstall` leaves: no record.
        secrets
            .delete("sh.helm.release.v1.web.v1", &DeleteParams::default())
            .await?;
        let says_why = |object: &DynamicObject| {
            condition(object, "Ready").is_some_and(|(status, _, message)| {
                status == "True" && message.contains("web.v1 was uninstalled by someone else)")
            })
        };
        wait_for(&test.releases(), "web", says_why, PATIENCE).await?;
        let events: Api<Event> = Api::namespaced(test.client.clone(), &test.namespace);
        let told = events.list(&ListParams::default()).await?.items.into_iter();
        let told: Vec<_> = told
            .filter(|event| event.reason.as_deref() == Some("ForeignReleaseChange"))
            .collect();
        ensure!(told.len() == 1, "{told:?}");
        Ok(())
    });
}

#[test]
fn a_request_is_acknowledged_and_a_forced_one_makes_a_revision() {
    run("helm-requests", |test| async move {
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        test.apply(&test.release(json!({}))).await?;
        test.ready().await?;
        let token = objects::poke(&test.releases(), "web").await?;
        test.when(|object| said(object, "lastHandledReconcileAt") == token && objects::is_ready(object))
            .await?;
        ensure!(test.records("web").await?.len() == 1);
        let force = json!({"metadata": {"annotations": {
            "reconcile.fluxcd.io/requestedAt": "now", "reconcile.fluxcd.io/forceAt": "now",
        }}});
        test.releases()
            .patch("web", &PatchParams::default(), &Patch::Merge(force))
            .await?;
        let object = test.ready_at(2).await?;
        ensure!(said(&object, "lastHandledForceAt") == "now");
        Ok(())
    });
}

#[test]
fn a_suspended_release_stays_as_it_is_and_a_resumed_one_catches_up() {
    run("helm-suspend", |test| async move {
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        test.apply(&test.release(json!({}))).await?;
        test.ready().await?;
        test.apply(&test.release(json!({"suspend": true, "values": {"value": "later"}})))
            .await?;
        test.settle().await?;
        test.map_has("value", "default").await?;
        test.apply(&test.release(json!({"values": {"value": "later"}})))
            .await?;
        test.ready_at(2).await?;
        test.map_has("value", "later").await
    });
}

#[test]
fn a_release_waits_for_those_that_it_depends_on() {
    run("helm-depends", |test| async move {
        let ns = &test.namespace;
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        test.apply(&test.release(json!({"dependsOn": [{"name": "base"}]})))
            .await?;
        let message = test.refused("DependencyNotReady").await?;
        ensure!(
            message == format!("unable to get '{ns}/base' dependency: it does not exist"),
            "{message}"
        );
        let mut base = test.release(json!({}));
        base["metadata"]["name"] = json!("base");
        test.apply(&base).await?;
        test.ready().await?;
        let base = test.objects(HELM, "HelmRelease").get("base").await?;
        ensure!(objects::is_ready(&base));
        Ok(())
    });
}

#[test]
fn at_rest_nothing_is_asked_or_written() {
    run("helm-rest", |test| async move {
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        test.apply(&test.release(json!({}))).await?;
        let before = test.ready().await?;
        test.settle().await?;
        let after = test.releases().get("web").await?;
        ensure!(before.metadata.resource_version == after.metadata.resource_version);
        let map: ConfigMap = test.config_maps().get("web-map").await?;
        map.metadata.resource_version.context("it has a version")?;
        Ok(())
    });
}
