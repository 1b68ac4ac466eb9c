//! The flags of `windlass build`: those of `kustomize build`, and what they mean here.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use kustomize_build::{ChartSettings, DefaultOrder, LoadRestrictions, Options};

use super::bool::parse_bool;
use super::unsupported::Unsupported;
use super::{Failure, remote};

/// Command line of `build`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Directory with a kustomization.yaml
    #[arg(value_name = "PATH", default_value = ".")]
    path: String,

    /// 'LoadRestrictionsNone' allows kustomizations to load files from outside of their directory
    #[arg(long, value_name = "RULE", default_value = ROOT_ONLY)]
    load_restrictor: String,

    /// Write to this file, or one file per object to this directory, instead of standard output
    #[arg(long, short, value_name = "PATH")]
    output: Option<String>,

    /// Also show the file and line of an error, and the kustomizations that led to it
    #[arg(long, visible_alias = "stack-trace", value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", default_value = "false",
          hide_default_value = true, value_parser = parse_bool)]
    pub(crate) explain: bool,

    /// Deprecated: 'legacy' or 'none'; use 'sortOptions' in kustomization.yaml
    #[arg(long, value_name = "ORDER")]
    reorder: Option<String>,

    /// Deprecated: add the managed-by label; use 'buildMetadata: [managedByLabel]' in kustomization.yaml
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_parser = parse_bool)]
    enable_managedby_label: Option<bool>,

    /// Render Helm charts ('helmCharts'); no helm program is needed
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", hide_default_value = true,
          value_parser = parse_bool)]
    enable_helm: bool,

    /// API versions in .Capabilities.APIVersions of Helm charts
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',')]
    helm_api_versions: Vec<String>,

    /// Kubernetes version in .Capabilities.KubeVersion of Helm charts
    #[arg(long, value_name = "VERSION", default_value = "", hide_default_value = true)]
    helm_kube_version: String,

    /// Fetch remote bases, files and Helm charts
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", hide_default_value = true,
          value_parser = parse_bool)]
    allow_remote: bool,

    /// Private key for remote bases over SSH; defaults to OpenSSH's in ~/.ssh
    #[arg(long, value_name = "FILE")]
    ssh_key: Option<PathBuf>,

    /// Accepted and ignored: charts are rendered without a helm program
    #[arg(long, value_name = "PROGRAM", hide = true)]
    helm_command: Option<String>,

    /// Accepted and ignored: errors always show what Helm says
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_parser = parse_bool, hide = true)]
    helm_debug: Option<bool>,

    #[command(flatten)]
    unsupported: Unsupported,
}

impl Flags {
    /// Returns what kustomize says about flags that should not be used any more.
    pub(super) fn deprecations(&self) -> impl Iterator<Item = &'static str> {
        let reorder = self.reorder.is_some().then_some(REORDER_IS_DEPRECATED);
        let label = self.enable_managedby_label.map(|_| LABEL_IS_DEPRECATED);
        reorder.into_iter().chain(label)
    }
}

const ROOT_ONLY: &str = "LoadRestrictionsRootOnly";
const NONE: &str = "LoadRestrictionsNone";

/// Parsed settings.
pub(super) struct Settings {
    pub(super) path: String,
    pub(super) output: Option<PathBuf>,
    pub(super) options: Options,
    pub(super) remote: build_remote::Settings,
    pub(super) allow_remote: bool,
}

impl Settings {
    pub(super) fn from_flags(flags: &Flags) -> Result<Self, Failure> {
        flags.unsupported.refuse()?;
        let options = Options {
            load_restrictions: load_restrictions(&flags.load_restrictor)?,
            default_order: default_order(flags.reorder.as_deref())?,
            charts: ChartSettings {
                api_versions: flags.helm_api_versions.clone(),
                kube_version: flags.helm_kube_version.clone(),
            },
            managed_by_label: flags.enable_managedby_label == Some(true) || label_is_on_in_environment(),
            ..Options::default()
        };
        Ok(Self {
            path: flags.path.clone(),
            output: flags
                .output
                .as_ref()
                .filter(|path| !path.is_empty())
                .map(PathBuf::from),
            options,
            remote: remote::settings(flags.enable_helm, flags.ssh_key.clone()),
            allow_remote: flags.allow_remote,
        })
    }
}

const REORDER_IS_DEPRECATED: &str =
    "Flag --reorder has been deprecated, use the new 'sortOptions' field in kustomization.yaml instead.";
const LABEL_IS_DEPRECATED: &str = "Flag --enable-managedby-label has been deprecated, The flag \
     `enable-managedby-label` has been deprecated. Use the `managedByLabel` option in the `buildMetadata` field instead.";

fn load_restrictions(value: &str) -> Result<LoadRestrictions, Failure> {
    match value {
        "" | ROOT_ONLY => Ok(LoadRestrictions::RootOnly),
        NONE => Ok(LoadRestrictions::None),
        _ => Err(Failure::IllegalValue {
            flag: "load-restrictor",
            value: value.to_owned(),
            legal: "LoadRestrictionsRootOnly LoadRestrictionsNone",
        }),
    }
}

fn default_order(value: Option<&str>) -> Result<DefaultOrder, Failure> {
    match value {
        None | Some("legacy") => Ok(DefaultOrder::Legacy),
        Some("none") => Ok(DefaultOrder::Fifo),
        Some(value) => Err(Failure::IllegalValue {
            flag: "reorder",
            value: value.to_owned(),
            legal: "legacy none",
        }),
    }
}

/// kustomize's other way to ask for the label.
fn label_is_on_in_environment() -> bool {
    std::env::var("KUSTOMIZE_ENABLE_MANAGEDBY_LABEL").is_ok_and(|value| value == "on")
}
