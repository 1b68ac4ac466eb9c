//! The flags of controllers that take artifacts and deliver to clusters.

use std::time::Duration;

use artifact::client::ClientOptions;
use clap::Args;
use controller_kit::duration;
use controller_kit::flags::{ArtifactClientFlags, CommonFlags, KubeconfigFlags};

/// The flags that Flux's kustomize-controller and helm-controller share.
#[derive(Debug, Clone, Args)]
pub struct DeliveryFlags {
    /// Flags shared by all controllers.
    #[command(flatten)]
    pub common: CommonFlags,
    /// How the artifact service is called.
    #[command(flatten)]
    pub artifact: ArtifactClientFlags,
    /// Flags about kubeconfigs of remote clusters.
    #[command(flatten)]
    pub kubeconfig: KubeconfigFlags,

    /// Accepted for compatibility with Flux; has no effect, because dependencies are watched instead of polled.
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = duration::parse, hide_short_help = true)]
    pub requeue_dependency: Duration,
    /// Number of retries when an artifact download fails.
    #[arg(long, default_value_t = 9, value_name = "N")]
    pub http_retry: u32,
    /// Service account, in the namespace of the object, used when spec.serviceAccountName is empty. If unset, such objects
    /// are reconciled with the controller's own permissions.
    #[arg(long, value_name = "NAME")]
    pub default_service_account: Option<String>,
    /// Service account, in the namespace of the object, used to authenticate to remote clusters whose ConfigMap names
    /// none.
    #[arg(long, value_name = "NAME")]
    pub default_kubeconfig_service_account: Option<String>,
    /// Honor the annotation windlass.dev/freeze-exception. Something must guard it, such as the chart's admission policy: otherwise
    /// owners of Kustomizations and HelmReleases exempt them from every Freeze.
    #[arg(long)]
    pub freeze_exceptions: bool,
    /// Host that replaces the one in artifact URLs, for running outside of the cluster.
    #[arg(long, env = "SOURCE_CONTROLLER_LOCALHOST", value_name = "HOST")]
    pub source_controller_localhost: Option<String>,
}

impl DeliveryFlags {
    /// Returns where artifacts come from; so many bytes of them are kept in memory.
    pub fn artifacts(&self, cache_bytes: usize) -> ClientOptions {
        ClientOptions {
            grpc_endpoint: self.artifact.endpoint(),
            http_hosts: self.artifact.artifact_http_hosts.clone(),
            cache_bytes,
            http_retries: self.http_retry,
            hostname: self
                .source_controller_localhost
                .clone()
                .filter(|host| !host.is_empty()),
            ..ClientOptions::default()
        }
    }
}

/// Refuses default accounts for clouds and clusters unless objects may be ServiceAccounts there.
///
/// # Errors
///
/// In Flux's words.
pub fn check_default_accounts<'a>(
    object_level_identity: bool,
    accounts: impl IntoIterator<Item = &'a Option<String>>,
) -> Result<(), &'static str> {
    let is_set = |account: &Option<String>| account.as_ref().is_some_and(|account| !account.is_empty());
    if !object_level_identity && accounts.into_iter().any(is_set) {
        return Err(
            "cannot set default service accounts when the feature gate ObjectLevelWorkloadIdentity is not enabled",
        );
    }
    Ok(())
}
