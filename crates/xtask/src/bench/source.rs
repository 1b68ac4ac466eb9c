//! `bench-source`: what source-controller costs with many sources, with none to do, and with large ones.

mod bench;
mod large;
mod many;
mod measured;
mod report;

use bench::{Bench, NAMESPACE};
use measured::Measured;

pub use bench::Arguments;

use anyhow::Result;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use testkit::{ControlPlane, GitServer, Options, Registry, install_crds};

use super::contestant::Contestant;

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(measure(arguments))
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let (registry, git) = (Registry::start().await?, GitServer::start().await?);
    many::push(&registry, arguments.at_rest.max(arguments.sources)).await?;
    let mut results = Vec::new();
    for contestant in Contestant::all(arguments.peer.as_deref()) {
        // A control plane of its own for each: the same empty etcd, and no leftovers.
        let control_plane = ControlPlane::start(Options::api_server_only()).await?;
        install_crds(&control_plane.client()).await?;
        let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
        Api::<Namespace>::all(control_plane.client())
            .create(&PostParams::default(), &namespace)
            .await?;
        let bench = Bench {
            contestant: &contestant,
            control_plane: &control_plane,
        };
        let idle = bench.start().await?.usage()?[0].peak_resident_bytes;
        let sizes = |largest: usize| [(largest / 10).max(1), largest];
        let (mut repositories, mut indexes) = (Vec::new(), Vec::new());
        for mebibytes in sizes(arguments.git) {
            repositories.push(large::git(&bench, &git, mebibytes).await?);
        }
        for mebibytes in sizes(arguments.index) {
            indexes.push(large::index(&bench, mebibytes).await?);
        }
        results.push(Measured {
            name: contestant.name(),
            idle,
            many: many::run(&bench, &registry, arguments).await?,
            git: repositories,
            index: indexes,
        });
    }
    report::print(arguments, &results);
    Ok(())
}
