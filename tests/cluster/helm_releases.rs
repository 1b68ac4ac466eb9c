//! The main job of helm-controller: a chart from any source becomes a release, as Flux and Helm would have it.

use anyhow::ensure;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use testkit::git::Change;
use testkit::objects::{self, condition, field};
use testkit::{HelmRepository, wait_until_gone};

use crate::helm::{DEPLOYMENT, chart, ensure_condition, newest, run, said};
use crate::world::{PATIENCE, SOURCE, inventory_of};

#[test]
fn a_chart_of_an_oci_repository_is_released_and_the_status_is_as_flux_writes_it() {
    run("helm-oci", |test| async move {
        let ns = &test.namespace;
        let digest = test
            .oci_chart("1.2.3", chart("1.2.3", &[("web.yaml", DEPLOYMENT)])?)
            .await?;
        test.apply(&test.release(json!({"values": {"value": "mine"}})))
            .await?;
        let object = test.ready().await?;
        let version = format!("1.2.3+{}", &digest["sha256:".len()..][..12]);

        ensure_condition(&object, "Ready", "True", "InstallSucceeded")?;
        ensure_condition(&object, "Released", "True", "InstallSucceeded")?;
        let (_, _, message) = condition(&object, "Ready").unwrap_or_default();
        ensure!(
            message == format!("Helm install succeeded for release {ns}/web.v1 with chart web@{version}"),
            "{message}"
        );
        ensure!(condition(&object, "Reconciling").is_none() && condition(&object, "Stalled").is_none());
        ensure!(said(&object, "lastAttemptedRevision") == version);
        ensure!(said(&object, "lastAttemptedRevisionDigest") == digest);
        ensure!(
            said(&object, "storageNamespace") == ns
                && said(&object, "lastAttemptedReleaseAction") == "install"
        );
        let snapshot = newest(&object);
        ensure!(snapshot["chartName"] == "web" && snapshot["chartVersion"] == version.as_str());
        ensure!(snapshot["status"] == "deployed" && snapshot["appVersion"] == "1.2.3-app");
        ensure!(snapshot["ociDigest"] == digest.as_str() && snapshot["namespace"] == ns.as_str());
        let inventory = inventory_of(&object);
        ensure!(
            inventory
                == [
                    format!("{ns}_web-map__ConfigMap"),
                    format!("{ns}_web_apps_Deployment")
                ],
            "{inventory:?}"
        );
        ensure!(object.metadata.finalizers == Some(vec!["finalizers.fluxcd.io".to_owned()]));

        ensure!(test.records("web").await? == [(1, "deployed".to_owned())]);
        let map = test.config_map_has("web-map", "value", "mine").await?;
        let labels = map.metadata.labels.unwrap_or_default();
        ensure!(labels.get("helm.toolkit.fluxcd.io/name").map(String::as_str) == Some("web"));
        ensure!(labels.get("helm.toolkit.fluxcd.io/namespace") == Some(ns));
        ensure!(labels.get("app.kubernetes.io/managed-by").map(String::as_str) == Some("Helm"));
        let annotations = map.metadata.annotations.unwrap_or_default();
        ensure!(annotations.get("meta.helm.sh/release-name").map(String::as_str) == Some("web"));
        let managers = map.metadata.managed_fields.unwrap_or_default();
        ensure!(
            managers
                .iter()
                .all(|entry| entry.manager.as_deref() == Some("helm-controller"))
        );
        test.map_has("chart", &version).await
    });
}

#[test]
fn a_chart_of_a_helm_repository_gets_a_helm_chart_that_goes_with_the_release() {
    run("helm-http", |test| async move {
        let ns = &test.namespace;
        let repository = HelmRepository::start().await?;
        test.apply(&json!({
            "apiVersion": SOURCE, "kind": "HelmRepository", "metadata": {"name": "charts", "namespace": ns},
            "spec": {"url": repository.url(), "interval": "1h"},
        }))
        .await?;
        let mut release = test.release(json!({
            "chart": {
                "metadata": {"labels": {"team": "a"}},
                "spec": {
                    "chart": "app", "version": "1.0.0", "sourceRef": {"kind": "HelmRepository", "name": "charts"},
                },
            },
        }));
        release["spec"]
            .as_object_mut()
            .map(|spec| spec.remove("chartRef"));
        test.apply(&release).await?;
        let object = test.ready().await?;
        ensure!(said(&object, "helmChart") == format!("{ns}/{ns}-web"));
        ensure!(newest(&object)["chartVersion"] == "1.0.0" && newest(&object)["chartName"] == "app");
        let charts = test.objects(SOURCE, "HelmChart");
        let name = format!("{ns}-web");
        let made = charts.get(&name).await?;
        let labels = made.metadata.labels.clone().unwrap_or_default();
        ensure!(labels.get("helm.toolkit.fluxcd.io/name").map(String::as_str) == Some("web"));
        ensure!(labels.get("team").map(String::as_str) == Some("a"));
        ensure!(field(&made, "/spec/interval") == Some(&json!("1h0m0s")));

        release["spec"]["chart"]["spec"]["version"] = json!("1.1.0");
        test.apply(&release).await?;
        let object = test.ready_at(2).await?;
        ensure!(newest(&object)["chartVersion"] == "1.1.0");
        ensure_condition(&object, "Ready", "True", "UpgradeSucceeded")?;

        test.delete().await?;
        ensure!(test.records("web").await?.is_empty());
        wait_until_gone(&charts, &name, PATIENCE).await
    });
}

#[test]
fn a_chart_in_a_git_repository_follows_its_commits() {
    run("helm-git", |test| async move {
        let metadata = |version: &str| format!("apiVersion: v2\nname: web\nversion: {version}\n");
        let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-map\ndata:\n  \
                        chart: {{ .Chart.Version | quote }}\n";
        let repository = test.repository(&[
            ("charts/web/Chart.yaml", metadata("0.1.0")),
            ("charts/web/templates/map.yaml", template.to_owned()),
        ])?;
        test.git_source(&repository).await?;
        let mut release = test.release(json!({
            "chart": {"spec": {"chart": "./charts/web", "sourceRef": {"kind": "GitRepository", "name": "app"}}},
        }));
        release["spec"]
            .as_object_mut()
            .map(|spec| spec.remove("chartRef"));
        test.apply(&release).await?;
        test.ready().await?;
        test.map_has("chart", "0.1.0").await?;
        test.push(
            &repository,
            &[Change::write("charts/web/Chart.yaml", metadata("0.2.0"))],
        )
        .await?;
        test.ready_at(2).await?;
        test.map_has("chart", "0.2.0").await
    });
}

#[test]
fn the_release_may_have_another_name_and_other_namespaces() {
    run("helm-places", |test| async move {
        let ns = &test.namespace;
        let there = format!("{ns}-there");
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        let release = test.release(json!({
            "releaseName": "shop", "targetNamespace": there, "storageNamespace": ns,
            "install": {"createNamespace": true},
        }));
        test.apply(&release).await?;
        let object = test.ready().await?;
        ensure!(newest(&object)["name"] == "shop" && newest(&object)["namespace"] == there.as_str());
        let maps = objects::api(&test.client, "v1", "ConfigMap", &there);
        maps.get("shop-map").await?;
        ensure!(test.records("shop").await? == [(1, "deployed".to_owned())]);

        // Another name: the release moves, and nothing is left behind.
        let renamed = Patch::Merge(json!({"spec": {"releaseName": "store"}}));
        test.releases()
            .patch("web", &PatchParams::default(), &renamed)
            .await?;
        test.when(|object| objects::is_ready(object) && newest(object)["name"] == "store")
            .await?;
        maps.get("store-map").await?;
        wait_until_gone(&maps, "shop-map", PATIENCE).await?;
        ensure!(test.records("shop").await?.is_empty());
        test.delete().await?;
        wait_until_gone(&maps, "store-map", PATIENCE).await
    });
}

#[test]
fn the_post_renderers_and_common_metadata_reach_every_object() {
    run("helm-post-render", |test| async move {
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        let patch = json!([{"op": "replace", "path": "/data/value", "value": "patched"}]).to_string();
        let release = test.release(json!({
            "commonMetadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
            "postRenderers": [{"kustomize": {"patches": [{"patch": patch, "target": {"kind": "ConfigMap"}}]}}],
        }));
        test.apply(&release).await?;
        test.ready().await?;
        let map = test.config_map_has("web-map", "value", "patched").await?;
        let (labels, annotations) = (map.metadata.labels, map.metadata.annotations);
        ensure!(labels.unwrap_or_default().get("team").map(String::as_str) == Some("a"));
        ensure!(annotations.unwrap_or_default().get("note").map(String::as_str) == Some("b"));
        // Another label is another release, though chart and values are the same.
        let patch = Patch::Merge(json!({"spec": {"commonMetadata": {"labels": {"team": "c"}}}}));
        test.releases()
            .patch("web", &PatchParams::default(), &patch)
            .await?;
        test.ready_at(2).await.map(drop)
    });
}
