//! The command line of resource-set-controller.

use std::time::Duration;

use clap::Parser;
use controller_kit::duration;
use controller_kit::flags::{CommonFlags, KubeconfigFlags};
use oci_verify::SigstoreFlags;

/// Name of the controller: field manager, Lease and reporter of events. Fields that flux-operator applied are ours by it.
pub const NAME: &str = "flux-operator";

/// Reconciles ResourceSets: applies what templates make of inputs. Reconciles ResourceSetInputProviders: reads inputs from Git services,
/// registries and web services.
#[derive(Debug, Clone, Parser)]
#[command(name = "resource-set-controller", version)]
pub struct Flags {
    /// Flags shared by all controllers.
    #[command(flatten)]
    pub common: CommonFlags,
    /// What keyless signatures are verified with.
    #[command(flatten)]
    pub sigstore: SigstoreFlags,
    /// Flags about kubeconfigs of remote clusters.
    #[command(flatten)]
    pub kubeconfig: KubeconfigFlags,

    /// Maximum number of ResourceSets that are applied concurrently. Those that wait for the health of objects do not count.
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrent: u16,
    /// Service account, in the namespace of the object, used when spec.serviceAccountName is empty. If unset, such objects
    /// are reconciled with the controller's own permissions.
    #[arg(long, value_name = "NAME")]
    pub default_service_account: Option<String>,
    /// Honor the annotation windlass.dev/freeze-exception. Something must guard it, such as the chart's admission policy: otherwise
    /// owners of ResourceSets exempt them from every Freeze.
    #[arg(long)]
    pub freeze_exceptions: bool,
    /// How long a stopping controller waits for reconciles that are running.
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = duration::parse)]
    pub graceful_shutdown_timeout: Duration,
}
