//! Lists, one object, its tree, and why it is not ready.

use anyhow::ensure;
use reqwest::StatusCode;
use serde_json::json;
use testkit::objects::{self, apply};

use crate::world::{condition, names, play};

const ALL: &[&str] = &["kustomize.toolkit.fluxcd.io/*", "source.toolkit.fluxcd.io/*"];

#[test]
fn what_is_delivered_is_listed_filtered_and_explained() {
    play("listed", async |scene| {
        let namespace = &scene.namespace;
        let source = objects::git_repository(namespace, "repo", "https://example.com/repo", "main");
        apply(&scene.client, &source).await?;
        let mut failed = condition("False");
        failed["reason"] = json!("GitOperationFailed");
        failed["message"] = json!("failed to checkout:\nno such branch");
        let status = json!({"observedGeneration": 1, "conditions": [failed]});
        scene
            .status(
                "source.toolkit.fluxcd.io/v1",
                "GitRepository",
                namespace,
                "repo",
                status,
            )
            .await?;
        scene
            .kustomization(
                namespace,
                "web",
                "True",
                &[&format!("{namespace}_map__ConfigMap")],
            )
            .await?;
        let child = format!("{namespace}_web_kustomize.toolkit.fluxcd.io_Kustomization");
        scene.kustomization(namespace, "api", "False", &[&child]).await?;
        let user = scene.user("ana", &[(namespace, ALL)]).await?;

        let all = format!("objects?namespace={namespace}");
        let page = scene
            .until(&user, &all, |page| page["facets"]["status"]["Failed"] == 2)
            .await?;
        assert_eq!(
            names(&page),
            ["GitRepository/repo", "Kustomization/api", "Kustomization/web"]
        );
        assert_eq!(page["total"], 3);
        let row = &page["items"][1];
        assert_eq!(row["message"], "it is False");
        assert_eq!(row["source"], format!("GitRepository/{namespace}/repo"));
        assert_eq!(row["since"], "2026-11-25T10:00:00Z");
        for (query, expected) in [
            ("&status=Ready", &["Kustomization/web"][..]),
            ("&kind=git", &["GitRepository/repo"]),
            ("&revision=abc", &["Kustomization/api", "Kustomization/web"]),
            ("&text=no+such+branch", &["GitRepository/repo"]),
            (
                "&filter=row.kind+%3D%3D+%27Kustomization%27+%26%26+row.status+%21%3D+%27Ready%27",
                &["Kustomization/api"],
            ),
        ] {
            let page = scene.get(&user, &format!("{all}{query}")).await?;
            assert_eq!(names(&page), expected, "{query}");
        }
        let first = scene.get(&user, &format!("{all}&limit=2")).await?;
        let next = first["next"].as_str().unwrap_or_default();
        let second = scene.get(&user, &format!("{all}&limit=2&after={next}")).await?;
        assert_eq!(names(&second), ["Kustomization/web"]);
        assert_eq!(
            (second["next"].clone(), second["total"].clone()),
            (json!(null), json!(3))
        );

        // The command asks the cluster and the console alike.
        let of_cluster = scene
            .windlass(&["query", "-n", namespace, "--status", "Failed", "-o", "csv"])
            .await?;
        let url = scene.world.console.api_url().replace("/api/v1", "");
        let asked = [
            "query",
            "ks,git",
            "-n",
            namespace,
            "--status",
            "Failed",
            "-o",
            "csv",
            "--console",
            &url,
            "--token",
            &user,
        ];
        assert_eq!(scene.windlass(&asked).await?, of_cluster);
        let lines: Vec<_> = of_cluster.lines().collect();
        assert_eq!(lines.len(), 3, "{of_cluster}");
        ensure!(
            lines[1].starts_with(&format!("local,GitRepository,{namespace},repo,Failed,")),
            "{of_cluster}"
        );
        let filter = "row.name == 'web'";
        let table = scene
            .windlass(&["query", "-n", namespace, "--filter", filter])
            .await?;
        ensure!(
            table.contains("web") && table.contains("Ready") && !table.contains("api"),
            "{table}"
        );
        let wrong = scene.windlass(&["query", "pods"]).await.unwrap_err().to_string();
        ensure!(wrong.contains("'pods' is not a kind"), "{wrong}");

        let at = |name: &str| format!("objects/local/ks/{namespace}/{name}");
        let object = scene.get(&user, &at("api")).await?;
        assert_eq!(object["spec"]["path"], "./");
        ensure!(object["metadata"]["managedFields"].is_null(), "{object}");
        let tree = scene.get(&user, &format!("{}/tree", at("api"))).await?;
        assert_eq!(tree["objects"][0]["name"], "web");
        assert_eq!(tree["objects"][0]["objects"][0]["kind"], "ConfigMap");
        let why = scene.get(&user, &format!("{}/why", at("api"))).await?;
        assert_eq!(why["state"], "NotReady");
        let because = why["because"][0]["message"].as_str().unwrap_or_default();
        ensure!(because.contains("failed to checkout: no such branch"), "{why:#}");

        for (path, status, message) in [
            (
                "objects?kind=pods",
                StatusCode::BAD_REQUEST,
                "kind: 'pods' is not",
            ),
            ("objects?colour=red", StatusCode::BAD_REQUEST, "colour"),
            ("objects?filter=1", StatusCode::BAD_REQUEST, "filter: "),
            (&at("gone"), StatusCode::NOT_FOUND, "there is no Kustomization"),
            ("nothing", StatusCode::NOT_FOUND, "no such path"),
        ] {
            let (found, problem) = scene.ask(&user, path).await?;
            let told = problem["message"].as_str().unwrap_or_default();
            ensure!(
                found == status && told.contains(message),
                "{path}: {found} {problem}"
            );
        }
        let here = json!({"name": "local", "complete": true, "away": false});
        assert_eq!(scene.cluster("local").await?, here);
        Ok(())
    });
}

#[test]
fn the_description_needs_no_token() {
    play("described", async |scene| {
        let url = format!("{}/openapi.json", scene.world.console.api_url());
        let answer = scene.world.http.get(url).send().await?;
        assert_eq!(answer.headers()["cache-control"], "no-store");
        let document: serde_json::Value = serde_json::from_slice(&answer.bytes().await?)?;
        ensure!(
            document["paths"]["/api/v1/objects"]["get"].is_object(),
            "{document}"
        );
        Ok(())
    });
}
