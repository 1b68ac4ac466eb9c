//! What tenants and strangers try with ResourceSets.

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use serde_json::{Value, json};
use testkit::objects::{apply, condition};
use testkit::wait_for;

use crate::world::{PATIENCE, Scene, config_map, play};

/// An account that may write ConfigMaps of the namespace, and nothing else.
async fn deployer(scene: &Scene) -> Result<()> {
    let metadata = json!({"name": "deployer", "namespace": scene.namespace});
    apply(
        &scene.client,
        &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
    )
    .await?;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata,
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}],
    });
    apply(&scene.client, &role).await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deployer"},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": scene.namespace}],
    });
    apply(&scene.client, &binding).await.map(drop)
}

/// A tenant's ResourceSet; returns what is said of it once it has failed.
async fn refused(scene: &Scene, name: &str, spec: Value) -> Result<String> {
    scene.make("ResourceSet", name, spec, Scene::locked()).await?;
    let failed =
        |set: &DynamicObject| condition(set, "Ready").is_some_and(|(status, _, _)| status == "False");
    let set = scene.wait(name, failed).await?;
    Ok(condition(&set, "Ready")
        .map(|(_, _, message)| message.to_owned())
        .unwrap_or_default())
}

#[test]
fn a_tenant_reads_and_writes_as_its_account_only() {
    play("rset-attacks", |scene| async move {
        deployer(&scene).await?;
        let victim = scene.world.control_plane.namespace("rset-victim").await?;
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": victim},
            "stringData": {"key": "of-the-victim"}});
        apply(&scene.client, &secret).await?;
        let annotated = |object: Value, name: &str, value: String| {
            let mut object = object;
            object["metadata"]["annotations"] = json!({format!("fluxcd.controlplane.io/{name}"): value});
            object
        };
        let stolen = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine"}});
        let admin = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "me"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        });
        let there = |object: Value| {
            let mut object = object;
            object["metadata"]["namespace"] = victim.as_str().into();
            object
        };
        for (name, spec) in [
            (
                "copy",
                json!({"resources": [annotated(stolen, "copyFrom", format!("{victim}/key"))]}),
            ),
            (
                "sum",
                json!({"resources": [annotated(config_map("x", json!({})), "checksumFrom", format!("Secret/{victim}/key"))]}),
            ),
            (
                "convert",
                json!({"resources": [annotated(config_map("x", json!({})), "convertKubeConfigFrom", format!("{victim}/key:key"))]}),
            ),
            (
                "path",
                json!({"resources": [annotated(config_map("x", json!({})), "checksumFrom", "Secret/../key".to_owned())]}),
            ),
            (
                "depend",
                json!({
                    "dependsOn": [{"apiVersion": "v1", "kind": "Secret", "name": "key", "namespace": victim, "ready": true,
                        "readyExpr": "data.key.startsWith('b2Y')"}],
                    "resources": [config_map("x", json!({}))],
                }),
            ),
            (
                "elsewhere",
                json!({"resources": [there(config_map("x", json!({})))]}),
            ),
            ("admin", json!({"resources": [admin]})),
        ] {
            let said = refused(&scene, name, spec).await?;
            let is_forbidden = said.contains("orbidden") || said.contains("invalid") || said.contains("must");
            ensure!(
                is_forbidden && !said.contains("b2Y") && !said.contains("of-the-victim"),
                "{name}: {said}"
            );
        }
        // What it may do, it does.
        let own = json!({"resources": [config_map("own", json!({"a": "b"}))]});
        scene.make("ResourceSet", "own", own, Scene::locked()).await?;
        scene.applied("own").await?;
        Ok(())
    });
}

#[test]
fn artifacts_of_other_namespaces_are_no_inputs_where_that_is_forbidden() {
    play("rset-artifacts", |scene| async move {
        let spec = json!({"type": "ExternalArtifact", "selectors": [{"namespace": "*"}]});
        scene
            .make("ResourceSetInputProvider", "all", spec, Scene::locked())
            .await?;
        let refused = |provider: &DynamicObject| {
            condition(provider, "Stalled")
                .is_some_and(|(_, _, message)| message.contains("--no-cross-namespace-refs"))
        };
        wait_for(&scene.providers(), "all", refused, PATIENCE)
            .await
            .map(drop)
    });
}

#[test]
fn what_a_stranger_writes_adds_no_object() {
    play("rset-stranger", |scene| async move {
        // As a provider would export it if it took line breaks over.
        let title = "x\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n";
        let mut entry = config_map("app", json!({}));
        entry["metadata"]["z"] = "<< inputs.title >>".into();
        scene
            .set("app", json!({"inputs": [{"title": title}], "resources": [entry]}))
            .await?;
        let refused = |set: &DynamicObject| {
            condition(set, "Ready").is_some_and(|(_, reason, message)| {
                reason == "BuildFailed" && message.contains("an entry of resources makes one")
            })
        };
        scene.wait("app", refused).await?;
        ensure!(scene.config_maps().get_opt("extra").await?.is_none());
        Ok(())
    });
}

#[test]
fn templates_without_end_do_not_hold_others_up() {
    play("rset-bombs", |scene| async move {
        let bomb = "<< range until 10000 >><< range until 10000 >><< range until 10000 >>x<< end >><< end >><< end >>";
        for index in 0..4 {
            let spec = json!({"inputs": [{"a": 1}], "resourcesTemplate": bomb});
            scene
                .make("ResourceSet", &format!("bomb-{index}"), spec, Scene::locked())
                .await?;
        }
        deployer(&scene).await?;
        let own = json!({"resources": [config_map("own", json!({}))]});
        scene.make("ResourceSet", "own", own, Scene::locked()).await?;
        scene.applied("own").await?;
        let set = scene
            .wait("bomb-0", |set| {
                condition(set, "Ready").is_some_and(|(_, reason, _)| reason == "BuildFailed")
            })
            .await?;
        let message = condition(&set, "Ready")
            .map(|(_, _, message)| message.to_owned())
            .unwrap_or_default();
        ensure!(
            message.contains("the templates make too much, or take too long"),
            "{message}"
        );
        Ok(())
    });
}
