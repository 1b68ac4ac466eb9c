//! `bench-sync`: how long N sources and Kustomizations take from creation to Ready, and what it costs.

mod arguments;
mod report;
pub mod scenario;

pub use arguments::Arguments;

use anyhow::Result;
use testkit::{ControlPlane, GitServer, Options, Registry, install_crds};

use super::contestant::Contestant;

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
