//! `bench-sync`: how long N sources and Kustomizations take from creation to Ready, and what it costs.

mod report;
pub mod scenario;

use std::path::PathBuf;

use anyhow::Result;
use testkit::{ControlPlane, GitServer, Options, Registry, install_crds};

use super::contestant::Contestant;

/// Arguments of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Pairs of OCIRepository and Kustomization.
    #[arg(long, default_value_t = 100)]
    pairs: usize,
    /// Replicas of each Deployment.
    #[arg(long, default_value_t = 0)]
    replicas: u32,
    /// Commits that are pushed, one after the other, for the latency from push to Ready.
    #[arg(long, default_value_t = 20)]
    pushes: usize,
    /// Seconds to look on at rest.
    #[arg(long, default_value_t = 30)]
    rest: u64,
    /// A folder with Flux's source-controller and kustomize-controller, to be measured first.
    #[arg(long, value_name = "FOLDER")]
    peer: Option<PathBuf>,
}

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(measure(arguments))
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let mut results = Vec::new();
    for contestant in Contestant::all(arguments.peer.as_deref()) {
        // A control plane of its own for each: the same empty etcd, and no leftovers.
        let control_plane = ControlPlane::start(Options::default()).await?;
        install_crds(&control_plane.client()).await?;
        let (registry, git) = (Registry::start().await?, GitServer::start().await?);
        let place = scenario::Place {
            control_plane: &control_plane,
            registry: &registry,
            git: &git,
        };
        results.push(scenario::run(&place, &contestant, arguments).await?);
    }
    report::print(arguments, &results);
    Ok(())
}
