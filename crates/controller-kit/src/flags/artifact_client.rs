//! How a controller calls the artifact service.

use std::path::PathBuf;

use clap::Args;

/// Where the artifact service is, whom to trust there, and what to show.
#[derive(Args, Debug, Clone, PartialEq, Eq)]
#[command(args_override_self = true)]
pub struct ArtifactClientFlags {
    /// Address of the artifact service, such as https://source-controller:9091. Without it, archives are downloaded over HTTP
    /// from where the status of a source says; with it, only those of ExternalArtifacts that the service does not know
    #[arg(long, env = "ARTIFACT_SERVICE", default_value = "", value_name = "URL")]
    pub artifact_service: String,
    /// Hosts (host:port) beside the artifact service from which artifacts of all sources may be downloaded over HTTP, such as the
    /// source-controllers of other shards
    #[arg(long, value_delimiter = ',', value_name = "HOST")]
    pub artifact_http_hosts: Vec<String>,
    /// ConfigMap in this controller's namespace with the authority (ca.crt) of the artifact service
    #[arg(long, default_value = "windlass-artifact-ca", value_name = "NAME")]
    pub artifact_ca_configmap: String,
    /// File (PEM) with the authority of the artifact service, instead of the ConfigMap; read at each connection
    #[arg(long, env = "ARTIFACT_CA_FILE", value_name = "PATH")]
    pub artifact_ca_file: Option<PathBuf>,
    /// File with the token for the artifact service, such as a projected volume's; read at each call
    #[arg(long, env = "ARTIFACT_TOKEN_FILE", value_name = "PATH")]
    pub artifact_token_file: Option<PathBuf>,
    /// Service account in this controller's namespace to get tokens for the artifact service of, where there is no file
    #[arg(long, value_name = "NAME", conflicts_with = "artifact_token_file")]
    pub artifact_service_account: Option<String>,
    /// Audience of these tokens
    #[arg(long, default_value = "windlass-artifact", value_name = "NAME")]
    pub artifact_token_audience: String,
}

impl ArtifactClientFlags {
    /// The service's address, if there is one.
    pub fn endpoint(&self) -> Option<String> {
        Some(self.artifact_service.clone()).filter(|endpoint| !endpoint.is_empty())
    }

    /// Whether calls are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.artifact_service.starts_with("https://")
    }
}
