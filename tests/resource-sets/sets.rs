//! What ResourceSets of the documentation's shape do.

use anyhow::ensure;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::objects::{self, apply, condition, field, is_not_ready_because, text};
use testkit::{wait_for, wait_until_gone};

use crate::world::{GROUP, PATIENCE, config_map, play};

#[test]
fn inline_inputs_make_objects_that_are_updated_healed_pruned_and_deleted() {
    play("rset-life", |scene| async move {
        let template = |inputs: Value| {
            json!({
                "commonMetadata": {"labels": {"team": "shop"}},
                "inputs": inputs,
                "resources": [config_map("app-<< inputs.tenant >>", json!({"size": "<< inputs.size | quote >>"}))],
            })
        };
        let both = json!([{"tenant": "a", "size": 1}, {"tenant": "b", "size": 2}]);
        scene.set("apps", template(both)).await?;
        let set = scene.applied("apps").await?;
        ensure!(scene.made_by("apps").await? == ["app-a", "app-b"]);
        ensure!(
            field(&set, "/status/inventory/entries")
                .and_then(Value::as_array)
                .map(Vec::len)
                == Some(2)
        );
        ensure!(text(&set, "/status/lastAppliedRevision").starts_with("sha256:"));
        ensure!(text(&set, "/status/history/0/lastReconciledStatus") == "ReconciliationSucceeded");

        let made = scene.config_maps().get("app-b").await?;
        ensure!(text(&made, "/data/size") == "2");
        ensure!(
            made.metadata
                .labels
                .as_ref()
                .and_then(|labels| labels.get("team"))
                .is_some_and(|team| team == "shop")
        );
        let managers = made.metadata.managed_fields.unwrap_or_default();
        ensure!(
            managers
                .iter()
                .any(|entry| entry.manager.as_deref() == Some("flux-operator"))
        );

        // What someone else changes or deletes is put right at once.
        let change = Patch::Merge(json!({"data": {"size": "9"}}));
        scene
            .config_maps()
            .patch("app-b", &PatchParams::default(), &change)
            .await?;
        wait_for(
            &scene.config_maps(),
            "app-b",
            |map| text(map, "/data/size") == "2",
            PATIENCE,
        )
        .await?;
        scene
            .config_maps()
            .delete("app-a", &DeleteParams::default())
            .await?;
        wait_for(
            &scene.config_maps(),
            "app-a",
            |map| text(map, "/data/size") == "1",
            PATIENCE,
        )
        .await?;

        // One input less, one object less; and all go with the set.
        scene
            .set("apps", template(json!([{"tenant": "b", "size": 3}])))
            .await?;
        wait_until_gone(&scene.config_maps(), "app-a", PATIENCE).await?;
        wait_for(
            &scene.config_maps(),
            "app-b",
            |map| text(map, "/data/size") == "3",
            PATIENCE,
        )
        .await?;
        scene.sets().delete("apps", &DeleteParams::default()).await?;
        wait_until_gone(&scene.sets(), "apps", PATIENCE).await?;
        wait_until_gone(&scene.config_maps(), "app-b", PATIENCE).await
    });
}

#[test]
fn providers_are_flattened_and_permuted_and_wake_their_sets() {
    play("rset-providers", |scene| async move {
        let fixed = |values: Value| json!({"type": "Static", "defaultValues": values});
        scene.set("all", json!({
            "inputsFrom": [{"kind": "ResourceSetInputProvider", "selector": {"matchLabels": {"for": "all"}}}],
            "inputStrategy": {"name": "Permute"},
            "resources": [config_map("m-<< inputs.one.value >>-<< inputs.two_b.value >>", json!({}))],
        })).await?;
        scene.set("flat", json!({
            "inputsFrom": [{"apiVersion": GROUP, "kind": "ResourceSetInputProvider", "name": "one"}],
            "resources": [config_map("f-<< inputs.value >>", json!({"provider": "<< inputs.provider.name >>"}))],
        })).await?;
        let waits = scene
            .wait("flat", |set| is_not_ready_because(set, "DependencyNotReady"))
            .await?;
        let message = condition(&waits, "Ready")
            .map(|(_, _, message)| message.to_owned())
            .unwrap_or_default();
        ensure!(
            message == "the ResourceSetInputProvider 'one' does not exist in the namespace",
            "{message}"
        );

        let labels = json!({"labels": {"for": "all"}});
        for (name, value) in [("one", "x"), ("two-b", "y")] {
            scene
                .make(
                    "ResourceSetInputProvider",
                    name,
                    fixed(json!({"value": value})),
                    labels.clone(),
                )
                .await?;
        }
        wait_for(&scene.config_maps(), "m-x-y", |_| true, PATIENCE).await?;
        let flat = wait_for(&scene.config_maps(), "f-x", |_| true, PATIENCE).await?;
        ensure!(text(&flat, "/data/provider") == "one");

        scene
            .make(
                "ResourceSetInputProvider",
                "one",
                fixed(json!({"value": "z"})),
                labels,
            )
            .await?;
        wait_for(&scene.config_maps(), "m-z-y", |_| true, PATIENCE).await?;
        wait_until_gone(&scene.config_maps(), "m-x-y", PATIENCE).await?;
        wait_until_gone(&scene.config_maps(), "f-x", PATIENCE).await
    });
}

#[test]
fn steps_wait_for_health_and_the_first_failure_ends_them() {
    play("rset-steps", |scene| async move {
        let job = |outcome: &str| {
            json!({
                "apiVersion": "batch/v1", "kind": "Job",
                "metadata": {
                    "name": "migrate",
                    "annotations": {"fluxcd.controlplane.io/recreateOnFailure": "enabled"},
                },
                "spec": {"backoffLimit": 0, "template": {
                    "metadata": {"labels": {"testkit.windlass.dev/outcome": outcome}},
                    "spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "h.io/m"}]},
                }},
            })
        };
        let steps = |outcome: &str| {
            json!({"steps": [
                {"name": "migrate", "resources": [job(outcome)], "timeout": "30s"},
                {"name": "app", "resources": [config_map("app", json!({}))]},
            ]})
        };
        scene.set("release", steps("job-failure")).await?;
        let failed = scene
            .wait("release", |set| is_not_ready_because(set, "HealthCheckFailed"))
            .await?;
        let message = condition(&failed, "Ready")
            .map(|(_, _, message)| message.to_owned())
            .unwrap_or_default();
        ensure!(
            message.starts_with("step 'migrate': health check failed"),
            "{message}"
        );
        ensure!(scene.config_maps().get_opt("app").await?.is_none());

        // The Job has failed and cannot be changed: it is made again.
        scene.set("release", steps("")).await?;
        scene.applied("release").await?;
        ensure!(scene.config_maps().get_opt("app").await?.is_some());
        Ok(())
    });
}

#[test]
fn dependencies_of_any_kind_come_first() {
    play("rset-dependencies", |scene| async move {
        scene
            .set(
                "app",
                json!({
                    "dependsOn": [{
                        "apiVersion": "v1", "kind": "ConfigMap", "name": "gate", "namespace": scene.namespace,
                        "ready": true, "readyExpr": "data.open == 'yes'",
                    }],
                    "resources": [config_map("app", json!({}))],
                }),
            )
            .await?;
        let waits = |set: &kube::api::DynamicObject, words: &str| {
            condition(set, "Ready")
                .is_some_and(|(_, reason, message)| reason == "DependencyNotReady" && message.contains(words))
        };
        scene.wait("app", |set| waits(set, "does not exist")).await?;
        let gate = |open: &str| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gate", "namespace": scene.namespace},
                "data": {"open": open}})
        };
        apply(&scene.client, &gate("no")).await?;
        scene
            .wait("app", |set| waits(set, "is not ready by its readyExpr"))
            .await?;
        apply(&scene.client, &gate("yes")).await?;
        scene.applied("app").await?;
        Ok(())
    });
}

#[test]
fn annotations_copy_convert_and_sum() {
    play("rset-annotations", |scene| async move {
        let kubeconfig = "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n\
            clusters: [{name: k, cluster: {server: 'https://k.example.com'}}]\nusers: []\n";
        let secret = |data: Value| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {
                "name": "from", "namespace": scene.namespace, "labels": {"reconcile.fluxcd.io/watch": "Enabled"},
            }, "stringData": data})
        };
        apply(&scene.client, &secret(json!({"value": kubeconfig, "key": "one"}))).await?;
        let from = format!("{}/from", scene.namespace);
        let annotated = |object: Value, name: &str, value: &str| {
            let mut object = object;
            object["metadata"]["annotations"] = json!({format!("fluxcd.controlplane.io/{name}"): value});
            object
        };
        let copy = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "copy"}});
        let pod = json!({"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "d", "image": "h.io/d"}]}});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "d"}}, "template": pod}});
        scene
            .set(
                "app",
                json!({"resources": [
                    annotated(copy, "copyFrom", &from),
                    annotated(config_map("cluster", json!({})), "convertKubeConfigFrom", &from),
                    annotated(deployment, "checksumFrom", &format!("Secret/{from}")),
                ]}),
            )
            .await?;
        let set = scene.applied("app").await?;
        let secrets = objects::api(&scene.client, "v1", "Secret", &scene.namespace);
        ensure!(text(&secrets.get("copy").await?, "/data/key") == "b25l");
        let cluster = scene.config_maps().get("cluster").await?;
        ensure!(text(&cluster, "/data/address") == "https://k.example.com");
        let deployments = objects::api(&scene.client, "apps/v1", "Deployment", &scene.namespace);
        let at = "/spec/template/metadata/annotations/fluxcd.controlplane.io~1checksum";
        let before = text(&deployments.get("d").await?, at).to_owned();
        ensure!(before.starts_with("sha256:"), "{before}");
        let reference = format!("/status/externalChecksumRefs/Secret~1{}~1from", scene.namespace);
        ensure!(text(&set, &reference).starts_with("sha256:"));

        // The label wakes its users.
        apply(&scene.client, &secret(json!({"value": kubeconfig, "key": "two"}))).await?;
        wait_for(&deployments, "d", |found| text(found, at) != before, PATIENCE).await?;
        wait_for(
            &secrets,
            "copy",
            |found| text(found, "/data/key") == "dHdv",
            PATIENCE,
        )
        .await?;
        Ok(())
    });
}

#[test]
fn what_is_disabled_is_left_alone() {
    play("rset-disabled", |scene| async move {
        let off = json!({"annotations": {"fluxcd.controlplane.io/reconcile": "disabled"}});
        let spec = |value: &str| json!({"resources": [config_map("app", json!({"v": value}))]});
        scene.set("app", spec("1")).await?;
        scene.applied("app").await?;
        // An object that is frozen in place stays as people change it.
        let frozen = Patch::Merge(json!({"metadata": off, "data": {"v": "mine"}}));
        scene
            .config_maps()
            .patch("app", &PatchParams::default(), &frozen)
            .await?;
        scene.set("app", spec("2")).await?;
        scene.applied("app").await?;
        ensure!(text(&scene.config_maps().get("app").await?, "/data/v") == "mine");
        // A set that is disabled leaves its objects when it is deleted.
        scene.make("ResourceSet", "app", spec("3"), off).await?;
        scene.sets().delete("app", &DeleteParams::default()).await?;
        wait_until_gone(&scene.sets(), "app", PATIENCE).await?;
        ensure!(scene.config_maps().get_opt("app").await?.is_some());
        Ok(())
    });
}

#[test]
fn errors_name_what_is_wrong() {
    play("rset-errors", |scene| async move {
        for (name, spec, reason, words) in [
            (
                "missing",
                json!({"inputs": [{"a": 1}], "resourcesTemplate": "<< inputs.b >>"}),
                "BuildFailed",
                "map has no entry for key \"b\"",
            ),
            (
                "kind",
                json!({"resources": [{"apiVersion": "no.example.com/v1", "kind": "Nothing", "metadata": {"name": "x"}}]}),
                "ReconciliationFailed",
                "Nothing",
            ),
            (
                "interval",
                json!({"resources": [config_map("x", json!({}))]}),
                "BuildFailed",
                "fluxcd.controlplane.io/reconcileEvery is no duration",
            ),
        ] {
            let metadata = match name {
                "interval" => json!({"annotations": {"fluxcd.controlplane.io/reconcileEvery": "often"}}),
                _ => json!({}),
            };
            scene.make("ResourceSet", name, spec, metadata).await?;
            let failed = scene.wait(name, |set| is_not_ready_because(set, reason)).await?;
            let message = condition(&failed, "Ready")
                .map(|(_, _, message)| message.to_owned())
                .unwrap_or_default();
            ensure!(message.contains(words), "{name}: {message}");
        }
        let refused = scene.set("both", json!({"resources": [], "steps": [{"name": "a", "resourcesTemplate": "x"}], "resourcesTemplate": "y"})).await;
        ensure!(refused.is_err_and(|error| format!("{error:#}").contains("steps cannot be combined")));
        Ok(())
    });
}
