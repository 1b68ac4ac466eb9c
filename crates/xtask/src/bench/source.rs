//! `bench-source`: what source-controller costs with many sources, with none to do, and with large ones.

mod large;
mod many;
mod report;

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use testkit::{ControlPlane, GitServer, Options, Registry, install_crds};

use super::contestant::{Contestant, Running};

/// The namespace of everything that is measured.
const NAMESPACE: &str = "bench";

/// Arguments of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// OCIRepositories that are created at once.
    #[arg(long, default_value_t = 500)]
    sources: usize,
    /// OCIRepositories that are there at rest; as many as `--sources` at least.
    #[arg(long, default_value_t = 1000)]
    at_rest: usize,
    /// Seconds to look on at rest.
    #[arg(long, default_value_t = 60)]
    rest: u64,
    /// Size of the large Git repository, in MiB; a tenth of it is measured too.
    #[arg(long, default_value_t = 300)]
    git: usize,
    /// Size of the large index.yaml, in MiB; a tenth of it is measured too.
    #[arg(long, default_value_t = 60)]
    index: usize,
    /// A folder with Flux's source-controller, to be measured first.
    #[arg(long, value_name = "FOLDER")]
    peer: Option<PathBuf>,
}

/// Figures of one contestant.
struct Measured {
    name: &'static str,
    /// Peak of memory of a controller that is ready and has nothing to do, in bytes.
    idle: u64,
    many: many::Measured,
    /// The smaller repository first.
    git: Vec<large::Measured>,
    /// The smaller index first.
    index: Vec<large::Measured>,
}

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

/// Contestant, and its surroundings.
struct Bench<'a> {
    contestant: &'a Contestant,
    control_plane: &'a ControlPlane,
}

impl Bench<'_> {
    /// A controller that has seen nothing yet, so that its peak of memory is that of the part that follows.
    async fn start(&self) -> Result<Running> {
        // Flux's own bound is 50 MiB; both get the same.
        let flags = ["--helm-index-max-size=104857600"];
        let started = self.contestant.start_source(self.control_plane, &flags).await;
        started.with_context(|| format!("failed to start {}", self.contestant.name()))
    }
}
