//! Charts, versions, repositories and images of what is delivered; lists as tables and with fewer fields.

use anyhow::{Result, ensure};
use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::objects::{self, apply};

use crate::running::deployment;
use crate::world::{Scene, condition, names, play};

const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/kustomizations";
const SOURCES: &str = "source.toolkit.fluxcd.io/*";
const HELM: &str = "helm.toolkit.fluxcd.io/helmreleases";

/// A HelmRelease as helm-controller leaves it, of a chart in the GitRepository `repo`.
async fn release(scene: &Scene, namespace: &str, name: &str, chart: &str, version: &str) -> Result<()> {
    let reference = json!({"kind": "GitRepository", "name": "repo"});
    let object = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {
            "name": name, "namespace": namespace,
            "labels": {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": namespace},
        },
        "spec": {
            "interval": "1m", "chart": {"spec": {"chart": format!("./charts/{chart}"), "sourceRef": reference}},
        },
    });
    apply(&scene.client, &object).await?;
    let made = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmChart",
        "metadata": {"name": format!("{namespace}-{name}"), "namespace": namespace},
        "spec": {"interval": "1m", "chart": format!("./charts/{chart}"), "sourceRef": reference},
    });
    apply(&scene.client, &made).await?;
    let snapshot = json!({
        "digest": "sha256:0", "name": name, "namespace": namespace, "version": 1, "status": "deployed",
        "chartName": chart, "chartVersion": version, "appVersion": "=1+1", "configDigest": "sha256:0",
        "firstDeployed": "2026-11-25T10:00:00Z", "lastDeployed": "2026-11-25T10:00:00Z",
    });
    let entry = format!("{namespace}_{name}_apps_Deployment");
    let status = json!({
        "observedGeneration": 1, "conditions": [condition("True")], "history": [snapshot],
        "inventory": {"entries": [{"id": entry, "v": "v1"}]},
    });
    let version = "helm.toolkit.fluxcd.io/v2";
    scene
        .status(version, "HelmRelease", namespace, name, status)
        .await
}

#[test]
fn charts_versions_repositories_and_images_are_found_by_those_who_may() {
    play("tables", async |scene| {
        let (shop, bank) = (
            scene.namespace("tables-shop").await?,
            scene.namespace("tables-bank").await?,
        );
        for (namespace, version) in [(&shop, "1.4.1"), (&bank, "1.5.0")] {
            let url = format!("https://git.example.com/{namespace}/app.git");
            let source = objects::git_repository(namespace, "repo", &url, "main");
            apply(&scene.client, &source).await?;
            release(&scene, namespace, "web", "podinfo", version).await?;
            scene.kustomization(namespace, "apps", "True", &[]).await?;
            deployment(&scene, namespace, "web", "registry.example.com/tables:2").await?;
        }
        let may: &[&str] = &[KUSTOMIZE, SOURCES, HELM, "/pods"];
        let all = scene.user("all", &[(&shop, may), (&bank, may)]).await?;
        let ana = scene.user("ana", &[(&shop, may)]).await?;
        let releases = scene
            .user("releases", &[(&shop, &[HELM]), (&bank, &[HELM])])
            .await?;

        // Charts and their versions.
        let path = format!("charts?namespace={shop},{bank}&cluster=local");
        let versions = |page: &Value| {
            let items = page["items"].as_array().into_iter().flatten();
            let shown = items.map(|row| {
                format!(
                    "{} {} {}/{}",
                    row["chart"], row["version"], row["ready"], row["releases"]
                )
            });
            shown.collect::<Vec<_>>().join(", ").replace('"', "")
        };
        let page = scene
            .until(&all, &path, |page| {
                versions(page) == "podinfo 1.4.1 1/1, podinfo 1.5.0 1/1"
            })
            .await?;
        assert_eq!(page["total"], 2);
        let old = scene
            .get(&all, &format!("{path}&chart=podinfo&version=%3C1.5"))
            .await?;
        assert_eq!(versions(&old), "podinfo 1.4.1 1/1");
        assert_eq!(versions(&scene.get(&ana, &path).await?), "podinfo 1.4.1 1/1");

        // What rows alone do not tell: repositories and images.
        let of = format!("objects?namespace={shop},{bank}&cluster=local&kind=hr,ks");
        let image = format!("{of}&image=tables");
        let page = scene.until(&all, &image, |page| page["total"] == 2).await?;
        assert_eq!(names(&page), ["HelmRelease/web", "HelmRelease/web"]);
        let repository = format!("{of}&repository={shop}/app");
        let page = scene.get(&all, &repository).await?;
        assert_eq!(names(&page), ["Kustomization/apps", "HelmRelease/web"]);
        let both = scene.get(&all, &format!("{repository}&image=tables")).await?;
        assert_eq!(names(&both), ["HelmRelease/web"]);
        let owned = scene
            .get(&all, &format!("{of}&owner=Kustomization/{bank}/apps"))
            .await?;
        assert_eq!(names(&owned), ["HelmRelease/web"]);

        // Who may not get the source, or the Pods, does not learn of them by these filters.
        for query in [&repository, &image] {
            let page = scene.get(&releases, query).await?;
            assert_eq!(
                (&page["total"], &page["items"]),
                (&json!(0), &json!([])),
                "{query}"
            );
        }
        assert_eq!(scene.get(&releases, &of).await?["total"], 2);

        // Tables and fields. A version that would be a formula is text.
        let answer = scene
            .world
            .http
            .get(format!("{}/{path}&format=csv", scene.world.console.api_url()));
        let answer = answer.bearer_auth(&all).send().await?;
        assert_eq!(
            answer.headers()["content-type"],
            "text/csv; charset=utf-8; header=present"
        );
        let text = answer.text().await?;
        assert_eq!(
            text,
            "chart,version,appVersion,cluster,releases,ready\r\npodinfo,1.4.1,\"'=1+1\",local,1,1\r\n\
             podinfo,1.5.0,\"'=1+1\",local,1,1\r\n"
        );
        let fields = format!("{of}&fields=name,labels/kustomize.toolkit.fluxcd.io/name,nothing&limit=3");
        let page = scene.get(&ana, &fields).await?;
        let expected = json!([
            {"name": "apps"}, {"name": "web", "labels/kustomize.toolkit.fluxcd.io/name": "apps"},
        ]);
        assert_eq!((&page["items"], &page["total"]), (&expected, &json!(2)));
        let url = format!(
            "{}/{of}&format=csv&fields=kind,namespace&limit=3",
            scene.world.console.api_url()
        );
        let answer = scene.world.http.get(url).bearer_auth(&all).send().await?;
        let link = answer.headers()["link"].to_str()?.to_owned();
        assert_eq!(answer.text().await?.lines().count(), 4);
        let next = link
            .trim_start_matches("</api/v1/")
            .split('>')
            .next()
            .unwrap_or_default();
        let url = format!("{}/{next}", scene.world.console.api_url());
        let rest = scene.world.http.get(url).bearer_auth(&all).send().await?;
        assert_eq!(
            rest.text().await?,
            format!("kind,namespace\r\nHelmRelease,{shop}\r\n")
        );
        for path in [
            "objects?format=xml",
            "objects?format=csv&kind=pods",
            "watch?repository=team/app",
            "watch?image=web",
            "charts?version=%3C%3C1",
        ] {
            let (status, told) = scene.ask(&ana, path).await?;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{told}");
        }
        Ok(())
    });
}

#[test]
fn the_command_asks_clusters_and_consoles_alike() {
    play("tables-command", async |scene| {
        let namespace = &scene.namespace;
        let url = format!("https://git.example.com/{namespace}/app.git");
        let source = objects::git_repository(namespace, "repo", &url, "main");
        apply(&scene.client, &source).await?;
        release(&scene, namespace, "web", "podinfo", "2.0.0").await?;
        deployment(&scene, namespace, "web", "registry.example.com/tables-command:2").await?;
        let user = scene.user("ana", &[("*", &["*/*"])]).await?;
        let image = format!("objects?namespace={namespace}&cluster=local&image=tables-command");
        scene.until(&user, &image, |page| page["total"] == 1).await?;
        let root = scene.world.console.api_url().replace("/api/v1", "");
        let console = ["--console", &root, "--token", &user, "--clusters", "local"];
        let repository = format!("{namespace}/app");
        let commands: [&[&str]; 4] = [
            &["charts", "podinfo", "--version", "2.x", "-o", "csv"],
            &["query", "hr", "--image", "tables-command", "-o", "csv"],
            &["query", "--repository", &repository, "-o", "csv"],
            &["query", "--chart", "podinfo", "--version", ">=2", "-o", "csv"],
        ];
        for words in commands {
            let words = [words, &["-n", namespace]].concat();
            let of_cluster = scene.windlass(&words).await?;
            ensure!(of_cluster.lines().count() > 1, "{words:?}: {of_cluster}");
            let of_console = scene.windlass(&[&words[..], &console].concat()).await?;
            assert_eq!(of_console, of_cluster, "{words:?}");
        }
        let table = scene.windlass(&["charts", "-n", namespace]).await?;
        ensure!(
            table.contains("APP VERSION") && table.contains("podinfo"),
            "{table}"
        );
        Ok(())
    });
}
