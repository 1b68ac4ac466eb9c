//! CEL: healthCheckExprs, and readyExpr of dependencies.

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use testkit::objects::{self, condition};
use testkit::wait_for;

use crate::world::{PATIENCE, Test, config_map, run};

/// ConfigMaps stand for a custom resource here: any kind can be judged.
fn with_phase(namespace: &str, phase: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: thing, namespace: {namespace}}}\ndata: {{phase: {phase}}}\n"
    )
}

fn checks() -> serde_json::Value {
    json!([{
        "apiVersion": "v1", "kind": "ConfigMap",
        "inProgress": "!has(data.extra) && data.phase == 'Working'",
        "failed": "data.phase == 'Broken'",
        "current": "data.phase == 'Done' || has(data.extra)",
    }])
}

#[test]
fn a_kind_is_judged_by_the_expressions_of_the_spec() {
    run("health-exprs", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", with_phase(ns, "Done"))])?;
        test.deliver(&repository, json!({"healthCheckExprs": checks()}))
            .await?;
        let push = async |phase: &str| -> Result<String> {
            test.push(
                &repository,
                &[testkit::git::Change::write(
                    "deploy/a.yaml",
                    with_phase(ns, phase),
                )],
            )
            .await
        };
        let revision = push("Broken").await?;
        let message = test.not_ready_at("app", &revision).await?;
        ensure!(
            message.contains("ConfigMap") && message.contains("'data.phase == 'Broken'' is true"),
            "{message}"
        );
        // In progress until someone does the work; the wait is woken by the change.
        let revision = push("Working").await?;
        let waits = |object: &kube::api::DynamicObject| condition(object, "Reconciling").is_some();
        wait_for(&test.kustomizations(), "app", waits, PATIENCE).await?;
        let work = json!({"data": {"extra": "1"}});
        test.config_maps()
            .patch("thing", &PatchParams::default(), &Patch::Merge(work))
            .await?;
        test.ready("app", &revision).await.map(drop)
    });
}

#[test]
fn an_expression_that_is_none_stalls() {
    run("health-exprs-bad", |test| async move {
        let repository = test.repository(&[("deploy/a.yaml", config_map(&test.namespace, "a", "1"))])?;
        test.git_source(&repository).await?;
        let check = json!([{"apiVersion": "v1", "kind": "ConfigMap", "current": "data.phase =="}]);
        test.apply(&test.kustomization("app", json!({"healthCheckExprs": check})))
            .await?;
        let message = test
            .not_ready(&test.kustomizations(), "app", "InvalidCELExpression")
            .await?;
        ensure!(
            message.starts_with("Reconciliation failed terminally due to configuration error: "),
            "{message}"
        );
        test.no_config_map("a").await
    });
}

/// Labels the Kustomization `base`.
async fn label(test: &Test, version: &str) -> Result<()> {
    let labels = json!({"metadata": {"labels": {"app/version": version}}});
    let patched = test
        .kustomizations()
        .patch("base", &PatchParams::default(), &Patch::Merge(labels))
        .await;
    Ok(patched.map(drop)?)
}

#[test]
fn a_dependency_is_ready_when_the_expression_says_so() {
    run("ready-expr", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[
            ("base/a.yaml", config_map(ns, "base", "1")),
            ("top/a.yaml", config_map(ns, "top", "1")),
        ])?;
        test.git_source(&repository).await?;
        test.apply(&test.kustomization("base", json!({"path": "base"})))
            .await?;
        label(&test, "v1").await?;
        let expression = "dep.metadata.labels['app/version'] == self.metadata.labels['app/version'] && \
                          dep.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')";
        let spec = json!({"path": "top", "dependsOn": [{"name": "base", "readyExpr": expression}]});
        let mut top = test.kustomization("top", spec);
        top["metadata"]["labels"] = json!({"app/version": "v2"});
        test.apply(&top).await?;
        let message = test
            .not_ready(&test.kustomizations(), "top", "DependencyNotReady")
            .await?;
        ensure!(
            message == format!("dependency '{ns}/base' is not ready according to readyExpr eval"),
            "{message}"
        );
        // A label alone wakes it.
        label(&test, "v2").await?;
        test.ready("top", &format!("main@sha1:{}", repository.resolve("main")?))
            .await?;

        let spec =
            json!({"path": "top", "dependsOn": [{"name": "base", "readyExpr": "other.metadata.name == ''"}]});
        test.apply(&test.kustomization("top", spec)).await?;
        let message = test
            .not_ready(&test.kustomizations(), "top", "InvalidCELExpression")
            .await?;
        ensure!(message.contains("undeclared reference to 'other'"), "{message}");
        objects::poke(&test.kustomizations(), "top").await.map(drop)
    });
}
