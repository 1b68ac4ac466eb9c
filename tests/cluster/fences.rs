//! Tests of what a tenant cannot reach through spec.decryption and spec.kubeConfig.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{DynamicObject, ObjectMeta, PostParams};
use kube::config::Kubeconfig;
use serde_json::{Value, json};
use testkit::objects::{condition, is_ready};
use testkit::{ControlPlane, Controller, Options, wait_for};

use crate::world::{KUSTOMIZE, PATIENCE, Test, config_map, run};

async fn secret(test: &Test, namespace: &str, name: &str, entries: Value) -> Result<()> {
    let metadata = json!({"name": name, "namespace": namespace});
    test.apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": entries}))
        .await
}

async fn fails(api: &Api<DynamicObject>, name: &str, words: &str) -> Result<()> {
    let says = |object: &DynamicObject| {
        condition(object, "Ready")
            .is_some_and(|(status, _, message)| status == "False" && message.contains(words))
    };
    wait_for(api, name, says, PATIENCE).await.map(drop)
}

/// The kubeconfig of a cluster, in which a program shows its token.
fn with_program(control_plane: &ControlPlane) -> Result<String> {
    let kubeconfig = Kubeconfig::read_from(control_plane.kubeconfig_path())?;
    let mut kubeconfig = serde_json::to_value(&kubeconfig)?;
    let token = kubeconfig["users"][0]["user"]["token"]
        .as_str()
        .context("it has a token")?;
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token},
    });
    kubeconfig["users"][0]["user"] = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": "/bin/echo", "args": [credential.to_string()],
    }});
    Ok(kubeconfig.to_string())
}

#[test]
fn programs_of_kubeconfigs_run_only_when_the_operator_says_so() {
    run("fence-exec", |test| async move {
        let ns = &test.namespace;
        let remote = ControlPlane::start(Options::api_server_only()).await?;
        let name = Some(ns.clone());
        let namespace = Namespace {
            metadata: ObjectMeta {
                name,
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let namespaces: Api<Namespace> = Api::all(remote.client());
        namespaces.create(&PostParams::default(), &namespace).await?;
        let maps: Api<ConfigMap> = Api::namespaced(remote.client(), ns);
        secret(&test, ns, "remote", json!({"value": with_program(&remote)?})).await?;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "far", "1"))])?;
        test.git_source(&repository).await?;
        let spec = json!({"retryInterval": "1h", "kubeConfig": {"secretRef": {"name": "remote"}}});
        test.apply(&test.kustomization("app", spec.clone())).await?;
        fails(
            &test.kustomizations(),
            "app",
            "refused the kubeconfig: exec is not allowed",
        )
        .await?;
        ensure!(maps.get_opt("far").await?.is_none());

        // A controller that may.
        let mut options = test.own_shard();
        options.flags.push("--insecure-kubeconfig-exec".to_owned());
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let _apply = Controller::start_apply(kubeconfig, &test.world.source, options).await?;
        test.apply(&test.in_own_shard(test.kustomization("app", spec)))
            .await?;
        wait_for(&test.kustomizations(), "app", is_ready, PATIENCE).await?;
        maps.get("far").await.context("it should be there")?;
        // A plugin of the client's own kind is refused all the same, and the changed Secret is seen at once.
        let plugin = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
            "users": [{"name": "u", "user": {"auth-provider": {"name": "gcp", "config": {}}}}],
        });
        secret(&test, ns, "remote", json!({"value": plugin.to_string()})).await?;
        fails(&test.kustomizations(), "app", "auth-provider is not allowed").await
    });
}

#[test]
fn secrets_and_config_maps_are_those_of_the_own_namespace() {
    run("fence-names", |test| async move {
        let tenant = test.world.control_plane.namespace("fence-tenant").await?;
        let repository = test.repository(&[("deploy/a.yaml", config_map(&test.namespace, "a", "1"))])?;
        test.git_source(&repository).await?;
        // Everything is there, in another namespace.
        secret(
            &test,
            &test.namespace,
            "mine",
            json!({"value": "kubeconfig", "a.agekey": "key"}),
        )
        .await?;
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": test.namespace},
            "data": {"provider": "generic", "address": "https://127.0.0.1:9"},
        });
        test.apply(&map).await?;
        let api = testkit::objects::api(&test.client, KUSTOMIZE, "Kustomization", &tenant);
        let cases = [
            (
                json!({"kubeConfig": {"secretRef": {"name": "NAME"}}}),
                format!("failed to read the KubeConfig secret '{tenant}/mine': it does not exist"),
                "failed to read the KubeConfig secret",
            ),
            (
                json!({"kubeConfig": {"configMapRef": {"name": "NAME"}}}),
                format!("failed to get configmap {tenant}/mine: configmaps \"mine\" not found"),
                "failed to get configmap",
            ),
            (
                json!({"decryption": {"provider": "sops", "secretRef": {"name": "NAME"}}}),
                format!("cannot get sops decryption Secret '{tenant}/mine': secrets \"mine\" not found"),
                "cannot get sops decryption Secret",
            ),
            (
                json!({"postBuild": {"substituteFrom": [{"kind": "Secret", "name": "NAME"}]}}),
                "secrets \"mine\" not found".to_owned(),
                "substitute from",
            ),
        ];
        for (number, (field, own, foreign)) in cases.into_iter().enumerate() {
            let app = format!("app-{number}");
            let path = format!("../../{}/secrets/mine", test.namespace);
            let escaped = "..%2f..%2fmine".to_owned();
            for (name, words) in [
                ("mine".to_owned(), own.as_str()),
                (path, foreign),
                (escaped, "invalid resource name"),
            ] {
                let spec: Value = serde_json::from_str(&field.to_string().replace("NAME", &name))?;
                let mut object = test.kustomization(&app, spec);
                object["metadata"]["namespace"] = json!(tenant);
                object["spec"]["sourceRef"]["namespace"] = json!(test.namespace);
                test.apply(&object).await?;
                fails(&api, &app, words).await?;
                if name != "mine" {
                    fails(&api, &app, "invalid resource name").await?;
                }
            }
        }
        Ok(())
    });
}
