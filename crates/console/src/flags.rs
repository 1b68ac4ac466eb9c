//! The command line of the console.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use console_server::Mode;
use controller_kit::flags::{CommonFlags, KubeconfigFlags};
use url::Url;

/// Serves an API over what is delivered in the cluster.
#[derive(Debug, Clone, Parser)]
#[command(name = "console", version)]
pub struct Flags {
    /// Flags shared by all controllers.
    #[command(flatten)]
    pub common: CommonFlags,

    /// Address that the API is served at.
    #[arg(long, default_value = "0.0.0.0:9080", value_name = "ADDRESS")]
    pub api_addr: SocketAddr,
    /// Name under which this cluster is shown.
    #[arg(long, default_value = "local", value_name = "NAME")]
    pub cluster_name: String,
    /// Namespace whose Secrets, ConfigMaps and GitopsClusters name further clusters; without it there is this one only.
    #[arg(long, value_name = "NAMESPACE")]
    pub clusters_namespace: Option<String>,
    /// What a kubeconfig of these may use.
    #[command(flatten)]
    pub kubeconfig: KubeconfigFlags,
    /// Whether Pods are watched, to tell which images run where.
    #[arg(long, default_value = "true", value_name = "BOOL", action = clap::ArgAction::Set)]
    pub watch_pods: bool,
    /// Where deliveries are recorded: `sqlite:/data/ledger.db`, or `postgres://USER:PASSWORD@HOST/NAME`; nowhere if empty.
    #[arg(
        long,
        default_value = "",
        value_name = "URL",
        env = "LEDGER_URL",
        hide_env_values = true,
        hide_default_value = true
    )]
    pub ledger_url: String,
    /// How long they are kept.
    #[arg(long, default_value = "17520h", value_name = "DURATION", value_parser = controller_kit::duration::parse)]
    pub ledger_retention: Duration,
    /// URL that receives each delivery as a CDEvent; requires a ledger.
    #[arg(long, value_name = "URL", env = "CDEVENTS_URL", hide_env_values = true)]
    pub cdevents_url: Option<Url>,
    /// File that says who is let in without a Kubernetes token, of kind Config in web.fluxcd.controlplane.io/v1: by an OpenID
    /// provider, or as an anonymous user.
    #[arg(long, value_name = "FILE")]
    pub sign_in_config: Option<PathBuf>,
    /// File with a random key of at least 32 bytes that seals sessions, the same for all replicas; without it sessions end with the
    /// process.
    #[arg(long, value_name = "FILE", requires = "sign_in_config")]
    pub session_key_file: Option<PathBuf>,
    /// Who reconciles, suspends, resumes and restarts objects for callers: nobody, the console for whoever has the verb on the object, or
    /// the callers, whom the console impersonates, and who need the verb and patch.
    #[arg(long, default_value = "none", value_name = "MODE")]
    pub actions: Mode,
    /// URL of source-controller's artifact server, for comparisons; defaults to the Service source-controller in this namespace.
    #[arg(long, value_name = "URL")]
    pub source_url: Option<Url>,
    /// Serve the Model Context Protocol at /mcp: read-only tools for language models, with the rights of their Kubernetes token.
    #[arg(long)]
    pub mcp: bool,
    /// Address that gRPC is served at, without TLS, for programs that follow changes; not served by default.
    #[arg(long, value_name = "ADDRESS")]
    pub grpc_addr: Option<SocketAddr>,
    /// Print the OpenAPI description and exit.
    #[arg(long)]
    pub openapi: bool,
}
