//! Several clusters: each with its own rights, and none that is away holds up the others.

use anyhow::{Result, ensure};
use futures::future::join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::objects::apply;
use testkit::{ControlPlane, Options, install_all_crds};

use crate::world::{ANA, ANA_EVERYWHERE, CLUSTERS, Scene, kustomization, play};

const KUSTOMIZATIONS: &str = "kustomize.toolkit.fluxcd.io/kustomizations";

/// A second control plane with the kinds of Flux and a namespace.
pub async fn another_cluster(namespace: &str) -> Result<ControlPlane> {
    let cluster = ControlPlane::start(Options::api_server_only()).await?;
    install_all_crds(&cluster.client()).await?;
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    apply(&cluster.client(), &object).await?;
    Ok(cluster)
}

/// A Secret or another object that names a cluster.
pub async fn name_cluster(scene: &Scene, name: &str, annotations: Value, data: Value) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "stringData": data,
        "metadata": {
            "name": format!("cluster-{name}"), "namespace": CLUSTERS, "labels": {"windlass.dev/cluster": name},
            "annotations": annotations,
        },
    });
    apply(&scene.client, &secret).await.map(drop)
}

/// Lets somebody `get` Kustomizations in a namespace of a cluster.
async fn let_see(client: &Client, namespace: &str, subject: Value) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let (version, name) = (format!("{group}/v1"), "kustomizations");
    apply(
        client,
        &json!({
            "apiVersion": version, "kind": "Role", "metadata": {"name": name, "namespace": namespace},
            "rules": [{"apiGroups": ["kustomize.toolkit.fluxcd.io"], "resources": [name], "verbs": ["get"]}],
        }),
    )
    .await?;
    apply(
        client,
        &json!({
            "apiVersion": version, "kind": "RoleBinding", "metadata": {"name": name, "namespace": namespace},
            "subjects": [subject], "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
        }),
    )
    .await
    .map(drop)
}

fn clusters_of(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().into_iter().flatten();
    items
        .map(|row| row["cluster"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn another_cluster_is_shown_with_its_own_rights_and_may_go_away() {
    play("far", async |scene| {
        let namespace = &scene.namespace;
        let user = json!({"kind": "User", "name": ANA_EVERYWHERE, "apiGroup": "rbac.authorization.k8s.io"});
        scene.kustomization(namespace, "web", "True", &[]).await?;
        let_see(&scene.client, namespace, user.clone()).await?;
        // A service account of this cluster that may see it, too.
        let account = scene.user("reader", &[(namespace, &[KUSTOMIZATIONS])]).await?;

        let mut far = another_cluster(namespace).await?;
        kustomization(&far.client(), namespace, "web", "False", &[]).await?;
        kustomization(&far.client(), namespace, "far-only", "True", &[]).await?;
        let kubeconfig = std::fs::read_to_string(far.kubeconfig_path())?;
        name_cluster(&scene, "far", json!({}), json!({"value": kubeconfig})).await?;

        // Before she may see anything there, she sees what is here.
        let all = format!("objects?namespace={namespace}&cluster=local,far");
        let here = scene.until(ANA, &all, |page| page["total"] == 1).await?;
        assert_eq!(clusters_of(&here), ["local"]);
        scene
            .until(ANA, "clusters", |all| {
                let mut all = all.as_array().into_iter().flatten();
                all.any(|cluster| cluster["name"] == "far" && cluster["complete"] == true)
            })
            .await?;
        assert_eq!(scene.get(ANA, &all).await?["total"], 1);
        let_see(&far.client(), namespace, user).await?;
        let both = scene.until(ANA, &all, |page| page["total"] == 3).await?;
        assert_eq!(clusters_of(&both), ["far", "far", "local"]);
        assert_eq!(both["facets"]["cluster"], json!({"far": 2, "local": 1}));
        let why = scene
            .get(ANA, &format!("objects/far/ks/{namespace}/web/why"))
            .await?;
        ensure!(why.to_string().contains("it is False"), "{why}");

        // An account of the same name there is someone else, whatever it may see.
        let same = json!({"kind": "ServiceAccount", "name": "reader", "namespace": namespace});
        let role = "kustomizations-of-the-account";
        let group = "rbac.authorization.k8s.io";
        apply(
            &far.client(),
            &json!({
                "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
                "metadata": {"name": role, "namespace": namespace}, "subjects": [same],
                "roleRef": {"apiGroup": group, "kind": "Role", "name": "kustomizations"},
            }),
        )
        .await?;
        let (status, refusal) = scene
            .ask(&account, &format!("objects/far/ks/{namespace}/far-only"))
            .await?;
        assert_eq!(status, StatusCode::FORBIDDEN, "{refusal}");
        assert_eq!(clusters_of(&scene.get(&account, &all).await?), ["local"]);
        let shared = json!({"windlass.dev/shared-service-accounts": "true"});
        name_cluster(&scene, "far", shared, json!({"value": kubeconfig})).await?;
        scene.until(&account, &all, |page| page["total"] == 3).await?;
        // Her rights there are asked for anew, as the cluster is.
        scene.until(ANA, &all, |page| page["total"] == 3).await?;

        // A cluster whose Pods are not known is named: it may run what is looked for.
        let running = scene.get(ANA, "where?cluster=local,far,closed").await?;
        ensure!(
            running
                .get("unknown")
                .is_none_or(|unknown| *unknown == json!(["closed"])),
            "{running}"
        );

        // Someone whose rights there nobody has asked for, and who may see nothing.
        let stranger = scene.user("stranger", &[]).await?;

        // The cluster goes away: it is told as such, what it last said holds, and nobody waits.
        let watching = async {
            let mut away = Value::Null;
            while away["away"] != true {
                away = scene.cluster("far").await?;
                let page = scene.get(ANA, &all).await?;
                ensure!(page["total"] == 3, "{page}");
            }
            let since: jiff::Timestamp = away["since"].as_str().unwrap_or_default().parse()?;
            ensure!(since <= jiff::Timestamp::now(), "{since}");
            // What the cluster has must not show in how its silence is told.
            for path in ["objects?cluster=far&text=", "where?cluster=far&image="] {
                // Twice what is not there: the cluster may come back in between.
                let mut told = Vec::new();
                for name in ["no-such-thing", "far-only", "no-such-thing"] {
                    let page = scene.get(&stranger, &format!("{path}{name}")).await?;
                    ensure!(page["total"] == 0, "{page}");
                    told.push((page["silent"].clone(), page["unknown"].clone()));
                }
                ensure!(told[1] == told[0] || told[1] == told[2], "{path}: {told:?}");
            }
            anyhow::Ok(())
        };
        let down = far.restart_api_server(std::time::Duration::from_secs(3));
        let (watched, down) = tokio::join!(watching, down);
        watched?;
        down?;
        scene
            .until(ANA, "clusters", |all| {
                let mut all = all.as_array().into_iter().flatten();
                all.any(|cluster| cluster["name"] == "far" && cluster["away"] == false)
            })
            .await?;
        kustomization(&far.client(), namespace, "new", "True", &[]).await?;
        scene.until(ANA, &all, |page| page["total"] == 4).await?;

        // A name that is taken back takes its rows with it.
        let secrets: Api<k8s_openapi::api::core::v1::Secret> =
            Api::namespaced(scene.client.clone(), CLUSTERS);
        secrets.delete("cluster-far", &DeleteParams::default()).await?;
        scene.until(ANA, &all, |page| page["total"] == 1).await?;
        assert_eq!(scene.cluster("far").await?, Value::Null);
        Ok(())
    });
}

#[test]
fn what_cannot_be_reached_is_told_without_where_it_is() {
    play("lost", async |scene| {
        let namespace = &scene.namespace;
        let user = json!({"kind": "User", "name": ANA_EVERYWHERE, "apiGroup": "rbac.authorization.k8s.io"});
        scene.kustomization(namespace, "web", "True", &[]).await?;
        let_see(&scene.client, namespace, user).await?;
        let kubeconfig = |user: Value| {
            json!({
                "apiVersion": "v1", "kind": "Config", "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
                "users": [{"name": "u", "user": user}],
            })
            .to_string()
        };
        // One that nobody listens at, one that would run a program, one that is none, and one that takes this one's name.
        for (name, value) in [
            ("closed", kubeconfig(json!({"token": "hunter2"}))),
            (
                "program",
                kubeconfig(
                    json!({"exec": {"command": "id", "apiVersion": "client.authentication.k8s.io/v1"}}),
                ),
            ),
            ("none", "hunter2".to_owned()),
            ("local", kubeconfig(json!({"token": "hunter2"}))),
        ] {
            name_cluster(&scene, name, json!({}), json!({"value": value})).await?;
        }
        for name in ["closed", "program", "none"] {
            let is_away = |all: &Value| {
                let mut all = all.as_array().into_iter().flatten();
                all.any(|cluster| cluster["name"] == *name && cluster["away"] == true)
            };
            let all = scene.until(ANA, "clusters", is_away).await?.to_string();
            for secret in ["hunter2", "127.0.0.1", "exec"] {
                ensure!(!all.contains(secret), "{all}");
            }
        }
        let page = scene
            .get(
                ANA,
                &format!("objects?namespace={namespace}&cluster=local,closed,program,none"),
            )
            .await?;
        assert_eq!(
            (clusters_of(&page), page.get("silent")),
            (vec!["local".to_owned()], None)
        );
        let here = scene.cluster("local").await?;
        assert_eq!((&here["away"], &here["complete"]), (&json!(false), &json!(true)));
        Ok(())
    });
}

#[test]
fn a_gitops_cluster_names_a_cluster_by_its_secret() {
    play("gitops", async |scene| {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "leaf-kubeconfig", "namespace": CLUSTERS},
            "stringData": {"value": "none"},
        });
        apply(&scene.client, &secret).await?;
        let cluster = json!({
            "apiVersion": "gitops.weave.works/v1alpha1", "kind": "GitopsCluster",
            "metadata": {"name": "leaf", "namespace": CLUSTERS}, "spec": {"capiClusterRef": {"name": "leaf"}},
        });
        apply(&scene.client, &cluster).await?;
        let has = |state: Value| {
            move |all: &Value| {
                let mut all = all.as_array().into_iter().flatten();
                all.any(|cluster| cluster["name"] == "leaf" && cluster["complete"] == state)
            }
        };
        scene.until(ANA, "clusters", has(json!(false))).await?;
        // The Secret gets a kubeconfig that works, as one of Cluster API does after a while.
        let kubeconfig = std::fs::read_to_string(scene.world.control_plane.kubeconfig_path())?;
        let secrets: Api<k8s_openapi::api::core::v1::Secret> =
            Api::namespaced(scene.client.clone(), CLUSTERS);
        let patch = Patch::Merge(json!({"stringData": {"value": kubeconfig}}));
        secrets
            .patch("leaf-kubeconfig", &PatchParams::default(), &patch)
            .await?;
        scene.until(ANA, "clusters", has(json!(true))).await.map(drop)
    });
}

#[test]
fn a_cluster_that_does_not_answer_keeps_no_room_from_others() {
    play("slow", async |scene| {
        let namespace = &scene.namespace;
        scene.kustomization(namespace, "web", "True", &[]).await?;
        let here = scene.user("here", &[(namespace, &[KUSTOMIZATIONS])]).await?;
        // Nobody has asked for their rights there yet.
        let waits = scene.user("waits", &[]).await?;
        let far = another_cluster(namespace).await?;
        kustomization(&far.client(), namespace, "web", "True", &[]).await?;
        let kubeconfig = std::fs::read_to_string(far.kubeconfig_path())?;
        let shared = json!({"windlass.dev/shared-service-accounts": "true"});
        name_cluster(&scene, "slow", shared, json!({"value": kubeconfig})).await?;
        scene
            .until(ANA, "clusters", |all| {
                let mut all = all.as_array().into_iter().flatten();
                all.any(|cluster| cluster["name"] == "slow" && cluster["complete"] == true)
            })
            .await?;
        let local = format!("objects?cluster=local&namespace={namespace}");
        scene.until(&here, &local, |page| page["total"] == 1).await?;

        for process in far.processes() {
            process.pause();
        }
        // More than there is room for.
        let waiting = join_all((0..64).map(|_| scene.get(&waits, "objects?cluster=slow")));
        let asking = async {
            for _ in 0..20 {
                let page = scene.get(&here, &local).await?;
                ensure!(page["total"] == 1, "{page}");
            }
            anyhow::Ok(())
        };
        tokio::select! {
            biased;
            _ = waiting => anyhow::bail!("who asks about this cluster alone waited for the other one"),
            asked = asking => asked?,
        }
        for process in far.processes() {
            process.resume();
        }
        let secrets: Api<Secret> = Api::namespaced(scene.client.clone(), CLUSTERS);
        secrets.delete("cluster-slow", &DeleteParams::default()).await?;
        Ok(())
    });
}
