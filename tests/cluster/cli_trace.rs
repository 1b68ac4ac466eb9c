//! `windlass trace` and `windlass why` of any object: up to what delivers it, the commit, and the cause.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use testkit::wait_for;

use crate::cli::Windlass;
use crate::helm::{self, DEPLOYMENT};
use crate::world::{PATIENCE, Test, config_map, deployment, run};

async fn first_pod(test: &Test, app: &str) -> Result<String> {
    let ready = |object: &kube::api::DynamicObject| {
        object.data.pointer("/status/replicas").and_then(Value::as_i64) == Some(1)
    };
    wait_for(&test.objects("apps/v1", "Deployment"), app, ready, PATIENCE).await?;
    let pods: Api<Pod> = Api::namespaced(test.client.clone(), &test.namespace);
    let found = pods
        .list(&ListParams::default().labels(&format!("app={app}")))
        .await?;
    Ok(found.items.first().context("there is no Pod")?.name_any())
}

#[test]
fn any_object_leads_to_its_commit() {
    run("cli-trace", |test| async move {
        let windlass = Windlass { test: &test };
        let ns = &test.namespace;
        let child = test
            .kustomization("child", json!({"path": "./child"}))
            .to_string();
        let repository = test.repository(&[
            ("deploy/child.yaml", child),
            ("child/web.yaml", deployment(ns, "web", "example.com/web:1", 1)),
        ])?;
        test.deliver(&repository, json!({})).await?;
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        test.ready("child", &revision).await?;
        let pod = first_pod(&test, "web").await?;
        let url = repository.url();
        let chain = format!("owned by Deployment/{ns}/web: ready\n");
        let said = windlass.run(&["trace", &format!("pod/{pod}")], 0).await?;
        for line in [
            format!("Pod/{ns}/{pod}: ready\n└── owned by ReplicaSet/{ns}/web-"),
            chain,
            format!("applied by Kustomization/{ns}/child: ready\n"),
            format!("path ./child; revision {revision}\n"),
            format!("made of GitRepository/{ns}/app: ready\n"),
            format!("applied by Kustomization/{ns}/app: ready\n"),
            format!("\nfrom: {revision} of {url}\n"),
        ] {
            ensure!(said.contains(&line), "{line:?} is not in\n{said}");
        }
        let said = windlass.run(&["trace", "deploy", "web", "-o", "json"], 0).await?;
        let value: Value = serde_json::from_str(&said)?;
        ensure!(
            value["from"] == json!({"revision": revision, "url": url}),
            "{said}"
        );
        let said = windlass.run(&["trace", "deploy/web", "-o", "name"], 0).await?;
        let names = format!("Deployment/{ns}/web\nKustomization/{ns}/child\nKustomization/{ns}/app\n");
        ensure!(said == names, "{said}");
        let said = windlass.run(&["why", "deployments.apps/web"], 0).await?;
        ensure!(said.contains(&format!("\nfrom: {revision} of {url}\n")), "{said}");
        let said = windlass.run(&["why", "ks/child"], 0).await?;
        ensure!(said.contains(&format!("\nfrom: {revision} of {url}\n")), "{said}");

        test.apply(
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own", "namespace": ns}}),
        )
        .await?;
        let said = windlass.run(&["trace", "cm/own"], 3).await?;
        ensure!(
            said.contains(&format!("ConfigMap/{ns}/own is not delivered by Flux")),
            "{said}"
        );
        let said = windlass.run(&["trace", "cm/gone"], 3).await?;
        ensure!(
            said.contains(&format!(
                "ConfigMap/{ns}/gone does not exist; name its namespace with -n"
            )),
            "{said}"
        );
        let said = windlass.run(&["trace", "nothing/gone"], 2).await?;
        ensure!(said.contains("the cluster has no kind \"nothing\""), "{said}");
        test.delete_kustomization("app").await
    });
}

#[test]
fn why_goes_from_any_object_to_the_cause() {
    run("cli-why-any", |test| async move {
        let windlass = Windlass { test: &test };
        let ns = &test.namespace;
        let broken = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "bad", "namespace": ns},
            "spec": {"selector": {"matchLabels": {"app": "bad"}}, "template": {
                "metadata": {"labels": {"app": "bad", "testkit.windlass.dev/outcome": "image-pull-error"}},
                "spec": {"containers": [{"name": "app", "image": "example.com/bad:1"}]}}},
        });
        let repository = test.repository(&[
            ("deploy/bad.yaml", broken.to_string()),
            ("deploy/a.yaml", config_map(ns, "a", "1")),
        ])?;
        test.git_source(&repository).await?;
        test.apply(&test.kustomization(
            "app",
            json!({"wait": true, "timeout": "5s", "retryInterval": "1h"}),
        ))
        .await?;
        test.not_ready(&test.kustomizations(), "app", "HealthCheckFailed")
            .await?;
        let said = windlass.run(&["why", "deployment/bad"], 3).await?;
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        ensure!(said.contains(&format!("from: {revision} of ")), "{said}");
        let causes: Vec<_> = said.lines().filter(|line| line.starts_with("cause: ")).collect();
        ensure!(
            causes.len() == 1
                && causes[0].starts_with(&format!("cause: Pod/{ns}/bad-"))
                && causes[0].contains(": ImagePull: "),
            "{said}"
        );
        // What is fine itself hears of the source that cannot be fetched.
        let mut gone = testkit::objects::git_repository(ns, "app", repository.url(), "gone");
        gone["spec"]["interval"] = json!("1h");
        test.apply(&gone).await?;
        test.not_ready(&test.git_repositories(), "app", "GitOperationFailed")
            .await?;
        let said = windlass.run(&["why", "cm/a"], 0).await?;
        ensure!(
            said.contains(&format!("cause: GitRepository/{ns}/app: GitOperationFailed: ")),
            "{said}"
        );
        test.delete_kustomization("app").await
    });
}

#[test]
fn objects_of_releases_lead_to_their_chart() {
    helm::run("cli-trace-helm", |test| async move {
        let windlass = Windlass { test: &test.test };
        let ns = &test.namespace;
        let chart = helm::chart("1.0.0", &[("deployment.yaml", DEPLOYMENT)])?;
        let digest = test.oci_chart("1.0.0", chart).await?;
        test.apply(&test.release(json!({}))).await?;
        test.ready().await?;
        let said = windlass.run(&["trace", "deployment/web"], 0).await?;
        for line in [
            format!("└── applied by HelmRelease/{ns}/web: ready\n"),
            format!("made of OCIRepository/{ns}/web: ready\n"),
            digest,
        ] {
            ensure!(said.contains(&line), "{line:?} is not in\n{said}");
        }
        test.delete().await
    });
}
