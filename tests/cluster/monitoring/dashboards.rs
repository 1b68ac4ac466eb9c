//! Tests of the dashboards: every expression of ours, and the metrics and labels of Flux's.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testkit::tools::repository_root;

use super::prometheus::{NAMESPACE, Prometheus};

const FOLDER: &str = "charts/windlass/files/monitoring/dashboards";

/// Values of Grafana's variables, longer names first.
const VARIABLES: [(&str, &str); 5] = [
    ("$__rate_interval", "1m"),
    ("$__range", "1h"),
    ("$controller", ".*"),
    ("$namespace", ".*"),
    ("$kind", ".*"),
];

/// Panels that show nothing as long as nothing of the kind has happened.
const MAY_BE_EMPTY: [(&str, &str); 3] = [
    (
        "Tokens of clouds that were kept",
        "no cloud is asked for a token here",
    ),
    (
        "From the commit to ready",
        "needs two deliveries within the range; the test of rules has them",
    ),
    (
        "Charts that the stored index had",
        "the one question was before the first scrape",
    ),
];

/// Panels of a dashboard that ask something: title and expressions.
fn panels(dashboard: &Value) -> Vec<(&str, Vec<&str>)> {
    let panels = dashboard["panels"].as_array().into_iter().flatten();
    panels
        .map(|panel| {
            let targets = panel["targets"].as_array().into_iter().flatten();
            let expressions = targets.filter_map(|target| target["expr"].as_str());
            (panel["title"].as_str().unwrap_or_default(), expressions.collect())
        })
        .collect()
}

/// Asks Prometheus everything that our dashboards ask.
pub(super) async fn ours(prometheus: &Prometheus) -> Result<()> {
    let mut asked = 0;
    for entry in fs::read_dir(repository_root().join(FOLDER))? {
        let path = entry?.path();
        let dashboard: Value = serde_json::from_slice(&fs::read(&path)?)?;
        for (title, expressions) in panels(&dashboard) {
            ensure!(
                !expressions.is_empty(),
                "{}: {title} asks nothing",
                path.display()
            );
            for expression in expressions {
                let mut query = expression.to_owned();
                for (variable, value) in VARIABLES {
                    query = query.replace(variable, value);
                }
                ensure!(
                    !query.contains('$'),
                    "{query} has a variable that this test does not know"
                );
                let told = || format!("{}, panel {title}", path.display());
                if MAY_BE_EMPTY.iter().any(|(empty, _)| *empty == title) {
                    prometheus.series(&query).await.with_context(told)?;
                } else {
                    prometheus.until_some(&query).await.with_context(told)?;
                }
                asked += 1;
            }
        }
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
