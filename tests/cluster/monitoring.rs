//! A real Prometheus scrapes all four controllers, evaluates the rules that the chart ships, and answers what its dashboards
//! and those of Flux ask.

mod dashboards;
mod names;

use std::fs;

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::git::Change;
use testkit::prometheus::RULES;
use testkit::tools::repository_root;
use testkit::{Controller, HelmRepository, Prometheus, objects, wait_for};

use crate::alerts::Alerts;
use crate::helm::HELM;
use crate::world::{PATIENCE, SOURCE, Test, config_map, run};

/// Has the controllers do a little of what there is to do, so that there is something to tell.
async fn work(test: &Test, charts: &HelmRepository, alerts: &Alerts<'_>) -> Result<()> {
    let namespace = &test.namespace;
    test.apply(&json!({
        "apiVersion": SOURCE, "kind": "HelmRepository", "metadata": {"name": "charts", "namespace": namespace},
        "spec": {"interval": "1h", "url": charts.url()},
    }))
    .await?;
    test.apply(&json!({
        "apiVersion": SOURCE, "kind": "HelmChart", "metadata": {"name": "app", "namespace": namespace},
        "spec": {
            "interval": "1h", "chart": "app", "version": "1.x",
            "sourceRef": {"kind": "HelmRepository", "name": "charts"},
        },
    }))
    .await?;
    wait_for(
        &test.objects(SOURCE, "HelmChart"),
        "app",
        objects::is_ready,
        PATIENCE,
    )
    .await?;
    test.apply(&test.in_own_shard(json!({
        "apiVersion": HELM, "kind": "HelmRelease", "metadata": {"name": "app", "namespace": namespace},
        "spec": {"interval": "1h", "chartRef": {"kind": "HelmChart", "name": "app"}},
    })))
    .await?;
    wait_for(
        &test.objects(HELM, "HelmRelease"),
        "app",
        objects::is_ready,
        PATIENCE,
    )
    .await?;
    alerts.generic("told", json!({})).await?;
    let metadata = json!({"name": "hook", "namespace": namespace});
    test.apply(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"token": "t"},
    }))
    .await?;
    test.apply(&json!({
        "apiVersion": "notification.toolkit.fluxcd.io/v1", "kind": "Receiver", "metadata": metadata,
        "spec": {
            "type": "generic", "secretRef": {"name": "hook"},
            "resources": [{"kind": "GitRepository", "name": "app"}],
        },
    }))
    .await?;
    // No one's, but a call.
    let http = reqwest::Client::builder().no_proxy().build()?;
    let hook = format!("{}/hook/unknown", alerts.controller.receiver_url());
    http.post(hook).send().await?;
    Ok(())
}

/// Checks that the work above shows in the metrics of source-controller, which other tests use, too.
async fn values(prometheus: &Prometheus, namespace: &str) -> Result<()> {
    let chart = format!(r#"exported_namespace="{namespace}",name="charts",event_type="cache_hit""#);
    let artifact = format!(r#"kind="GitRepository",exported_namespace="{namespace}",name="app""#);
    for query in [
        r#"sum(windlass_fetch_duration_seconds_count{kind="GitRepository",result="fetched"}) > bool 1"#,
        r#"sum(windlass_fetched_bytes_total{kind="GitRepository"}) > bool 100"#,
        r#"sum(windlass_fetched_bytes_total{kind="HelmRepository"}) > bool 1000"#,
        r#"sum(windlass_artifact_requests_total{protocol="grpc",code="OK"}) > bool 1"#,
        r#"sum(windlass_artifact_sent_bytes_total{protocol="grpc"}) > bool 100"#,
        r#"sum(windlass_store_artifacts{kind="HelmChart"}) > bool 0"#,
        r#"sum(windlass_store_bytes{content="blob"}) > bool 0"#,
        &format!("sum(gotk_cache_events_total{{{chart}}}) > bool 0"),
        &format!("sum(windlass_artifact_size_bytes{{{artifact}}}) > bool 50"),
        &format!("time() - sum(windlass_artifact_stored_timestamp_seconds{{{artifact}}}) < bool 600"),
    ] {
        prometheus.until(query, 1.0).await?;
    }
    Ok(())
}

#[test]
fn a_real_prometheus_reads_all_controllers_and_evaluates_the_rules() {
    run("monitoring", |test| async move {
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let (source, apply) = (&test.world.source, &test.world.apply);
        let helm = Controller::start_helm(kubeconfig, source, test.own_shard()).await?;
        let alerts = Alerts::start(&test, &[]).await?;
        let charts = HelmRepository::start().await?;
        let prometheus = Prometheus::start(&[source, apply, &helm, &alerts.controller]).await?;
        work(&test, &charts, &alerts).await?;

        let map = config_map(&test.namespace, "settings", "first");
        let repository = test.repository(&[("deploy/map.yaml", map)])?;
        test.deliver(&repository, json!({})).await?;
        test.apply(&test.kustomization("lost", json!({"path": "./nowhere"})))
            .await?;

        prometheus.until("sum(up)", 4.0).await?;
        let namespace = &test.namespace;
        let of = |kind: &str, name: &str, ready: &str| {
            format!(
                r#"gotk_resource_info{{customresource_kind="{kind}",exported_namespace="{namespace}",name="{name}",ready="{ready}",suspended="false"}}"#
            )
        };
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        let delivered = of("Kustomization", "app", "True").replace(
            "name=\"app\"",
            &format!("name=\"app\",source_name=\"app\",revision=\"{revision}\""),
        );
        prometheus.until(&delivered, 1.0).await?;
        prometheus.until(&of("GitRepository", "app", "True"), 1.0).await?;
        prometheus
            .until(&of("Kustomization", "lost", "False"), 1.0)
            .await?;
        for (name, result) in [("app", "success"), ("lost", "failure")] {
            // Labels of a target win; what the metric has too is renamed.
            let query = format!(
                r#"windlass_deliveries_total{{kind="Kustomization",exported_namespace="{namespace}",name="{name}",result="{result}"}}"#
            );
            prometheus.until(&query, 1.0).await?;
        }
        let next = config_map(namespace, "settings", "second");
        test.push(&repository, &[Change::write("deploy/map.yaml", next)])
            .await?;
        let object = format!(r#"kind="Kustomization",exported_namespace="{namespace}",name="app""#);
        let delivered = format!(r#"windlass_deliveries_total{{{object},result="success"}}"#);
        prometheus.until(&delivered, 2.0).await?;
        let lead = format!("windlass_delivery_last_lead_time_seconds{{{object}}} < bool 600");
        prometheus.until(&lead, 1.0).await?;
        prometheus.until("count(windlass_build_info)", 4.0).await?;

        let firing = format!(
            r#"ALERTS{{alertname="WindlassObjectNotReady",alertstate="pending",exported_namespace="{namespace}",name="lost"}}"#
        );
        prometheus.until(&firing, 1.0).await?;
        let rules = prometheus.evaluates_rules().await?;
        ensure!(rules > 10, "only {rules} rules were read");
        values(&prometheus, namespace).await?;
        dashboards::ours(&prometheus).await?;
        dashboards::of_flux(&prometheus).await?;
        names::with_objects(&prometheus).await
    });
}

#[test]
fn every_alert_has_its_runbook() {
    let read = |path: &str| fs::read_to_string(repository_root().join(path)).unwrap();
    let (rules, runbooks) = (read(RULES), read("docs/operations/runbooks.md"));
    let alerts: Vec<_> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect();
    assert!(alerts.len() > 5);
    for alert in alerts {
        assert!(
            runbooks.contains(&format!("\n## {alert}\n")),
            "{alert} has no runbook"
        );
        let link = format!("runbook_url: RUNBOOKS#{}", alert.to_lowercase());
        assert!(rules.contains(&link), "{alert} does not link to its runbook");
    }
}
