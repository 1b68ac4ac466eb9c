//! `windlass diff` of HelmReleases: charts of the checkout and of the cluster, with the values that there would be.

use anyhow::ensure;
use serde_json::json;
use testkit::HelmRepository;

use crate::cli::Windlass;
use crate::cli_diff::{checkout, write};
use crate::helm::{HELM, chart, run};
use crate::world::{SOURCE, config_map};

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-map\ndata:\n  \
                   value: {{ .Values.value | quote }}\n";

#[test]
fn a_chart_of_the_checkout_is_rendered_with_the_values_of_the_cluster() {
    run("cli-diff-helm", |test| async move {
        let windlass = Windlass { test: &test.test };
        let ns = &test.namespace;
        let release = |values: serde_json::Value| {
            json!({"apiVersion": HELM, "kind": "HelmRelease", "metadata": {"name": "web", "namespace": ns},
                "spec": {"interval": "1h", "values": values,
                    "valuesFrom": [{"kind": "ConfigMap", "name": "values", "valuesKey": "key", "targetPath": "other"}],
                    "chart": {"spec": {"chart": "./charts/web", "sourceRef": {"kind": "GitRepository", "name": "app"}}}}})
            .to_string()
        };
        let other = MAP
            .replace("-map", "-other")
            .replace("value:", "other:")
            .replace(".value", ".other");
        let repository = test.repository(&[
            (
                "charts/web/Chart.yaml",
                "apiVersion: v2\nname: web\nversion: 1.0.0\n".to_owned(),
            ),
            ("charts/web/values.yaml", "value: default\n".to_owned()),
            ("charts/web/templates/map.yaml", MAP.to_owned()),
            ("charts/web/templates/other.yaml", other),
            ("deploy/release.yaml", release(json!({"value": "a"}))),
            ("deploy/values.yaml", config_map(ns, "values", "1")),
        ])?;
        test.deliver(&repository, json!({"prune": true})).await?;
        test.ready().await?;
        let local = checkout(&repository)?;
        let root = local.path().display().to_string();
        let said = windlass
            .run(&["diff", "hr/web", "--checkout", &root, "--exit-code"], 0)
            .await?;
        ensure!(
            said.contains(&format!("HelmRelease/{ns}/web (from ./charts/web)\n"))
                && said.contains("\n2 unchanged\n"),
            "{said}"
        );
        write(
            local.path(),
            "charts/web/templates/map.yaml",
            &MAP.replace("quote }}", "upper | quote }}"),
        )?;
        write(
            local.path(),
            "charts/web/templates/new.yaml",
            &MAP.replace("-map", "-new"),
        )?;
        write(
            local.path(),
            "deploy/release.yaml",
            &release(json!({"value": "b"})),
        )?;
        write(local.path(), "deploy/values.yaml", &config_map(ns, "values", "2"))?;
        std::fs::rename(
            local.path().join("charts/web/templates/other.yaml"),
            local.path().join("charts/web/templates/renamed.yaml"),
        )?;
        let words = [
            "diff",
            "ks/app",
            "--checkout",
            &root,
            "--recursive",
            "--exit-code",
        ];
        let said = windlass.run(&words, 5).await?;
        for line in [
            "      spec.values.value: \"a\" → \"b\"\n".to_owned(),
            format!("HelmRelease/{ns}/web (from ./charts/web, applied by Kustomization/{ns}/app)\n"),
            "      data.value: \"a\" → \"B\"\n".to_owned(),
            "      data.other: \"1\" → \"2\"\n".to_owned(),
            format!("  + ConfigMap/{ns}/web-new created"),
        ] {
            ensure!(said.contains(&line), "{line:?} is not in\n{said}");
        }
        std::fs::remove_file(local.path().join("charts/web/templates/renamed.yaml"))?;
        let said = windlass.run(&["diff", "hr/web", "--checkout", &root], 0).await?;
        ensure!(
            said.contains(&format!("  - ConfigMap/{ns}/web-other pruned\n")),
            "{said}"
        );
        test.config_map_has("web-map", "value", "a").await?;
        test.delete_kustomization("app").await
    });
}

#[test]
fn a_version_that_the_cluster_does_not_have_is_named_and_may_be_given() {
    run("cli-diff-version", |test| async move {
        let windlass = Windlass { test: &test.test };
        let ns = &test.namespace;
        let repository = HelmRepository::start().await?;
        let index = json!({"apiVersion": "v1", "entries": {"web": [
            {"apiVersion": "v2", "name": "web", "version": "1.0.0", "urls": ["web-1.0.0.tgz"]}]}});
        repository.set_file("index.yaml", Some(index.to_string().into_bytes()));
        repository.set_file("web-1.0.0.tgz", Some(chart("1.0.0", &[])?));
        test.apply(&json!({"apiVersion": SOURCE, "kind": "HelmRepository", "metadata": {"name": "charts", "namespace": ns},
            "spec": {"url": repository.url(), "interval": "1h"}}))
            .await?;
        let release = |version: &str| {
            json!({"apiVersion": HELM, "kind": "HelmRelease", "metadata": {"name": "web", "namespace": ns},
                "spec": {"interval": "1h", "chart": {"spec": {"chart": "web", "version": version,
                    "sourceRef": {"kind": "HelmRepository", "name": "charts"}}}}})
            .to_string()
        };
        let files = test.repository(&[("deploy/release.yaml", release("1.0.0"))])?;
        test.deliver(&files, json!({})).await?;
        test.ready().await?;
        let local = checkout(&files)?;
        let root = local.path().display().to_string();
        let words = [
            "diff",
            "ks/app",
            "--checkout",
            &root,
            "--recursive",
            "--exit-code",
        ];
        windlass.run(&words, 0).await?;
        write(local.path(), "deploy/release.yaml", &release("2.0.0"))?;
        let said = windlass.run(&words, 1).await?;
        ensure!(
            said.contains(
                "the chart cannot be had: it would be web 2.0.0 of charts then, and the cluster has web 1.0.0"
            ),
            "{said}"
        );
        let archive = local.path().join(".git/web.tgz");
        std::fs::write(&archive, chart("2.0.0", &[])?)?;
        let given = format!("{ns}/web={}", archive.display());
        let said = windlass
            .run(&[&words[..], &["--chart", &given]].concat(), 5)
            .await?;
        ensure!(
            said.contains("      data.chart: \"1.0.0\" → \"2.0.0\"\n"),
            "{said}"
        );
        test.delete_kustomization("app").await
    });
}

#[test]
fn a_chart_that_is_elsewhere_is_the_one_that_the_cluster_has() {
    run("cli-diff-chart", |test| async move {
        let windlass = Windlass { test: &test.test };
        let ns = &test.namespace;
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        let release = |value: &str| test.release(json!({"values": {"value": value}})).to_string();
        let repository = test.repository(&[("deploy/release.yaml", release("a"))])?;
        test.deliver(&repository, json!({})).await?;
        test.ready().await?;
        let local = checkout(&repository)?;
        let root = local.path().display().to_string();
        let words = [
            "diff",
            "ks/app",
            "--checkout",
            &root,
            "--recursive",
            "--exit-code",
        ];
        windlass.run(&words, 0).await?;
        write(local.path(), "deploy/release.yaml", &release("b"))?;
        let said = windlass.run(&words, 5).await?;
        ensure!(
            said.contains(&format!(
                "HelmRelease/{ns}/web (from OCIRepository/{ns}/web at 1.0.0@sha256:"
            )) && said.contains("      data.value: \"a\" → \"b\"\n")
                && !said.contains("data.chart"),
            "{said}"
        );
        test.delete_kustomization("app").await
    });
}

#[test]
fn what_the_client_patches_is_asked_about_with_its_patches() {
    run("cli-diff-client", |test| async move {
        let windlass = Windlass { test: &test.test };
        let ns = &test.namespace;
        let release = |name: &str, spec: serde_json::Value| {
            let mut object = json!({"apiVersion": HELM, "kind": "HelmRelease", "metadata": {"name": name, "namespace": ns},
                "spec": {"interval": "1h", "releaseName": name,
                    "chart": {"spec": {"chart": "./charts/web", "sourceRef": {"kind": "GitRepository", "name": "app"}}}}});
            for (field, value) in spec.as_object().into_iter().flatten() {
                object["spec"][field] = value.clone();
            }
            object.to_string()
        };
        let with_extra = format!("{MAP}  extra: x\n");
        let client =
            json!({"install": {"serverSideApply": false}, "upgrade": {"serverSideApply": "disabled"}});
        let repository = test.repository(&[
            (
                "charts/web/Chart.yaml",
                "apiVersion: v2\nname: web\nversion: 1.0.0\n".to_owned(),
            ),
            ("charts/web/values.yaml", "value: default\n".to_owned()),
            ("charts/web/templates/map.yaml", with_extra),
            ("deploy/release.yaml", release("web", client)),
        ])?;
        test.deliver(&repository, json!({"prune": true})).await?;
        test.ready().await?;
        let local = checkout(&repository)?;
        let root = local.path().display().to_string();
        let words = [
            "diff",
            "ks/app",
            "--checkout",
            &root,
            "--recursive",
            "--exit-code",
        ];
        windlass.run(&words, 0).await?;
        write(local.path(), "charts/web/templates/map.yaml", MAP)?;
        let made = format!("{ns}-made");
        let new = json!({"install": {"createNamespace": true}, "targetNamespace": made});
        write(local.path(), "deploy/new.yaml", &release("new", new))?;
        let said = windlass.run(&words, 5).await?;
        for line in [
            "      data.extra: \"x\" → (none)\n".to_owned(),
            format!("  + Namespace/{made} created\n"),
            format!("  + ConfigMap/{made}/new-map created"),
        ] {
            ensure!(said.contains(&line), "{line:?} is not in\n{said}");
        }
        test.delete_kustomization("app").await
    });
}
