//! How a controller calls the artifact service.

use std::path::PathBuf;

use clap::Args;

/// Where the artifact service is, whom to trust there, and what to show.
#[derive(Args, Debug, Clone, PartialEq, Eq)]
#[command(args_override_self = true)]
pub struct ArtifactClientFlags {
    /// Address of the artifact service, e.g. https://source-controller:9091. If empty, artifacts are downloaded over
    /// HTTP from the URL in the source's status; otherwise only ExternalArtifacts that the service does not know are
    #[arg(long, env = "ARTIFACT_SERVICE", default_value = "", value_name = "URL")]
    pub artifact_service: String,
    /// Additional hosts (host:port) from which artifacts of all sources may be downloaded over HTTP, such as the
    /// source-controllers of other shards
    #[arg(long, value_delimiter = ',', value_name = "HOST")]
    pub artifact_http_hosts: Vec<String>,
    /// ConfigMap in this controller's namespace with the certificate authority (ca.crt) of the artifact service
    #[arg(long, default_value = "windlass-artifact-ca", value_name = "NAME")]
    pub artifact_ca_configmap: String,
    /// File (PEM) with the certificate authority of the artifact service, instead of the ConfigMap; read at each
    /// connection
    #[arg(long, env = "ARTIFACT_CA_FILE", value_name = "PATH")]
    pub artifact_ca_file: Option<PathBuf>,
    /// File with the token for the artifact service, e.g. in a projected volume; read at each call
    #[arg(long, env = "ARTIFACT_TOKEN_FILE", value_name = "PATH")]
    pub artifact_token_file: Option<PathBuf>,
    /// Service account in this controller's namespace whose tokens authenticate to the artifact service when there is
    /// no token file
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

    /// Returns whether calls are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.artifact_service.starts_with("https://")
    }
}
