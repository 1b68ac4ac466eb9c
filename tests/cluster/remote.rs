//! kubeConfig: objects in another cluster, over a second control plane.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;
use testkit::git::Change;
use testkit::{ControlPlane, Options, wait_for, wait_until_gone};

use crate::world::{PATIENCE, Test, config_map, run};

/// Puts a kubeconfig into the Secret `remote`.
async fn kubeconfig_secret(test: &Test, kubeconfig: &str) -> Result<()> {
    test.apply(&json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "remote", "namespace": test.namespace},
        "stringData": {"value": kubeconfig},
    }))
    .await
}

#[test]
fn objects_are_applied_watched_and_pruned_in_the_other_cluster() {
    run("remote", |test| async move {
        let ns = &test.namespace;
        let remote = ControlPlane::start(Options::api_server_only()).await?;
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some(ns.clone()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        Api::<Namespace>::all(remote.client())
            .create(&PostParams::default(), &namespace)
            .await?;
        let maps: Api<ConfigMap> = Api::namespaced(remote.client(), ns);
        kubeconfig_secret(&test, &std::fs::read_to_string(remote.kubeconfig_path())?).await?;

        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "far", "1"))])?;
        test.deliver(
            &repository,
            json!({"kubeConfig": {"secretRef": {"name": "remote"}}}),
        )
        .await?;
        maps.get("far").await.context("it should be there")?;
        test.no_config_map("far").await?;

        // Drift over there is seen here.
        let edit = json!({"data": {"key": "drifted"}});
        maps.patch("far", &PatchParams::default(), &Patch::Merge(edit))
            .await?;
        let restored = |map: &ConfigMap| {
            map.data
                .as_ref()
                .and_then(|data| data.get("key"))
                .is_some_and(|v| v == "1")
        };
        wait_for(&maps, "far", restored, PATIENCE).await?;

        // An account of the other cluster that is allowed nothing there.
        let spec = json!({"kubeConfig": {"secretRef": {"name": "remote"}}, "serviceAccountName": "tenant"});
        test.apply(&test.kustomization("app", spec)).await?;
        let message = test
            .not_ready(&test.kustomizations(), "app", "ReconciliationFailed")
            .await?;
        ensure!(
            message.contains(&format!("User \"system:serviceaccount:{ns}:tenant\" cannot")),
            "{message}"
        );
        test.apply(&test.kustomization("app", json!({"kubeConfig": {"secretRef": {"name": "remote"}}})))
            .await?;
        let revision = test
            .push(
                &repository,
                &[Change::write("deploy/b.yaml", config_map(ns, "near", "1"))],
            )
            .await?;
        test.ready("app", &revision).await?;

        test.delete_kustomization("app").await?;
        wait_until_gone(&maps, "far", PATIENCE).await
    });
}

#[test]
fn a_kubeconfig_that_cannot_be_used_is_answered_with_the_reason() {
    run("remote-bad", |test| async move {
        let repository = test.repository(&[("deploy/a.yaml", config_map(&test.namespace, "a", "1"))])?;
        test.git_source(&repository).await?;
        let spec = json!({"kubeConfig": {"secretRef": {"name": "remote"}}});
        test.apply(&test.kustomization("app", spec)).await?;
        let refused = async |expected: &str| -> Result<()> {
            testkit::objects::poke(&test.kustomizations(), "app").await?;
            let says = |object: &kube::api::DynamicObject| {
                testkit::objects::condition(object, "Ready")
                    .is_some_and(|(_, _, message)| message.contains(expected))
            };
            wait_for(&test.kustomizations(), "app", says, PATIENCE)
                .await
                .map(drop)
        };
        refused("failed to read the KubeConfig secret").await?;
        let with = |user: serde_json::Value| {
            json!({
                "apiVersion": "v1", "kind": "Config", "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                // No one listens there.
                "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
                "users": [{"name": "u", "user": user}],
            })
            .to_string()
        };
        kubeconfig_secret(&test, "token: hunter2: [").await?;
        refused("failed to read the kubeconfig: it is not a valid kubeconfig").await?;
        kubeconfig_secret(
            &test,
            &with(json!({"exec": {"command": "id", "apiVersion": "client.authentication.k8s.io/v1"}})),
        )
        .await?;
        refused("refused the kubeconfig: exec is not allowed").await?;
        kubeconfig_secret(
            &test,
            &with(json!({"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"})),
        )
        .await?;
        refused("references a tokenFile, only an inline token is supported").await?;
        let start = Instant::now();
        kubeconfig_secret(&test, &with(json!({"token": "a"}))).await?;
        refused("failed to reach the remote cluster https://127.0.0.1:9/").await?;
        ensure!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
        // It cannot be pruned: it stays until it can be, or the reference is taken away.
        let spec = json!({"kubeConfig": null});
        let patch = Patch::Merge(json!({"spec": spec}));
        test.kustomizations()
            .patch("app", &PatchParams::default(), &patch)
            .await?;
        test.kustomizations()
            .delete("app", &DeleteParams::default())
            .await?;
        wait_until_gone(&test.kustomizations(), "app", PATIENCE).await
    });
}
