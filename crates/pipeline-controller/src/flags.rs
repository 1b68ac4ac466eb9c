//! The command line of pipeline-controller.

use std::path::PathBuf;

use clap::Parser;
use controller_kit::flags::{CommonFlags, KubeconfigFlags};
use url::Url;

/// Name of the controller: field manager, Lease and reporter of events.
pub const NAME: &str = "pipeline-controller";

/// Reconciles Pipelines: promotes releases from one environment to the next, by changes in Git. Reconciles Previews: says on pull
/// requests what they would change in clusters.
#[derive(Debug, Clone, Parser)]
#[command(name = "pipeline-controller", version)]
pub struct Flags {
    /// Flags shared by all controllers.
    #[command(flatten)]
    pub common: CommonFlags,
    /// What kubeconfigs of targets may use.
    #[command(flatten)]
    pub kubeconfig: KubeconfigFlags,

    /// Maximum number of Pipelines that are reconciled concurrently.
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrent: u16,
    /// Hosts that HTTP and Prometheus gates may ask, separated by commas: names, or their ends, such as *.example.com. Without any, these
    /// gates stay closed.
    #[arg(long, value_delimiter = ',', value_name = "HOSTS")]
    pub gate_hosts: Vec<String>,
    /// Address at which webhooks of Receivers are reached, such as https://hooks.example.com. It is part of the URLs in the status of
    /// Pipelines.
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    pub webhook_url: String,
    /// Serve Pipelines of pipelines.weave.works and GitopsClusters of gitops.weave.works, whose definitions must be installed.
    #[arg(long)]
    pub weave_pipelines: bool,
    /// Address of source-controller, from which previews get charts. Defaults to its Service in the namespace of this controller.
    #[arg(long, value_name = "URL")]
    pub source_url: Option<Url>,
    /// Directory for what is being fetched from Git repositories. Defaults to the directory for temporary files.
    #[arg(long, value_name = "PATH")]
    pub fetch_path: Option<PathBuf>,
    /// Key exchange algorithms offered to ssh servers, separated by commas. Safe ones by default.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub ssh_kex_algos: Vec<String>,
    /// Host key algorithms accepted from ssh servers, separated by commas. Safe ones by default.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub ssh_hostkey_algos: Vec<String>,
}
