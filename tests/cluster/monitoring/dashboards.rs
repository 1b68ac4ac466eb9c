//! Tests of the dashboards: every expression of ours, and the metrics and labels of Flux's.

use anyhow::{Result, ensure};
use testkit::Prometheus;
use testkit::prometheus::NAMESPACE;

/// Dashboards of the controllers that run here.
const OURS: [&str; 3] = ["artifacts", "controllers", "delivery"];

/// Panels that show nothing as long as nothing of the kind has happened.
const MAY_BE_EMPTY: [&str; 3] = [
    "Tokens of clouds that were kept",  // no cloud is asked for a token here
    "From the commit to ready",         // needs two deliveries within the range; the test of rules has them
    "Charts that the stored index had", // the one question was before the first scrape
];

/// Asks Prometheus everything that our dashboards ask.
pub(super) async fn ours(prometheus: &Prometheus) -> Result<()> {
    let mut asked = 0;
    for name in OURS {
        asked += prometheus.shows_dashboard(name, &MAY_BE_EMPTY).await?;
    }
    ensure!(asked > 30, "only {asked} expressions were found");
    Ok(())
}

/// Metrics that the dashboards of fluxcd/flux2-monitoring-example ask for, and the labels by which they choose or group.
/// `$` stands for the namespace of the controllers. Read from `cluster.json` and `control-plane.json` of July 2026.
const OF_FLUX: &[(&str, &str)] = &[
    (
        "gotk_resource_info",
        r#"exported_namespace=~".+",customresource_kind="Kustomization",ready="False",suspended="false",name=~".+""#,
    ),
    (
        "gotk_resource_info",
        r#"exported_namespace=~".+",customresource_kind="HelmRelease",ready="True",name=~".+",revision=~".+""#,
    ),
    (
        "gotk_resource_info",
        r#"exported_namespace=~".+",customresource_kind="GitRepository",ready="True",name=~".+",revision=~".+""#,
    ),
    (
        "gotk_reconcile_duration_seconds_sum",
        r#"namespace="$",exported_namespace=~".+",kind="Kustomization",name=~".+""#,
    ),
    (
        "gotk_reconcile_duration_seconds_count",
        r#"namespace="$",exported_namespace=~".+",kind="HelmRelease",name=~".+""#,
    ),
    (
        "gotk_reconcile_duration_seconds_count",
        r#"namespace="$",exported_namespace=~".+",kind="GitRepository",name=~".+""#,
    ),
    (
        "workqueue_longest_running_processor_seconds",
        r#"namespace="$",pod=~".*-controller-.*",name="kustomization""#,
    ),
    ("workqueue_work_duration_seconds_count", r#"namespace="$""#),
    (
        "rest_client_requests_total",
        r#"namespace="$",pod=~".*-controller-.*",code=~"2..""#,
    ),
    (
        "rest_client_requests_total",
        r#"namespace="$",pod=~".*-controller-.*",code!~"2..""#,
    ),
    (
        "process_cpu_seconds_total",
        r#"namespace="$",pod=~".*-controller-.*""#,
    ),
    (
        "controller_runtime_reconcile_total",
        r#"controller="kustomization",result!="error""#,
    ),
    (
        "controller_runtime_reconcile_total",
        r#"controller="kustomization",result="error""#,
    ),
    (
        "controller_runtime_reconcile_total",
        r#"controller="gitrepository",result="error""#,
    ),
    (
        "controller_runtime_reconcile_total",
        r#"controller="ocirepository",result="error""#,
    ),
    (
        "controller_runtime_reconcile_total",
        r#"controller="helmrepository",result="error""#,
    ),
    (
        "controller_runtime_reconcile_total",
        r#"controller="bucket",result="error""#,
    ),
    (
        "controller_runtime_reconcile_total",
        r#"controller="helmrelease",result="error""#,
    ),
    (
        "controller_runtime_reconcile_total",
        r#"controller="helmchart",result="error""#,
    ),
    (
        "controller_runtime_reconcile_time_seconds_bucket",
        r#"controller="helmrelease",le=~".+""#,
    ),
];

/// Metrics that dashboards ask for and we do not have, as docs/operations/metrics.md says.
/// `container_memory_working_set_bytes` is the kubelet's.
const NOT_OURS: [&str; 2] = ["go_info", "go_memstats_alloc_bytes"];

/// Asks Prometheus for what Flux's dashboards need.
pub(super) async fn of_flux(prometheus: &Prometheus) -> Result<()> {
    for (metric, labels) in OF_FLUX {
        let labels = labels.replace("\"$\"", &format!("\"{NAMESPACE}\""));
        prometheus.until_some(&format!("{metric}{{{labels}}}")).await?;
    }
    for metric in NOT_OURS {
        let series = prometheus.series(metric).await?;
        ensure!(series.is_empty(), "{metric} is made up: {series:?}");
    }
    Ok(())
}
