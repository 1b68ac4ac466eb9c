//! Tests of the changes that an apply reports field by field, in the event and in the history.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use serde_json::json;
use testkit::git::Change;
use testkit::wait_for;

use crate::world::{PATIENCE, Test, deployment, run};

fn secret(namespace: &str, password: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": namespace},
        "stringData": {"password": password},
    })
    .to_string()
}

fn told(object: &DynamicObject) -> &str {
    let changes = object
        .data
        .pointer("/status/history/0/metadata/windlass.dev~1changes");
    changes.and_then(serde_json::Value::as_str).unwrap_or_default()
}

/// Waits until the history of Kustomization `app` tells of a change.
async fn tells(test: &Test, what: &str) -> Result<String> {
    let has = |object: &DynamicObject| told(object).contains(what);
    let object = wait_for(&test.kustomizations(), "app", has, PATIENCE).await?;
    Ok(told(&object).to_owned())
}

/// Waits for the event of Kustomization `app` that tells of a change.
pub async fn event(test: &Test, what: &str) -> Result<String> {
    let events: Api<Event> = Api::namespaced(test.client.clone(), &test.namespace);
    let found = async {
        loop {
            let list = events.list(&ListParams::default()).await?;
            let mut messages = list.items.into_iter().filter_map(|event| event.message);
            if let Some(message) = messages.find(|message| message.contains(what)) {
                return anyhow::Ok(message);
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, found)
        .await
        .context("no such event")?
}

#[test]
fn a_revision_tells_which_fields_it_changed_and_no_secret() {
    run("changes", |test| async move {
        let ns = test.namespace.clone();
        let repository = test.repository(&[
            ("deploy/web.yaml", deployment(&ns, "web", "example.com/web:1", 1)),
            ("deploy/login.yaml", secret(&ns, "hunter2")),
        ])?;
        let created = test.deliver(&repository, json!({})).await?;
        ensure!(
            told(&created).is_empty(),
            "what is created has no fields that changed: {}",
            told(&created)
        );

        let changes = [
            Change::write(
                "deploy/web.yaml",
                deployment(&ns, "web", "example.com/web:2", 1).as_bytes(),
            ),
            Change::write("deploy/login.yaml", secret(&ns, "correct horse").as_bytes()),
        ];
        let revision = test.push(&repository, &changes).await?;
        let object = test.ready("app", &revision).await?;
        let expected = format!(
            "Secret/{ns}/login:\n  data.password: *** (before) → *** (after)\nDeployment/{ns}/web:\n  \
             spec.template.spec.containers[name=app].image: \"example.com/web:1\" → \"example.com/web:2\""
        );
        ensure!(told(&object) == expected, "{}", told(&object));
        let message = event(&test, "web:2").await?;
        ensure!(
            message == format!("Secret/{ns}/login configured\nDeployment/{ns}/web configured\n\n{expected}"),
            "{message}"
        );
        Ok(())
    });
}

#[test]
fn restored_drift_tells_what_had_been_changed_and_by_whom() {
    run("changes-drift", |test| async move {
        let ns = test.namespace.clone();
        let repository =
            test.repository(&[("deploy/web.yaml", deployment(&ns, "web", "example.com/web:1", 1))])?;
        test.deliver(&repository, json!({})).await?;
        let deployments: Api<Deployment> = Api::namespaced(test.client.clone(), &ns);
        for manager in ["autoscaler", "kubectl-edit"] {
            let by = PatchParams {
                field_manager: Some(manager.to_owned()),
                ..PatchParams::default()
            };
            let scale = Patch::Merge(json!({"spec": {"replicas": 5}}));
            deployments.patch("web", &by, &scale).await?;
            let text = tells(
                &test,
                &format!("spec.replicas: 5 → 1 (was set by {manager} at 20"),
            )
            .await?;
            ensure!(text.starts_with(&format!("Deployment/{ns}/web:\n")), "{text}");
        }
        Ok(())
    });
}

#[test]
fn what_is_made_of_secrets_shows_no_value() {
    run("changes-secret", |test| async move {
        let ns = test.namespace.clone();
        let variables = |password: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "variables", "namespace": ns},
                "stringData": {"password": password}})
        };
        test.apply(&variables("hunter2")).await?;
        let manifest = crate::world::config_map(&ns, "a", "${password}");
        let repository = test.repository(&[("deploy/a.yaml", manifest)])?;
        let spec = json!({"postBuild": {"substituteFrom": [{"kind": "Secret", "name": "variables"}]}});
        test.deliver(&repository, spec).await?;
        test.apply(&variables("hunter3")).await?;
        test.config_map_has("a", "key", "hunter3").await?;
        let text = tells(&test, "data.key: *** (before) → *** (after)").await?;
        ensure!(!text.contains("hunter"), "{text}");
        Ok(())
    });
}
