//! What people decide: holds and approvals, and what cannot be read.

use anyhow::ensure;
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::git::Change;
use testkit::objects::{self, condition, text};

use crate::world::{DELIVERY, KUSTOMIZE, Scene, app, play, release_of, waits};

const HOLDS: &str = "delivery.windlass.dev/holds";
const APPROVALS: &str = "delivery.windlass.dev/approvals";

async fn annotate(scene: &Scene, name: &str, value: Value) -> anyhow::Result<()> {
    let api = objects::api(&scene.client, DELIVERY, "Pipeline", &scene.namespace);
    let value = match value {
        Value::String(text) => json!(text),
        Value::Null => Value::Null,
        other => json!(other.to_string()),
    };
    let patch = json!({"metadata": {"annotations": {name: value}}});
    api.patch("shop", &PatchParams::default(), &Patch::Merge(&patch))
        .await?;
    Ok(())
}

#[test]
fn a_release_waits_for_people_and_a_hold_goes_before_them() {
    play("decide", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        let repository = scene
            .fleet(&[
                ("dev", app(&dev, team, "v1")),
                ("production", app(&production, team, "v1")),
            ])
            .await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [{"namespace": production}], "approvals": {"required": 1}},
        ]);
        scene.pipeline("Kustomization", environments).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        let next = Change::write("dev/shop.yaml", app(&dev, team, "v2"));
        repository.commit("main", "by a person", &[next])?;
        let waiting = |said: &str| {
            let said = vec![said.to_owned()];
            scene.wait(move |pipeline| waits(pipeline, 1) == said)
        };
        let pipeline = waiting("release 2: approval 0 of 1").await?;
        let digest = text(&pipeline, "/status/releases/1/digest").to_owned();

        annotate(
            &scene,
            HOLDS,
            json!([{"release": 2, "by": "ana", "reason": "incident 7"}]),
        )
        .await?;
        waiting("release 2 is held by ana: incident 7").await?;
        let approval = json!([{"environment": "production", "digest": digest, "by": "ben"}]);
        annotate(&scene, APPROVALS, approval).await?;
        // What cannot be read may have been a hold.
        annotate(&scene, HOLDS, json!("[{")).await?;
        let pipeline = scene
            .wait(|pipeline| {
                condition(pipeline, "Ready").is_some_and(|(_, reason, _)| reason == "InvalidAnnotation")
            })
            .await?;
        let (_, _, message) = condition(&pipeline, "Ready").unwrap_or_default();
        ensure!(
            message.starts_with("nothing is promoted: the annotation delivery.windlass.dev/holds"),
            "{message}"
        );
        let file = repository.git(&["show", "main:production/shop.yaml"])?;
        ensure!(file.contains("v1 # of the day"), "{file}");

        annotate(&scene, HOLDS, Value::Null).await?;
        scene
            .has(
                (KUSTOMIZE, "Kustomization"),
                &production,
                "/spec/images/0/newTag",
                "v2",
            )
            .await
    });
}

#[test]
fn what_people_take_back_in_git_is_not_promoted_again() {
    play("takeback", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        let repository = scene
            .fleet(&[
                ("dev", app(&dev, team, "v1")),
                ("production", app(&production, team, "v1")),
            ])
            .await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [{"namespace": production}]},
        ]);
        scene.pipeline("Kustomization", environments).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        let deploy = |folder: &str, namespace: &str, tag: &str| {
            let change = Change::write(&format!("{folder}/shop.yaml"), app(namespace, team, tag));
            repository.commit("main", "by a person", &[change])
        };
        deploy("dev", &dev, "v2")?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(2)).await?;
        deploy("production", &production, "v1")?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        // Something that wakes it, and a release that does go on.
        deploy("dev", &dev, "v3")?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(3)).await?;
        let log = repository.git(&["log", "--format=%s", "main", "--", "production"])?;
        let ours = log.lines().filter(|line| line.starts_with("Promote"));
        ensure!(ours.count() == 2, "{log}");
        Ok(())
    });
}

#[test]
fn a_gate_is_read_as_the_pipelines_account_and_closed_while_it_cannot_be() {
    play("gate", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        let repository = scene
            .fleet(&[
                ("dev", app(&dev, team, "v1")),
                ("production", app(&production, team, "v1")),
            ])
            .await?;
        let gate = json!({
            "name": "tests",
            "object": {"apiVersion": "v1", "kind": "ConfigMap", "name": "tests"},
            "expr": "object.data.passed == string(release.number) && environment == 'production'",
        });
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [{"namespace": production}], "gates": [gate]},
        ]);
        scene.pipeline("Kustomization", environments).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        let next = Change::write("dev/shop.yaml", app(&dev, team, "v2"));
        repository.commit("main", "by a person", &[next])?;
        let waiting = |said: String| scene.wait(move |pipeline| waits(pipeline, 1) == [said.clone()]);
        let user = format!("system:serviceaccount:{team}:promoter");
        waiting(format!(
            "gate tests: ConfigMap/tests: configmaps \"tests\" is forbidden: User \"{user}\" cannot get resource \"configmaps\" \
             in API group \"\" in the namespace \"{team}\""
        ))
        .await?;
        let rbac = "rbac.authorization.k8s.io";
        let role = json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": {"name": "gates", "namespace": team},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}],
        });
        let binding = json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": {"name": "gates", "namespace": team},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "gates"},
            "subjects": [{"kind": "ServiceAccount", "name": "promoter", "namespace": team}],
        });
        let mut map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tests", "namespace": team},
            "data": {"passed": "1"},
        });
        for object in [&role, &binding, &map] {
            objects::apply(&scene.client, object).await?;
        }
        waiting("gate tests: ConfigMap/tests does not fulfil it yet".to_owned()).await?;
        map["data"]["passed"] = json!("2");
        objects::apply(&scene.client, &map).await?;
        scene
            .has(
                (KUSTOMIZE, "Kustomization"),
                &production,
                "/spec/images/0/newTag",
                "v2",
            )
            .await
    });
}

#[test]
fn a_release_waits_for_the_job_that_tests_it() {
    play("job", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        let repository = scene
            .fleet(&[
                ("dev", app(&dev, team, "v1")),
                ("production", app(&production, team, "v1")),
            ])
            .await?;
        let rbac = "rbac.authorization.k8s.io";
        let role = json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": {"name": "jobs", "namespace": team},
            "rules": [
                {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "create"]},
                {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]},
            ],
        });
        let binding = json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": {"name": "jobs", "namespace": team},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "jobs"},
            "subjects": [{"kind": "ServiceAccount", "name": "promoter", "namespace": team}],
        });
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "promoter", "namespace": team},
        });
        for object in [&account, &role, &binding] {
            objects::apply(&scene.client, object).await?;
        }
        let environments = |labels: Value| {
            let containers = json!([{"name": "tests", "image": "registry.example.com/tests:v1"}]);
            let template = json!({
                "metadata": {"labels": labels}, "spec": {"restartPolicy": "Never", "containers": containers},
            });
            let gate = json!({"name": "tests", "job": {"spec": {"backoffLimit": 0, "template": template}}});
            json!([
                {"name": "dev", "targets": [{"namespace": dev}]},
                {"name": "production", "targets": [{"namespace": production}], "gates": [gate]},
            ])
        };
        for line in ["2 tests failed", "", "checkout answers 500"] {
            scene.world.control_plane.log(line)?;
        }
        let failing = json!({"testkit.windlass.dev/outcome": "job-failure"});
        scene.pipeline("Kustomization", environments(failing)).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        let next = Change::write("dev/shop.yaml", app(&dev, team, "v2"));
        repository.commit("main", "by a person", &[next])?;
        let has_failed = |wait: &String| {
            (wait.starts_with("gate tests: Job/shop-production-tests-") && wait.contains(" failed: "))
                && wait.contains("its log ends with: 2 tests failed | checkout answers 500")
        };
        scene
            .wait(|pipeline| waits(pipeline, 1).iter().any(has_failed))
            .await?;
        let file = repository.git(&["show", "main:production/shop.yaml"])?;
        ensure!(file.contains("v1 # of the day"), "{file}");
        let jobs: Api<Job> = Api::namespaced(scene.client.clone(), team);
        let made = jobs.list(&ListParams::default()).await?.items;
        let template = made[0].spec.clone().unwrap_or_default().template;
        let annotations = template.metadata.and_then(|metadata| metadata.annotations);
        let told = annotations
            .unwrap_or_default()
            .remove("delivery.windlass.dev/release");
        ensure!(made.len() == 1 && told.as_deref() == Some("2"), "{told:?}");
        // Another spec is another Job.
        scene.pipeline("Kustomization", environments(json!({}))).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(2)).await?;
        ensure!(
            jobs.list(&ListParams::default()).await?.items.len() == 2,
            "the account may not delete"
        );
        Ok(())
    });
}
