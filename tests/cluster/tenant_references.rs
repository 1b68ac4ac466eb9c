//! Tests of what a tenant's Kustomization learns of other namespaces through its references: nothing that its
//! account may not see, and of other Kustomizations what Flux lets it see.

use anyhow::{Result, ensure};
use kube::Api;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use testkit::git::Change;
use testkit::objects;
use testkit::{Controller, wait_until_gone};

use crate::tenants::account;
use crate::world::{Test, config_map, run};

/// A Kustomization `name` of the test's repository, as a tenant.
fn tenant(test: &Test, name: &str, spec: Value) -> Value {
    objects::with_spec(
        test.kustomization(name, json!({"serviceAccountName": "tenant"})),
        spec,
    )
}

async fn blocked(test: &Test, name: &str, reason: &str) -> Result<String> {
    test.not_ready(&test.kustomizations(), name, reason).await
}

async fn with_tenant(test: &Test) -> Result<testkit::git::Repository> {
    account(test, "tenant", &[""], &["configmaps"]).await?;
    let repository = test.repository(&[("deploy/a.yaml", config_map(&test.namespace, "a", "${key}"))])?;
    test.git_source(&repository).await?;
    Ok(repository)
}

#[test]
fn a_source_of_another_namespace_is_out_of_reach_under_the_lock() {
    run("reference-source", |test| async move {
        with_tenant(&test).await?;
        let mut options = test.own_shard();
        options.flags.push("--no-cross-namespace-refs=true".to_owned());
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let _apply = Controller::start_apply(kubeconfig, &test.world.source, options).await?;
        let other = test.world.control_plane.namespace("reference-other").await?;
        // One that is there and one that is not are refused in the same words.
        let mut messages = Vec::new();
        for (name, source) in [("there", "app"), ("missing", "nosuch")] {
            let source = json!({"kind": "GitRepository", "name": source, "namespace": test.namespace});
            let object = objects::kustomization(&other, name, ("GitRepository", "app"), "./deploy");
            let object = objects::with_spec(object, json!({"sourceRef": source}));
            test.apply(&test.in_own_shard(object)).await?;
            let api = objects::api(&test.client, crate::world::KUSTOMIZE, "Kustomization", &other);
            messages.push(test.not_ready(&api, name, "AccessDenied").await?);
        }
        let expected = format!(
            "can't access 'GitRepository/{}/app', cross-namespace references have been blocked",
            test.namespace
        );
        ensure!(
            messages[0] == expected && messages[1] == expected.replace("/app'", "/nosuch'"),
            "{messages:?}"
        );
        test.no_config_map("a").await
    });
}

#[test]
fn variables_come_from_the_own_namespace_only() {
    run("reference-variables", |test| async move {
        with_tenant(&test).await?;
        let other = test.world.control_plane.namespace("reference-secrets").await?;
        test.apply(
            &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs", "namespace": other},
            "stringData": {"key": "hunter2"}}),
        )
        .await?;
        // The name of a Secret elsewhere, and a name that would lead there if it became part of a path.
        for (name, secret) in [
            ("plain", "theirs".to_owned()),
            ("path", format!("../../{other}/secrets/theirs")),
        ] {
            let from = json!({"postBuild": {"substituteFrom": [{"kind": "Secret", "name": secret}]}});
            if let Err(refused) = test.apply(&tenant(&test, name, from)).await {
                ensure!(name == "path", "{refused:#}");
                continue;
            }
            let message = blocked(&test, name, "BuildFailed").await?;
            ensure!(!message.contains("hunter2"), "{message}");
        }
        test.no_config_map("a").await
    });
}

#[test]
fn health_checks_do_not_tell_what_is_in_other_namespaces() {
    run("reference-health", |test| async move {
        let repository = with_tenant(&test).await?;
        test.push(
            &repository,
            &[Change::write(
                "deploy/a.yaml",
                config_map(&test.namespace, "a", "1"),
            )],
        )
        .await?;
        let mut messages = Vec::new();
        for (name, service) in [("there", "kubernetes"), ("missing", "nosuch")] {
            let check =
                json!({"apiVersion": "v1", "kind": "Service", "name": service, "namespace": "default"});
            let spec = json!({"wait": false, "healthChecks": [check], "timeout": "5s"});
            test.apply(&tenant(&test, name, spec)).await?;
            let message = blocked(&test, name, "HealthCheckFailed").await?;
            ensure!(message.contains("forbidden"), "{message}");
            // Without the name, and without the time that it took.
            let (_, message) = message.split_once(": ").unwrap_or_default();
            messages.push(message.replace(service, "SERVICE"));
        }
        ensure!(messages[0] == messages[1], "{messages:?}");
        Ok(())
    });
}

#[test]
fn depends_on_reaches_into_other_namespaces_as_in_flux() {
    run("reference-dependency", |test| async move {
        with_tenant(&test).await?;
        let other = test.world.control_plane.namespace("reference-base").await?;
        let mut suspended = objects::kustomization(&other, "base", ("GitRepository", "app"), "./deploy");
        suspended = objects::with_spec(suspended, json!({"suspend": true}));
        test.apply(&suspended).await?;
        // Whether it is there and whether it is ready, and no more: neither its conditions nor its inventory.
        for (name, base, words) in [
            ("there", "base", "is not ready"),
            ("missing", "nosuch", "not found"),
        ] {
            let spec = json!({"dependsOn": [{"name": base, "namespace": other}]});
            test.apply(&tenant(&test, name, spec)).await?;
            let message = blocked(&test, name, "DependencyNotReady").await?;
            ensure!(
                message == format!("dependency '{other}/{base}' {words}"),
                "{message}"
            );
        }
        test.no_config_map("a").await
    });
}

#[test]
fn the_prune_guard_tells_a_tenant_only_what_its_account_may_list() {
    run("reference-guard", |test| async move {
        let (ns, team) = (&test.namespace, format!("{}-team", test.namespace));
        account(&test, "tenant", &[""], &["configmaps"]).await?;
        // It may make and delete namespaces, and look into none.
        let rbac = "rbac.authorization.k8s.io";
        let metadata = json!({"name": ns});
        let rules = json!([{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["*"]}]);
        test.apply(&json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": metadata, "rules": rules}))
            .await?;
        test.apply(&json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": ns},
            "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": ns}],
        }))
        .await?;
        let namespace = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {team}}}\n");
        let files = [
            ("deploy/a.yaml", config_map(ns, "a", "1")),
            ("deploy/namespace.yaml", namespace),
        ];
        let repository = test.repository(&files)?;
        test.deliver(&repository, json!({"serviceAccountName": "tenant"}))
            .await?;
        test.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": team}}))
            .await?;
        let revision = test
            .push(&repository, &[Change::delete("deploy/namespace.yaml")])
            .await?;
        test.ready("app", &revision).await?;
        let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(test.client.clone());
        wait_until_gone(&namespaces, &team, crate::world::PATIENCE).await?;
        let object: DynamicObject = test.kustomizations().get("app").await?;
        ensure!(!object.data.to_string().contains("theirs"));
        Ok(())
    });
}
