//! serviceAccountName and its lock: a Kustomization may do what its account may, and nothing else.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testkit::Controller;
use testkit::git::Change;
use testkit::objects::{self, is_ready};

use crate::world::{PATIENCE, Test, config_map, deployment, run};

/// A service account that may do everything with some resources of the test's namespace.
pub async fn account(test: &Test, name: &str, groups: &[&str], resources: &[&str]) -> Result<()> {
    let namespace = &test.namespace;
    let object = |kind: &str| json!({"kind": kind, "metadata": {"name": name, "namespace": namespace}});
    let with = |mut object: Value, fields: Value| {
        let fields = fields.as_object().cloned().unwrap_or_default();
        object
            .as_object_mut()
            .into_iter()
            .for_each(|object| object.extend(fields.clone()));
        object
    };
    let rbac = "rbac.authorization.k8s.io";
    test.apply(&with(object("ServiceAccount"), json!({"apiVersion": "v1"})))
        .await?;
    let rules = json!([{"apiGroups": groups, "resources": resources, "verbs": ["*"]}]);
    let version = format!("{rbac}/v1");
    test.apply(&with(
        object("Role"),
        json!({"apiVersion": version, "rules": rules}),
    ))
    .await?;
    let binding = json!({
        "apiVersion": version,
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    });
    test.apply(&with(object("RoleBinding"), binding)).await
}

#[test]
fn an_account_may_do_what_rbac_allows_and_nothing_else() {
    run("tenant", |test| async move {
        let ns = &test.namespace;
        account(
            &test,
            "tenant",
            &["", "apps"],
            &["configmaps", "deployments", "replicasets", "pods", "events"],
        )
        .await?;
        let repository = test.repository(&[
            ("deploy/a.yaml", config_map(ns, "mine", "1")),
            ("deploy/b.yaml", deployment(ns, "web", "example.com/app:1", 1)),
        ])?;
        // Its health is waited for with the account's rights too: in one namespace.
        test.deliver(&repository, json!({"serviceAccountName": "tenant"}))
            .await?;

        // Another kind, another namespace, the whole cluster.
        let secret = format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: {ns}}}\nstringData: {{a: hunter2}}\n"
        );
        let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: evil}\nrules: []\n";
        for (file, words) in [
            (secret, "secrets \"s\" is forbidden".to_owned()),
            (
                config_map("kube-system", "foreign", "1"),
                "configmaps \"foreign\" is forbidden".to_owned(),
            ),
            (
                role.to_owned(),
                "clusterroles.rbac.authorization.k8s.io \"evil\" is forbidden".to_owned(),
            ),
        ] {
            let revision = test
                .push(&repository, &[Change::write("deploy/c.yaml", file)])
                .await?;
            let message = test.not_ready_at("app", &revision).await?;
            let user = format!("User \"system:serviceaccount:{ns}:tenant\"");
            ensure!(message.contains(&words) && message.contains(&user), "{message}");
            ensure!(!message.contains("hunter2"), "{message}");
        }
        // What it may not change it may not delete either, and keeps it in its inventory.
        let revision = test
            .push(
                &repository,
                &[Change::delete("deploy/c.yaml"), Change::delete("deploy/a.yaml")],
            )
            .await?;
        test.ready("app", &revision).await?;
        test.config_map_gone("mine").await
    });
}

#[test]
fn what_was_applied_by_the_controller_is_not_taken_for_the_tenants() {
    run("tenant-change", |test| async move {
        let repository = test.repository(&[("deploy/a.yaml", config_map(&test.namespace, "a", "1"))])?;
        test.deliver(&repository, json!({})).await?;
        account(&test, "nobody", &[""], &["services"]).await?;
        test.apply(&test.kustomization("app", json!({"serviceAccountName": "nobody"})))
            .await?;
        let message = test
            .not_ready(&test.kustomizations(), "app", "ReconciliationFailed")
            .await?;
        ensure!(message.contains("configmaps \"a\" is forbidden"), "{message}");
        // The account is gone: the Kustomization goes, and what it made stays.
        test.objects("v1", "ServiceAccount")
            .delete("nobody", &Default::default())
            .await?;
        test.delete_kustomization("app").await?;
        test.config_maps()
            .get("a")
            .await
            .context("it should have stayed")?;
        Ok(())
    });
}

#[test]
fn a_health_check_sees_what_the_account_sees() {
    run("tenant-health", |test| async move {
        account(&test, "tenant", &[""], &["configmaps"]).await?;
        let repository = test.repository(&[("deploy/a.yaml", config_map(&test.namespace, "a", "1"))])?;
        test.git_source(&repository).await?;
        let check =
            json!({"apiVersion": "v1", "kind": "Service", "name": "kubernetes", "namespace": "default"});
        let spec = json!({"serviceAccountName": "tenant", "wait": false, "healthChecks": [check]});
        test.apply(&test.kustomization("app", spec)).await?;
        let message = test
            .not_ready(&test.kustomizations(), "app", "HealthCheckFailed")
            .await?;
        ensure!(
            message.contains("services") && message.contains("forbidden"),
            "{message}"
        );
        Ok(())
    });
}

#[test]
fn the_lock_gives_an_account_to_those_that_name_none() {
    run("tenant-lock", |test| async move {
        let ns = &test.namespace;
        account(&test, "locked", &[""], &["configmaps"]).await?;
        let mut options = test.own_shard();
        options.flags.push("--default-service-account=locked".to_owned());
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let _apply = Controller::start_apply(kubeconfig, &test.world.source, options).await?;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.git_source(&repository).await?;
        test.apply(&test.in_own_shard(test.kustomization("app", json!({}))))
            .await?;
        testkit::wait_for(&test.kustomizations(), "app", is_ready, PATIENCE).await?;
        let revision = test
            .push(
                &repository,
                &[Change::write(
                    "deploy/b.yaml",
                    config_map("default", "foreign", "1"),
                )],
            )
            .await?;
        let message = test.not_ready_at("app", &revision).await?;
        ensure!(
            message.contains("configmaps \"foreign\" is forbidden"),
            "{message}"
        );
        objects::poke(&test.kustomizations(), "app").await.map(drop)
    });
}
