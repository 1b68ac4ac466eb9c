//! Fields that a Kustomization leaves to others (`spec.ignore`).

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use testkit::git::Change;
use testkit::wait_for;

use crate::world::{PATIENCE, Test, config_map, deployment, run};

fn image_of(deployment: &Deployment) -> Option<&str> {
    let spec = deployment.spec.as_ref()?.template.spec.as_ref()?;
    spec.containers.first()?.image.as_deref()
}

fn replicas_of(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref()?.replicas
}

/// Waits until the Deployment has the image; returns it.
async fn has_image(api: &Api<Deployment>, image: &str) -> Result<Deployment> {
    wait_for(
        api,
        "web",
        |found: &Deployment| image_of(found) == Some(image),
        PATIENCE,
    )
    .await
}

/// Tells whether the controller's entry owns `spec.replicas`.
fn owns_replicas(deployment: &Deployment) -> bool {
    let entries = deployment.metadata.managed_fields.iter().flatten();
    let mut ours = entries.filter(|entry| entry.manager.as_deref() == Some("kustomize-controller"));
    ours.any(|entry| {
        entry
            .fields_v1
            .as_ref()
            .is_some_and(|fields| fields.0.pointer("/f:spec/f:replicas").is_some())
    })
}

/// How often drift of the Deployment was told.
fn drifts(test: &Test) -> usize {
    let object = format!("Deployment/{}/web", test.namespace);
    let log = test.world.apply.log();
    let told = |line: &&str| line.contains("\"drift\"") && line.contains(&object) && line.contains("owner");
    log.lines().filter(told).count()
}

#[test]
fn ignored_fields_are_left_to_others_and_all_else_is_applied() {
    run("ignore", |test| async move {
        let ns = test.namespace.clone();
        let manifest = |image: &str| deployment(&ns, "web", image, 1);
        let repository = test.repository(&[("deploy/web.yaml", manifest("example.com/web:1"))])?;
        let rules = json!({"ignore": [
            {"paths": ["/spec/replicas", "/spec/template/spec/containers/0/resources"], "target": {"kind": "Deploy.*"}},
            {"paths": ["/spec/paused"], "target": {"kind": "StatefulSet"}},
        ]});
        test.deliver(&repository, rules).await?;
        let deployments: Api<Deployment> = Api::namespaced(test.client.clone(), &ns);
        ensure!(
            replicas_of(&deployments.get("web").await?) == Some(1),
            "created as the manifest says"
        );

        // Someone scales: neither told nor undone, while the edit of another field is.
        let edit = |patch: Value| Patch::Strategic(patch);
        let scaled = edit(
            json!({"spec": {"replicas": 3, "template": {"spec": {"containers": [
            {"name": "app", "resources": {"limits": {"cpu": "1"}}}]}}}}),
        );
        deployments.patch("web", &PatchParams::default(), &scaled).await?;
        let wrong = edit(
            json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "wrong"}]}}}}),
        );
        deployments.patch("web", &PatchParams::default(), &wrong).await?;
        let restored = has_image(&deployments, "example.com/web:1").await?;
        ensure!(replicas_of(&restored) == Some(3), "replicas were undone");
        ensure!(
            owns_replicas(&restored),
            "what nobody else applied keeps us as its owner"
        );
        ensure!(
            drifts(&test) == 1,
            "drift was told {} times:\n{}",
            drifts(&test),
            test.world.apply.log()
        );

        // An autoscaler that applies becomes the only owner with the next revision.
        let apply = |manager: &str, replicas: i32| {
            let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": replicas}});
            (PatchParams::apply(manager).force(), Patch::Apply(object))
        };
        let (params, patch) = apply("autoscaler", 5);
        deployments.patch("web", &params, &patch).await?;
        let revision = test
            .push(
                &repository,
                &[Change::write(
                    "deploy/web.yaml",
                    manifest("example.com/web:2").as_bytes(),
                )],
            )
            .await?;
        test.ready("app", &revision).await?;
        let updated = has_image(&deployments, "example.com/web:2").await?;
        ensure!(replicas_of(&updated) == Some(5) && !owns_replicas(&updated));
        let resources = serde_json::to_value(&updated)?;
        let cpu = resources.pointer("/spec/template/spec/containers/0/resources/limits/cpu");
        ensure!(cpu == Some(&json!("1")), "resources were undone: {cpu:?}");

        // Without the rules the manifest counts again.
        let none = Patch::Merge(json!({"spec": {"ignore": null}}));
        test.kustomizations()
            .patch("app", &PatchParams::default(), &none)
            .await?;
        let is_one = |found: &Deployment| replicas_of(found) == Some(1);
        wait_for(&deployments, "web", is_one, PATIENCE).await?;
        Ok(())
    });
}

#[test]
fn a_change_of_an_ignored_field_that_cannot_change_neither_fails_nor_recreates() {
    run("ignore-force", |test| async move {
        let ns = &test.namespace;
        let immutable = |value: &str, other: &str| {
            format!(
                "{}  other: \"{other}\"\nimmutable: true\n",
                config_map(ns, "fixed", value)
            )
        };
        let repository = test.repository(&[("deploy/a.yaml", immutable("1", "1"))])?;
        let rules = json!({"force": true, "ignore": [{"paths": ["/data/key"], "target": {"name": "fixed"}}]});
        test.deliver(&repository, rules).await?;
        let created = test.config_maps().get("fixed").await?;

        let revision = test
            .push(
                &repository,
                &[Change::write("deploy/a.yaml", immutable("2", "1").as_bytes())],
            )
            .await?;
        test.ready("app", &revision).await?;
        let kept = test.config_maps().get("fixed").await?;
        ensure!(kept.metadata.uid == created.metadata.uid && kept.data == created.data);

        // Force is for the other fields still, and what is re-created is made as the manifest says.
        let revision = test
            .push(
                &repository,
                &[Change::write("deploy/a.yaml", immutable("2", "2").as_bytes())],
            )
            .await?;
        test.ready("app", &revision).await?;
        let recreated = test.config_map_has("fixed", "key", "2").await?;
        ensure!(recreated.metadata.uid != created.metadata.uid);
        Ok(())
    });
}

#[test]
fn rules_that_cannot_be_read_stall_the_kustomization_in_fluxs_words() {
    run("ignore-wrong", |test| async move {
        let repository = test.repository(&[("deploy/a.yaml", config_map(&test.namespace, "a", "1"))])?;
        test.git_source(&repository).await?;
        let rules = json!({"ignore": [{"paths": ["/data"], "target": {"name": "a("}}]});
        test.apply(&test.kustomization("app", rules)).await?;
        let message = test
            .not_ready(&test.kustomizations(), "app", "ReconciliationFailed")
            .await?;
        ensure!(
            message.starts_with(
                "failed to create ignore rule selector: invalid name regex: error parsing regexp: "
            ),
            "{message}"
        );
        test.no_config_map("a").await
    });
}
