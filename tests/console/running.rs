//! Which images run where, in which cluster, and for whom.

use anyhow::{Result, ensure};
use kube::api::{Api, DeleteParams};
use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::objects::apply;

use crate::world::{Scene, play};

/// A Deployment whose Pods the control plane makes and says to be running.
pub async fn deployment(scene: &Scene, namespace: &str, name: &str, image: &str) -> Result<()> {
    let labels = json!({"app": name});
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": image}]},
            },
        },
    });
    apply(&scene.client, &object).await.map(drop)
}

fn shown(page: &Value) -> Vec<String> {
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    let items = page["items"].as_array().into_iter().flatten();
    items
        .map(|row| {
            format!(
                "{}:{} {} {}",
                text(row, "image"),
                text(row, "tag"),
                text(row, "workload"),
                row["pods"]
            )
        })
        .collect()
}

#[test]
fn what_runs_an_image_is_found_by_those_who_may_get_the_pods() {
    play("where", async |scene| {
        let (shop, bank) = (
            scene.namespace("where-shop").await?,
            scene.namespace("where-bank").await?,
        );
        let image = "registry.example.com/team/log4j-app";
        deployment(&scene, &shop, "old", &format!("{image}:1.4.1-alpine")).await?;
        deployment(&scene, &shop, "new", &format!("{image}:1.4.2")).await?;
        deployment(&scene, &bank, "old", &format!("{image}:1.3.0")).await?;
        let pods: &[&str] = &["/pods"];
        let ana = scene.user("ana", &[(&shop, pods)]).await?;
        let all = scene.user("all", &[(&shop, pods), (&bank, pods)]).await?;
        let nobody = scene
            .user(
                "nobody",
                &[(&shop, &["kustomize.toolkit.fluxcd.io/kustomizations"])],
            )
            .await?;
        let path = format!("where?image=log4j-app&version=%3C1.4.2&namespace={shop},{bank}&cluster=local");
        let complete = [
            format!("{image}:1.3.0 Deployment/old 2"),
            format!("{image}:1.4.1-alpine Deployment/old 2"),
        ];
        let page = scene.until(&all, &path, |page| shown(page) == complete).await?;
        assert_eq!(
            (&page["clusters"], &page["total"], page.get("unknown")),
            (&json!(["local"]), &json!(2), None)
        );
        assert_eq!(shown(&scene.get(&ana, &path).await?), complete[1..]);
        let none = scene.get(&nobody, &path).await?;
        assert_eq!((&none["total"], &none["clusters"]), (&json!(0), &json!([])));

        // The command tells the same of the console and of the cluster.
        let root = scene.world.console.api_url().replace("/api/v1", "");
        for given in [&["--console", &root, "--token", &all][..], &[]] {
            let words = [
                "where",
                "team/log4j-app",
                "--version",
                "<1.4.2",
                "-o",
                "csv",
                "-n",
            ];
            let namespaces = format!("{shop},{bank}");
            let words = [&words[..], &[&namespaces], given].concat();
            let told = scene.windlass(&words).await?;
            let lines: Vec<&str> = told.lines().collect();
            ensure!(
                lines.len() == 3 && lines[1].starts_with(&format!("{image},1.3.0,")),
                "{told}"
            );
        }

        // What is gone runs nothing.
        let deployments: Api<k8s_openapi::api::apps::v1::Deployment> =
            Api::namespaced(scene.client.clone(), &bank);
        deployments.delete("old", &DeleteParams::foreground()).await?;
        scene
            .until(&all, &path, |page| shown(page) == complete[1..])
            .await?;
        for query in ["version=%3C%3C1", "limit=0", "x=y"] {
            let (status, told) = scene.ask(&ana, &format!("where?{query}")).await?;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{told}");
        }
        Ok(())
    });
}
