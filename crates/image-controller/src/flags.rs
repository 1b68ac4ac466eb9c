//! The command line of image-controller: the flags of Flux's image-reflector-controller and image-automation-controller.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use controller_kit::duration;
use controller_kit::flags::CommonFlags;
use oci_verify::SigstoreFlags;

/// Flux's name of the controller of repositories and policies: of the field manager, the Lease and the reporter of events.
pub const REFLECTOR: &str = "image-reflector-controller";
/// Flux's name of the controller of automations.
pub const AUTOMATION: &str = "image-automation-controller";

/// Reconciles ImageRepositories, ImagePolicies and ImageUpdateAutomations. Accepts the flags of Flux's image controllers.
#[derive(Debug, Clone, Parser)]
#[command(name = "image-controller", version)]
pub struct Flags {
    /// Flags shared by all controllers.
    #[command(flatten)]
    pub common: CommonFlags,

    /// Maximum number of objects of each kind that are reconciled concurrently.
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrent: u16,
    /// How many times per second one registry is asked for images, by all objects that reach it in the same way; as many at
    /// once after a second without any. 0 sets no limit.
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub registry_qps: u16,
    /// Directory in which the tags of images survive a restart. Without it all images are scanned again after a restart.
    #[arg(long, value_name = "PATH")]
    pub storage_path: Option<PathBuf>,
    /// Directory for what is being fetched from Git repositories. Defaults to the directory for temporary files.
    #[arg(long, value_name = "PATH")]
    pub fetch_path: Option<PathBuf>,
    /// Interval at which policies whose image was not scanned yet are looked at again.
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = duration::parse)]
    pub requeue_dependency: Duration,
    /// ServiceAccount for the identity at cloud providers of objects that name none.
    #[arg(long, default_value = "", value_name = "NAME")]
    pub default_service_account: String,
    /// Key exchange algorithms offered to ssh servers, separated by commas. Safe ones by default.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub ssh_kex_algos: Vec<String>,
    /// Host key algorithms accepted from ssh servers, separated by commas. Safe ones by default.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub ssh_hostkey_algos: Vec<String>,
    /// Origin of the Sigstore trusted root, for policies that demand signatures.
    #[command(flatten)]
    pub sigstore: SigstoreFlags,
    /// Accepted for compatibility with Flux; has no effect: tags are not kept in Badger.
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    pub storage_value_log_file_size: Option<u64>,
    /// Accepted for compatibility with Flux; has no effect.
    #[arg(long, value_name = "KIB", hide_short_help = true)]
    pub storage_compression_threshold: Option<u64>,
    /// Accepted for compatibility with Flux; has no effect: there is no garbage to collect.
    #[arg(long, value_name = "MINUTES", hide_short_help = true)]
    pub gc_interval: Option<u16>,
}
