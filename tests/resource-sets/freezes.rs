//! Freezes of ResourceSets (ADR 28): nothing comes, changes or goes until they end.

use anyhow::{Result, ensure};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::objects::{self, apply, condition, text};
use testkit::{wait_for, wait_until_gone};

use crate::world::{PATIENCE, Scene, config_map, play};

const DELIVERY: &str = "delivery.windlass.dev/v1alpha1";

/// One ConfigMap for each name.
fn maps(names: &[&str], value: &str) -> Value {
    let inputs: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
    json!({"inputs": inputs, "resources": [config_map("<< inputs.name >>", json!({"value": value}))]})
}

impl Scene {
    async fn freeze(&self, name: &str, spec: Value) -> Result<DynamicObject> {
        let mut object = json!({"apiVersion": DELIVERY, "kind": "Freeze", "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"reason": "it is Friday"}});
        if let (Some(own), Value::Object(more)) = (object["spec"].as_object_mut(), spec) {
            own.extend(more);
        }
        apply(&self.client, &object).await
    }

    async fn thaw(&self, name: &str) -> Result<()> {
        let freezes = objects::api(&self.client, DELIVERY, "Freeze", &self.namespace);
        freezes.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until what a set has waits, and returns what is said of it.
    async fn frozen(&self, name: &str) -> Result<(DynamicObject, String)> {
        let set = self
            .wait(name, |set| {
                let generation = objects::field(set, "/status/observedGeneration").and_then(Value::as_i64);
                condition(set, "Frozen").is_some() && generation == set.metadata.generation
            })
            .await?;
        let said = condition(&set, "Frozen").map(|(_, _, said)| said.to_owned());
        Ok((set, said.unwrap_or_default()))
    }

    async fn map_has(&self, name: &str, value: &str) -> Result<()> {
        let has = |map: &DynamicObject| text(map, "/data/value") == value;
        wait_for(&self.config_maps(), name, has, PATIENCE).await.map(drop)
    }
}

#[test]
fn nothing_comes_changes_or_goes_until_a_freeze_ends() {
    play("rset-freeze", |scene| async move {
        scene.set("apps", maps(&["one", "two"], "1")).await?;
        let before = scene.applied("apps").await?;
        scene
            .freeze("friday", json!({"until": "2099-01-01T00:00:00Z"}))
            .await?;
        // What was never applied waits, and says so; when it does, the controller knows the Freeze.
        scene.set("canary", maps(&["never"], "1")).await?;
        let (canary, said) = scene.frozen("canary").await?;
        let (status, reason, _) = condition(&canary, "Ready").unwrap_or_default();
        ensure!((status, reason) == ("False", "Frozen"), "{status} {reason}");
        ensure!(
            said.ends_with(&format!(
                "waits until 2099-01-01T00:00:00Z by Freeze {}/friday: it is Friday",
                scene.namespace
            )),
            "{said}"
        );

        // One object more, one less, and another value.
        scene.set("apps", maps(&["two", "three"], "2")).await?;
        let (set, said) = scene.frozen("apps").await?;
        let (status, reason, message) = condition(&set, "Ready").unwrap_or_default();
        ensure!(
            (status, reason) == ("True", "ReconciliationSucceeded"),
            "{status} {reason}"
        );
        ensure!(
            message.starts_with("applied 2 objects") && message.ends_with(&format!("; frozen: {said}")),
            "{message}"
        );
        let applied = "/status/lastAppliedRevision";
        ensure!(text(&set, applied) == text(&before, applied));
        ensure!(scene.made_by("apps").await? == ["one", "two"]);
        scene.map_has("two", "1").await?;

        scene.thaw("friday").await?;
        let after = scene.applied("apps").await?;
        let after = scene
            .wait("apps", |set| condition(set, "Frozen").is_none())
            .await
            .unwrap_or(after);
        ensure!(text(&after, applied) != text(&before, applied));
        scene.map_has("two", "2").await?;
        scene.map_has("three", "2").await?;
        wait_until_gone(&scene.config_maps(), "one", PATIENCE).await?;
        scene.map_has("never", "1").await
    });
}

#[test]
fn drift_of_a_frozen_set_is_corrected_unless_the_freeze_pauses_that() {
    play("rset-freeze-drift", |scene| async move {
        scene.set("apps", maps(&["kept"], "1")).await?;
        scene.applied("apps").await?;
        scene
            .freeze("friday", json!({"apps": [{"kind": "ResourceSet", "name": "*"}]}))
            .await?;
        scene.set("canary", maps(&["never"], "1")).await?;
        scene.frozen("canary").await?;
        let other = Patch::Merge(json!({"data": {"value": "other"}}));
        scene
            .config_maps()
            .patch("kept", &PatchParams::default(), &other)
            .await?;
        scene.map_has("kept", "1").await?;

        scene
            .freeze(
                "friday",
                json!({"apps": [{"kind": "ResourceSet", "name": "*"}], "driftCorrection": "Pause"}),
            )
            .await?;
        // Watches of different kinds are not in step: once it knows, a run that is asked for corrects nothing.
        let paused = async {
            for at in 1.. {
                scene
                    .config_maps()
                    .patch("kept", &PatchParams::default(), &other)
                    .await?;
                let at = at.to_string();
                let asked = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": at}}});
                scene
                    .sets()
                    .patch("apps", &PatchParams::default(), &Patch::Merge(asked))
                    .await?;
                let set = scene
                    .wait("apps", |set| text(set, "/status/lastHandledReconcileAt") == at)
                    .await?;
                ensure!(condition(&set, "Frozen").is_none() && objects::is_ready(&set));
                if text(&scene.config_maps().get("kept").await?, "/data/value") == "other" {
                    break;
                }
            }
            Ok(())
        };
        tokio::time::timeout(PATIENCE, paused).await??;
        scene.thaw("friday").await?;
        scene.map_has("kept", "1").await
    });
}

#[test]
fn a_tenant_neither_forges_its_way_past_a_freeze_nor_exempts_itself() {
    play("rset-freeze-forged", |scene| async move {
        scene.set("apps", maps(&["web"], "1")).await?;
        scene.applied("apps").await?;
        scene.freeze("friday", json!({})).await?;
        scene.set("canary", maps(&["never"], "1")).await?;
        scene.frozen("canary").await?;
        // The revision of what is to be smuggled in, learnt from a set of the same content elsewhere in the queue.
        scene.set("apps", maps(&["web"], "2")).await?;
        let (_, said) = scene.frozen("apps").await?;
        let exempt = json!({"metadata": {"annotations": {"windlass.dev/freeze-exception": format!("{}/friday", scene.namespace)}}});
        scene
            .sets()
            .patch("apps", &PatchParams::default(), &Patch::Merge(exempt))
            .await?;
        let revision = said.split(' ').nth(1).unwrap_or_default().to_owned();
        let forged = json!({"status": {"lastAppliedRevision": revision}});
        scene
            .sets()
            .patch_status("apps", &PatchParams::default(), &Patch::Merge(forged))
            .await?;
        let asked = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "now"}}});
        scene
            .sets()
            .patch("apps", &PatchParams::default(), &Patch::Merge(asked))
            .await?;
        let set = scene
            .wait("apps", |set| text(set, "/status/lastHandledReconcileAt") == "now")
            .await?;
        ensure!(condition(&set, "Frozen").is_some());
        scene.map_has("web", "1").await
    });
}
