//! What the `flux` command says of our controllers, line by line as it said it of Flux's.

use anyhow::{Context as _, Result, ensure};
use cluster_conformance::words::{self, Said, Stage};
use testkit::controller::ControllerOptions;
use testkit::tools::{Package, repository_root};
use testkit::{ControlPlane, Controller, Options, install_crds};

/// Recorded by `make conformance-cluster WORDS=1 RECORD=1`.
const SAID: &str = "tests/cases/cluster/flux-words.json";

#[tokio::test(flavor = "multi_thread")]
async fn flux_says_of_us_what_it_says_of_its_own_controllers() -> Result<()> {
    tokio::task::spawn_blocking(|| Package::Flux.ensure(&mut |line| eprintln!("{line}"))).await??;
    let recorded = std::fs::read_to_string(repository_root().join(SAID))?;
    let recorded: Vec<Said> = serde_json::from_str(&recorded)?;
    let stage = Stage::set().await?;
    let control_plane = ControlPlane::start(Options::default()).await?;
    install_crds(&control_plane.client()).await?;
    let kubeconfig = control_plane.kubeconfig_path();
    let options = ControllerOptions::default;
    let source = Controller::start_source(kubeconfig, options()).await?;
    let (apply, helm) = tokio::try_join!(
        Controller::start_apply(kubeconfig, &source, options()),
        Controller::start_helm(kubeconfig, &source, options())
    )?;
    let said = words::speak(&control_plane, &stage, Package::Flux.path()?, |_| {}).await;
    let logs = || {
        [&apply, &helm]
            .map(|controller| controller.log_tail(20))
            .join("\n")
    };
    let said = said.with_context(logs)?;
    ensure!(
        said.len() == recorded.len() && said.len() > 80,
        "{} commands",
        said.len()
    );
    ensure!(
        words::compare(&recorded, &said).is_empty(),
        "{}",
        words::markdown(&recorded, &said)
    );
    Ok(())
}
