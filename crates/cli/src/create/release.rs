//! `windlass create helmrelease`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use helm_chart::Helm;
use helm_chart::set_values::{merge, read_local};
use serde_json::{Value, json};

use super::{Common, Interval, Made, dependencies, duration, kind_named, named, reference};
use crate::cluster::{Failure, parse_timeout};

const SOURCES: [&str; 3] = ["HelmRepository", "GitRepository", "Bucket"];
const CHARTS: [&str; 3] = ["OCIRepository", "HelmChart", "ExternalArtifact"];

/// Command line.
#[derive(Debug, Args)]
pub(super) struct Flags {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    interval: Interval,

    /// Source of the chart, as KIND/NAME or KIND/NAME.NAMESPACE
    #[arg(long, value_name = "SOURCE", requires = "chart")]
    source: Option<String>,

    /// Name of the chart, or its path in a repository
    #[arg(long, value_name = "NAME")]
    chart: Option<String>,

    /// Version of the chart, or a range of versions
    #[arg(long, value_name = "VERSION")]
    chart_version: Option<String>,

    /// Chart, as KIND/NAME or KIND/NAME.NAMESPACE, instead of --source and --chart
    #[arg(long, value_name = "CHART", conflicts_with = "source")]
    chart_ref: Option<String>,

    /// How often the chart is looked for; defaults to --interval
    #[arg(long, value_name = "DURATION", value_parser = parse_timeout)]
    chart_interval: Option<Duration>,

    /// When a chart of a Git repository is made anew
    #[arg(long, value_name = "NAME", default_value = "ChartVersion", value_parser = ["ChartVersion", "Revision"])]
    reconcile_strategy: String,

    /// Name of the release; defaults to a composition of namespace and name
    #[arg(long, value_name = "NAME")]
    release_name: Option<String>,

    /// Namespace of the release
    #[arg(long, value_name = "NAME")]
    target_namespace: Option<String>,

    /// Namespace of Helm's records
    #[arg(long, value_name = "NAME")]
    storage_namespace: Option<String>,

    /// Create the target namespace
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", hide_default_value = true, hide_possible_values = true)]
    create_target_namespace: bool,

    /// HelmReleases that must be ready before, as NAME or NAMESPACE/NAME
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    depends_on: Vec<String>,

    /// Values file; repeatable
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    values: Vec<PathBuf>,

    /// Values from Secret/NAME or ConfigMap/NAME; repeatable
    #[arg(long, value_name = "OBJECT", value_delimiter = ',')]
    values_from: Vec<String>,

    /// Service account to act as
    #[arg(long, value_name = "NAME")]
    service_account: Option<String>,

    /// Upgrade policy of definitions
    #[arg(long, value_name = "POLICY", value_parser = ["Create", "CreateReplace", "Skip"])]
    crds: Option<String>,

    /// Secret with a kubeconfig (key value) of another cluster
    #[arg(long, value_name = "NAME")]
    kubeconfig_secret_ref: Option<String>,
}

impl Flags {
    pub(super) fn objects(&self) -> Result<Made<'_>, Failure> {
        let mut spec = json!({
            "interval": self.interval.text(),
            "releaseName": self.release_name,
            "targetNamespace": self.target_namespace,
            "storageNamespace": self.storage_namespace.as_ref().or(self.target_namespace.as_ref()),
            "dependsOn": dependencies(&self.depends_on),
            "serviceAccountName": self.service_account,
            "kubeConfig": {"secretRef": named(self.kubeconfig_secret_ref.as_ref())},
            "install": {"createNamespace": self.create_target_namespace},
        });
        if let Some(crds) = &self.crds {
            spec["install"]["crds"] = "Create".into();
            spec["upgrade"] = json!({"crds": crds});
        }
        match (&self.source, &self.chart_ref) {
            (Some(source), _) => {
                let (kind, name, namespace) = reference("--source", source)?;
                let kind = kind_named("--source", &kind, &SOURCES)?;
                spec["chart"] = json!({"spec": {
                    "chart": self.chart, "version": self.chart_version,
                    "sourceRef": {"kind": kind, "name": name, "namespace": namespace},
                    "interval": self.chart_interval.map(duration),
                    "reconcileStrategy": self.reconcile_strategy,
                }});
            }
            (None, Some(chart)) => {
                let (kind, name, namespace) = reference("--chart-ref", chart)?;
                let kind = kind_named("--chart-ref", &kind, &CHARTS)?;
                spec["chartRef"] = json!({"kind": kind, "name": name, "namespace": namespace});
            }
            (None, None) => {
                return Err(Failure::Usage(
                    "name the chart with --source and --chart, or with --chart-ref".to_owned(),
                ));
            }
        }
        let mut from = Vec::new();
        for text in &self.values_from {
            let (kind, name, _) = reference("--values-from", text)?;
            let kind = kind_named("--values-from", &kind, &["Secret", "ConfigMap"])?;
            from.push(json!({"kind": kind, "name": name}));
        }
        spec["valuesFrom"] = from.into();
        let mut object = self
            .common
            .object("helm.toolkit.fluxcd.io/v2", "HelmRelease", spec);
        if !self.values.is_empty() {
            let flags = merge::Flags {
                files: self
                    .values
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect(),
                ..merge::Flags::default()
            };
            let values = merge::merge(&flags, &mut read_local, Helm::V4);
            let values = values.map_err(|error| Failure::Usage(error.to_string()))?;
            object["spec"]["values"] = Value::Object(values);
        }
        Ok((&self.common, vec![object]))
    }
}
