//! Arguments and surroundings of the benchmark.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use testkit::ControlPlane;

use crate::bench::contestant::{Contestant, Running};

/// The namespace of everything that is measured.
pub(super) const NAMESPACE: &str = "bench";

/// Arguments of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// OCIRepositories that are created at once.
    #[arg(long, default_value_t = 500)]
    pub(super) sources: usize,
    /// OCIRepositories that are there at rest; as many as `--sources` at least.
    #[arg(long, default_value_t = 1000)]
    pub(super) at_rest: usize,
    /// Seconds to look on at rest.
    #[arg(long, default_value_t = 60)]
    pub(super) rest: u64,
    /// Size of the large Git repository, in MiB; a tenth of it is measured too.
    #[arg(long, default_value_t = 300)]
    pub(super) git: usize,
    /// Size of the large index.yaml, in MiB; a tenth of it is measured too.
    #[arg(long, default_value_t = 60)]
    pub(super) index: usize,
    /// A folder with Flux's source-controller, to be measured first.
    #[arg(long, value_name = "FOLDER")]
    pub(super) peer: Option<PathBuf>,
}

/// Contestant, and its surroundings.
pub(super) struct Bench<'a> {
    pub(super) contestant: &'a Contestant,
    pub(super) control_plane: &'a ControlPlane,
}

impl Bench<'_> {
    /// A controller that has seen nothing yet, so that its peak of memory is that of the part that follows.
    pub(super) async fn start(&self) -> Result<Running> {
        // Flux's own bound is 50 MiB; both get the same.
        let flags = ["--helm-index-max-size=104857600"];
        let started = self.contestant.start_source(self.control_plane, &flags).await;
        started.with_context(|| format!("failed to start {}", self.contestant.name()))
    }
}
