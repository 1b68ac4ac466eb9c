//! Arguments of the benchmark.

use std::path::PathBuf;

/// Arguments of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Pairs of OCIRepository and Kustomization.
    #[arg(long, default_value_t = 100)]
    pub(super) pairs: usize,
    /// Replicas of each Deployment.
    #[arg(long, default_value_t = 0)]
    pub(super) replicas: u32,
    /// Commits that are pushed, one after the other, for the latency from push to Ready.
    #[arg(long, default_value_t = 20)]
    pub(super) pushes: usize,
    /// Seconds to look on at rest.
    #[arg(long, default_value_t = 30)]
    pub(super) rest: u64,
    /// A folder with Flux's source-controller and kustomize-controller, to be measured first.
    #[arg(long, value_name = "FOLDER")]
    pub(super) peer: Option<PathBuf>,
}
