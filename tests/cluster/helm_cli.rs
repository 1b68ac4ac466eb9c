//! The real `flux` and `helm` commands and HelmReleases: what their users see and ask for.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use kube::api::DynamicObject;
use serde_json::{Value, json};
use testkit::HelmRepository;
use testkit::objects::{self, condition};

use crate::cli::Windlass;
use crate::flux_cli::Flux;
use crate::helm::{HelmTest, chart, newest, run};
use crate::world::{PATIENCE, SOURCE};

#[test]
fn flux_shows_reconciles_suspends_and_explains_a_release() {
    run("helm-flux", |test| async move {
        let flux = Flux::start(&test).await?;
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        let values = json!({"kind": "ConfigMap", "name": "values"});
        test.apply(&json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "values", "namespace": test.namespace},
            "data": {"values.yaml": "value: from-map\n"},
        }))
        .await?;
        test.apply(&test.release(json!({"valuesFrom": [values], "values": {"more": 1}})))
            .await?;
        test.ready().await?;
        let said = flux.run(&["get", "helmreleases", "web"]).done().await?;
        ensure!(
            said.contains("True") && said.contains("Helm install succeeded for release"),
            "{said}"
        );
        let said = flux
            .run(&["debug", "helmrelease", "web", "--show-values"])
            .done()
            .await?;
        ensure!(
            said.contains("value: from-map") && said.contains("more: 1"),
            "{said}"
        );

        let said = flux.run(&["reconcile", "helmrelease", "web"]).done().await?;
        ensure!(said.contains("applied revision 1.0.0+"), "{said}");
        let said = flux
            .run(&["reconcile", "helmrelease", "web", "--force", "--reset"])
            .done()
            .await?;
        ensure!(said.contains("applied revision 1.0.0+"), "{said}");
        let object = test.ready_at(2).await?;
        ensure!(newest(&object)["status"] == "deployed");
        flux.run(&["suspend", "helmrelease", "web"]).done().await?;
        ensure!(
            flux.run(&["get", "helmreleases", "web"])
                .done()
                .await?
                .contains("True")
        );
        flux.run(&["resume", "helmrelease", "web"]).done().await?;
        test.ready().await?;
        Ok(())
    });
}

#[test]
fn flux_reconciles_a_release_with_its_source_and_tells_its_history() {
    run("helm-flux-source", |test| async move {
        let flux = Flux::start(&test).await?;
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        test.apply(&test.release(json!({"values": {"value": "one"}})))
            .await?;
        test.ready_at(1).await?;
        // The tag moves, which no one looks at for an hour.
        let more = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n";
        test.push_chart("1.0.0", chart("1.0.0", &[("more.yaml", more)])?)
            .await?;
        let said = flux
            .run(&["reconcile", "helmrelease", "web", "--with-source"])
            .done()
            .await?;
        ensure!(
            said.contains("OCIRepository web") && said.contains("applied revision 1.0.0+"),
            "{said}"
        );
        let object = test.ready_at(2).await?;
        test.config_maps()
            .get("more")
            .await
            .context("the new chart has one more object")?;

        let said = flux
            .run(&["debug", "helmrelease", "web", "--show-history"])
            .done()
            .await?;
        let digest = newest(&object)["digest"].as_str().unwrap_or_default();
        ensure!(
            said.contains("chartName: web") && said.contains(digest) && said.contains("version: 2"),
            "{said}"
        );
        let said = flux
            .run(&["debug", "helmrelease", "web", "--show-status"])
            .done()
            .await?;
        ensure!(
            said.contains("lastAttemptedReleaseAction: upgrade") && said.contains("type: Released"),
            "{said}"
        );
        Ok(())
    });
}

#[test]
fn flux_reconciles_a_release_with_the_helm_chart_of_its_spec() {
    run("helm-flux-chart", |test| async move {
        let flux = Flux::start(&test).await?;
        let repository = HelmRepository::start().await?;
        test.apply(&json!({
            "apiVersion": SOURCE, "kind": "HelmRepository",
            "metadata": {"name": "charts", "namespace": test.namespace},
            "spec": {"url": repository.url(), "interval": "1h"},
        }))
        .await?;
        let source = json!({"kind": "HelmRepository", "name": "charts"});
        let mut release = test.release(json!({"chart": {"spec": {"chart": "app", "sourceRef": source}}}));
        release["spec"]
            .as_object_mut()
            .map(|spec| spec.remove("chartRef"));
        test.apply(&release).await?;
        test.ready().await?;
        let said = flux
            .run(&["reconcile", "helmrelease", "web", "--with-source"])
            .done()
            .await?;
        ensure!(
            said.contains("HelmChart") && said.contains("applied revision 1.1.0"),
            "{said}"
        );
        ensure!(test.records("web").await?.len() == 1);
        Ok(())
    });
}

#[test]
fn helm_lists_reads_and_rolls_back_a_release_and_the_controller_answers() {
    run("helm-helm", |test| async move {
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        test.apply(&test.release(json!({"values": {"value": "first"}})))
            .await?;
        test.ready_at(1).await?;
        test.apply(&test.release(json!({"values": {"value": "second"}})))
            .await?;
        test.ready_at(2).await?;

        let listed: Value = serde_json::from_str(&helm(&test, &["list", "--output=json"]).await?)?;
        ensure!(
            listed[0]["name"] == "web" && listed[0]["revision"] == "2" && listed[0]["status"] == "deployed",
            "{listed}"
        );
        let history: Value = serde_json::from_str(&helm(&test, &["history", "web", "--output=json"]).await?)?;
        ensure!(
            history.as_array().is_some_and(|revisions| revisions.len() == 2),
            "{history}"
        );
        ensure!(
            history[0]["status"] == "superseded" && history[1]["description"] == "Upgrade complete",
            "{history}"
        );
        ensure!(
            helm(&test, &["get", "values", "web"])
                .await?
                .contains("value: second")
        );
        ensure!(
            helm(&test, &["get", "manifest", "web"])
                .await?
                .contains("# Source: web/templates/map.yaml")
        );

        // What someone brings back by hand is not what the object says: it is released again. As with Flux, helm's fields
        // are another manager's than the controller's.
        helm(&test, &["rollback", "web", "1", "--force-conflicts"]).await?;
        test.ready_at(4).await?;
        test.map_has("value", "second").await
    });
}

#[test]
fn what_helm_rolls_back_stays_while_the_release_is_held() {
    run("helm-held", |test| async move {
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        for (value, version) in [("first", 1), ("second", 2)] {
            test.apply(&test.release(json!({"values": {"value": value}})))
                .await?;
            test.ready_at(version).await?;
        }
        let windlass = Windlass { test: &test };
        windlass
            .run(&["hold", "hr/web", "--reason", "orders are lost"], 0)
            .await?;
        helm(&test, &["rollback", "web", "1", "--force-conflicts"]).await?;
        let is_said = |object: &DynamicObject| {
            condition(object, "Frozen")
                .is_some_and(|(_, _, said)| said.contains("hold-helmrelease-web: orders are lost"))
        };
        test.when(is_said).await?;
        // Whoever asks for a reconcile gets no other answer.
        objects::poke(&test.releases(), "web").await?;
        test.settle().await?;
        test.map_has("value", "first").await?;
        ensure!(test.records("web").await?.len() == 3);
        windlass.run(&["release", "hr/web"], 0).await?;
        test.ready_at(4).await?;
        test.map_has("value", "second").await
    });
}

/// Everything that helm has installed goes on as HelmReleases that `windlass import` writes.
#[test]
fn releases_of_helm_are_imported_and_taken_over() {
    run("helm-import", |test| async move {
        let repository = HelmRepository::start().await?;
        let home = testkit::scratch::directory("home")?;
        helm_at(&test, home.path(), &["repo", "add", "stable", repository.url()]).await?;
        let install = [
            "install",
            "shop",
            "stable/app",
            "--version=1.0.0",
            "--set=colour=green",
        ];
        helm_at(&test, home.path(), &install).await?;
        let map =
            |object: &str| objects::api(&test.world.control_plane.client(), "v1", object, &test.namespace);
        let before = map("ConfigMap").get("app").await?;
        let folder = home.path().join("imported");
        let import = || {
            let mut command = Command::new(testkit::controller::program("windlass")?);
            command
                .args([
                    "import",
                    "helm",
                    "--release-namespace",
                    &test.namespace,
                    "--kubeconfig",
                ])
                .arg(test.world.control_plane.kubeconfig_path())
                .arg("--output-folder")
                .arg(&folder)
                .env("HOME", home.path());
            let output = command.output()?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            anyhow::Ok((output.status.code(), said))
        };
        let (code, said) = tokio::task::block_in_place(import)?;
        ensure!(code == Some(0) && said.is_empty(), "{said}");
        for file in ["sources/stable.yaml", "shop.yaml"] {
            let text = std::fs::read_to_string(folder.join(file))?;
            for object in manifest::read_objects(&text, file)? {
                test.apply(&object.into_value()).await?;
            }
        }
        let ready = testkit::wait_for(&test.releases(), "shop", objects::is_ready, PATIENCE).await?;
        ensure!(
            newest(&ready)["chartVersion"] == "1.0.0" && test.records("shop").await?.len() == 2,
            "{:?}",
            ready.data["status"]
        );
        let after = map("ConfigMap").get("app").await?;
        ensure!(after.metadata.uid == before.metadata.uid);
        // What a HelmRelease delivers is left to it.
        std::fs::remove_dir_all(&folder)?;
        let (code, said) = tokio::task::block_in_place(import)?;
        let words = format!("HelmRelease {0}/shop delivers it already", test.namespace);
        ensure!(code == Some(3) && said.contains(&words), "{said}");
        Ok(())
    });
}

/// Runs the real helm and returns its standard output.
async fn helm(test: &HelmTest, arguments: &[&str]) -> Result<String> {
    let home = testkit::scratch::directory("home")?;
    helm_at(test, home.path(), arguments).await
}

/// Runs it with a home that it knows repositories from.
async fn helm_at(test: &HelmTest, home: &Path, arguments: &[&str]) -> Result<String> {
    let program = tokio::task::spawn_blocking(testkit::tools::helm).await??;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .args(["--namespace", &test.namespace, "--kubeconfig"])
        .arg(test.world.control_plane.kubeconfig_path())
        .env("HOME", home)
        .stdin(Stdio::null());
    let said = format!("helm {}", arguments.join(" "));
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{said} failed: {problem}");
    String::from_utf8(output.stdout).with_context(|| format!("{said} said no text"))
}
