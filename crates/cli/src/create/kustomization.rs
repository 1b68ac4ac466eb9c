//! `windlass create kustomization`.

use std::time::Duration;

use clap::{ArgAction, Args};
use serde_json::{Value, json};

use super::{Common, Interval, Made, dependencies, duration, kind_named, named, reference};
use crate::cluster::{Failure, parse_timeout};

/// Kinds of sources that a Kustomization takes.
const SOURCES: [&str; 4] = ["GitRepository", "OCIRepository", "Bucket", "ExternalArtifact"];

/// Command line.
#[derive(Debug, Args)]
pub(super) struct Flags {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    interval: Interval,

    /// Source, as KIND/NAME or KIND/NAME.NAMESPACE, or the name of a GitRepository
    #[arg(long, value_name = "SOURCE")]
    source: String,

    /// Folder of the source
    #[arg(long, value_name = "PATH", default_value = "./")]
    path: String,

    /// Delete objects that leave the source
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", hide_default_value = true, hide_possible_values = true)]
    prune: bool,

    /// Wait for all objects to be healthy
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", hide_default_value = true, hide_possible_values = true)]
    wait: bool,

    /// Object whose health counts, as KIND/NAME.NAMESPACE; repeatable
    #[arg(long, value_name = "OBJECT", value_delimiter = ',')]
    health_check: Vec<String>,

    /// How long health may take
    #[arg(long, value_name = "DURATION", value_parser = parse_timeout)]
    health_check_timeout: Option<Duration>,

    /// Kustomizations that must be ready before, as NAME or NAMESPACE/NAME
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    depends_on: Vec<String>,

    /// Service account to apply as
    #[arg(long, value_name = "NAME")]
    service_account: Option<String>,

    /// Decryption provider
    #[arg(long, value_name = "NAME", value_parser = ["sops"])]
    decryption_provider: Option<String>,

    /// Secret with the decryption keys
    #[arg(long, value_name = "NAME")]
    decryption_secret: Option<String>,

    /// Namespace for all objects
    #[arg(long, value_name = "NAME")]
    target_namespace: Option<String>,

    /// Secret with a kubeconfig (key value) of another cluster
    #[arg(long, value_name = "NAME")]
    kubeconfig_secret_ref: Option<String>,

    /// How soon a failure is tried again
    #[arg(long, value_name = "DURATION", value_parser = parse_timeout)]
    retry_interval: Option<Duration>,
}

impl Flags {
    pub(super) fn objects(&self) -> Result<Made<'_>, Failure> {
        let (kind, name, namespace) = match self.source.contains('/') {
            true => reference("--source", &self.source)?,
            false => ("GitRepository".to_owned(), self.source.clone(), None),
        };
        let kind = kind_named("--source", &kind, &SOURCES)?;
        let path = match self.path.as_str() {
            path if path.starts_with("./") => path.to_owned(),
            path => format!("./{}", path.trim_start_matches('/')),
        };
        let mut checks = Vec::new();
        for text in &self.health_check {
            let (kind, name, namespace) = reference("--health-check", text)?;
            let version = match kind.as_str() {
                // As in Flux: of these, kind and name are enough.
                "Deployment" | "DaemonSet" | "StatefulSet" => "",
                "HelmRelease" => "helm.toolkit.fluxcd.io/v2",
                other => {
                    return Err(Failure::Usage(format!(
                        "--health-check: {other} is none of Deployment, DaemonSet, StatefulSet, HelmRelease"
                    )));
                }
            };
            let namespace =
                namespace.ok_or_else(|| Failure::Usage(format!("--health-check: write {text}.NAMESPACE")))?;
            checks.push(json!({"apiVersion": version, "kind": kind, "name": name, "namespace": namespace}));
        }
        let has_checks = self.wait || !checks.is_empty();
        let timeout = self.health_check_timeout.or(has_checks.then_some(HEALTH_TIMEOUT));
        let decryption = match &self.decryption_provider {
            Some(provider) => {
                json!({"provider": provider, "secretRef": named(self.decryption_secret.as_ref())})
            }
            None => Value::Null,
        };
        let mut object = self.common.object(
            "kustomize.toolkit.fluxcd.io/v1",
            "Kustomization",
            json!({
                "interval": self.interval.text(),
                "path": path,
                "sourceRef": {"kind": kind, "name": name, "namespace": namespace},
                "wait": self.wait,
                "healthChecks": checks,
                "timeout": timeout.map(duration),
                "dependsOn": dependencies(&self.depends_on),
                "serviceAccountName": self.service_account,
                "decryption": decryption,
                "targetNamespace": self.target_namespace,
                "kubeConfig": {"secretRef": named(self.kubeconfig_secret_ref.as_ref())},
                "retryInterval": self.retry_interval.map(duration),
            }),
        );
        object["spec"]["prune"] = self.prune.into();
        Ok((&self.common, vec![object]))
    }
}

/// As in Flux.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(120);
