//! The command line of the console.

use std::net::SocketAddr;

use clap::Parser;
use controller_kit::flags::CommonFlags;

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
    /// Print the OpenAPI description and exit.
    #[arg(long)]
    pub openapi: bool,
}
