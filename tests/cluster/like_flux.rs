//! The lives of the cases in tests/cases/cluster, object by object as Flux's controllers left them.

use anyhow::{Context as _, Result, ensure};
use cluster_conformance::{Servers, case, changes, compare, known, play, report};
use testkit::controller::ControllerOptions;
use testkit::tools::repository_root;
use testkit::{ControlPlane, Controller, Options, install_crds};

/// Recorded by `make conformance-cluster RECORD=1`.
const CASES: &str = "tests/cases/cluster";

#[tokio::test(flavor = "multi_thread")]
async fn a_life_leaves_what_flux_left_but_for_what_is_documented() -> Result<()> {
    let folder = repository_root().join(CASES);
    let cases = case::own(&folder)?;
    let flux = changes::from_lines(&std::fs::read_to_string(folder.join("flux.jsonl"))?)?;
    let servers = Servers::start(&cases).await?;
    // What cases make outside of namespaces would be in the way of other tests.
    let control_plane = ControlPlane::start(Options::default()).await?;
    install_crds(&control_plane.client()).await?;
    let kubeconfig = control_plane.kubeconfig_path();
    let options = ControllerOptions::default;
    let source = Controller::start_source(kubeconfig, options()).await?;
    let (apply, helm) = tokio::try_join!(
        Controller::start_apply(kubeconfig, &source, options()),
        Controller::start_helm(kubeconfig, &source, options())
    )?;
    let ours = play(&control_plane, &servers, &[cases], |_| {}).await;
    let logs = || {
        [&apply, &helm]
            .map(|controller| controller.log_tail(20))
            .join("\n")
    };
    let ours = ours.with_context(logs)?;
    let comparison = compare::compare(&flux, &ours);
    let compared: usize = comparison.objects.iter().map(|(_, count)| count).sum();
    ensure!(compared > 500, "only {compared} objects were compared");
    let open = comparison
        .differences
        .iter()
        .filter(|difference| known::row_of(difference).is_none());
    ensure!(open.count() == 0, "{}", report::markdown(&comparison)?);
    Ok(())
}
