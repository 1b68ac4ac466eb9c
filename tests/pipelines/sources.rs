//! Releases of what sources follow: tags of artifacts in a registry, commits of a repository.

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::Registry;
use testkit::git::Change;
use testkit::objects::{apply, field};

use crate::world::{DELIVERY, KUSTOMIZE, Scene, play, release_of};

const SOURCE: &str = "source.toolkit.fluxcd.io/v1";

/// A source and a Kustomization that is built from it, as an application.
fn app(kind: &str, namespace: &str, url: &str, reference: &str) -> String {
    let insecure = if kind == "OCIRepository" {
        "  insecure: true\n"
    } else {
        ""
    };
    format!(
        "apiVersion: {SOURCE}\nkind: {kind}\nmetadata:\n  name: shop\n  namespace: {namespace}\nspec:\n  interval: 1s\n{insecure}  \
         url: {url}\n  ref:\n{reference}---\napiVersion: {KUSTOMIZE}\nkind: Kustomization\nmetadata:\n  name: shop\n  namespace: \
         {namespace}\nspec:\n  interval: 1h\n  prune: true\n  path: ./\n  targetNamespace: {namespace}\n  sourceRef: {{kind: {kind}, \
         name: shop}}\n"
    )
}

fn settings(version: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  version: \"{version}\"\n")
}

/// A pipeline of a source and what is built from it, through two environments.
async fn pipeline(scene: &Scene, kind: &str, [dev, production]: [&str; 2]) -> Result<()> {
    for namespace in [dev, production] {
        let version = "rbac.authorization.k8s.io/v1";
        let metadata = json!({"name": "sources", "namespace": namespace});
        let role = json!({
            "apiVersion": version, "kind": "Role", "metadata": metadata,
            "rules": [{"apiGroups": ["source.toolkit.fluxcd.io"], "resources": ["*"], "verbs": ["get"]}],
        });
        let binding = json!({
            "apiVersion": version, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "sources"},
            "subjects": [{"kind": "ServiceAccount", "name": "promoter", "namespace": scene.namespace}],
        });
        apply(&scene.client, &role).await?;
        apply(&scene.client, &binding).await?;
    }
    let pipeline = json!({
        "apiVersion": DELIVERY, "kind": "Pipeline", "metadata": {"name": "shop", "namespace": scene.namespace},
        "spec": {
            "serviceAccountName": "promoter",
            "apps": [{"kind": kind, "name": "shop"}, {"kind": "Kustomization", "name": "shop"}],
            "environments": [
                {"name": "dev", "targets": [{"namespace": dev}]},
                {"name": "production", "targets": [{"namespace": production}]},
            ],
        },
    });
    apply(&scene.client, &pipeline).await.map(drop)
}

#[test]
fn a_version_in_a_registry_is_promoted_to_where_a_tag_is_named() {
    play("oci", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let registry = Registry::start().await?;
        let push = async |tag: &str| {
            let files = [("web.yaml", settings(tag))];
            let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
            registry
                .push_files(&scene.namespace, &[tag], "main@sha1:0", &files)
                .await
        };
        push("1.0.0").await?;
        let url = registry.url(&scene.namespace);
        let repository = scene
            .fleet(&[
                ("dev", app("OCIRepository", &dev, &url, "    semver: 1.x\n")),
                (
                    "production",
                    app(
                        "OCIRepository",
                        &production,
                        &url,
                        "    tag: 1.0.0 # the newest\n",
                    ),
                ),
            ])
            .await?;
        pipeline(&scene, "OCIRepository", [&dev, &production]).await?;
        let pipeline = scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        let values = field(&pipeline, "/status/releases/0/values");
        ensure!(
            values == Some(&json!({"OCIRepository/shop: ref tag": "1.0.0"})),
            "{values:?}"
        );
        push("1.1.0").await?;
        // It is there as soon as the source has it, and healthy when that is applied.
        scene
            .wait(|pipeline| {
                release_of(pipeline, 1) == Some(2)
                    && field(pipeline, "/status/environments/1/healthySince").is_some()
            })
            .await?;
        let file = repository.git(&["show", "main:production/shop.yaml"])?;
        ensure!(file.contains("    tag: 1.1.0 # the newest\n"), "{file}");
        let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
            kube::Api::namespaced(scene.client.clone(), &production);
        let data = maps.get("web").await?.data.unwrap_or_default();
        let state = async |version: &str, kind: &str| {
            let api = testkit::objects::api(&scene.client, version, kind, &production);
            let found = api.get("shop").await?;
            Ok::<_, anyhow::Error>(found.data["status"].to_string())
        };
        ensure!(
            data["version"] == "1.1.0",
            "it counts as healthy once it is applied: {data:?}; {}; {}",
            state(SOURCE, "OCIRepository").await?,
            state(KUSTOMIZE, "Kustomization").await?
        );
        Ok(())
    });
}

#[test]
fn a_commit_is_promoted_to_where_one_is_named() {
    play("commit", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let code = scene
            .world
            .git
            .create_repository(&format!("{}-code", scene.namespace))?;
        code.commit("main", "one", &[Change::write("web.yaml", settings("1"))])?;
        let first = code.git(&["rev-parse", "main"])?.trim().to_owned();
        let at = format!("    branch: main\n    commit: {first}\n");
        let repository = scene
            .fleet(&[
                (
                    "dev",
                    app("GitRepository", &dev, code.url(), "    branch: main\n"),
                ),
                ("production", app("GitRepository", &production, code.url(), &at)),
            ])
            .await?;
        pipeline(&scene, "GitRepository", [&dev, &production]).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        code.commit("main", "two", &[Change::write("web.yaml", settings("2"))])?;
        let second = code.git(&["rev-parse", "main"])?.trim().to_owned();
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(2)).await?;
        let file = repository.git(&["show", "main:production/shop.yaml"])?;
        ensure!(file.contains(&format!("    commit: {second}\n")), "{file}");
        Ok(())
    });
}
