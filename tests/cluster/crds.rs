//! Our CRDs and Flux's are both taken by a real API server, and objects of Flux's documentation fit ours.

use anyhow::{Context as _, Result, ensure};
use testkit::control_plane::{ControlPlane, Options};
use testkit::crds::{install_all_crds, install_crds_from};

#[tokio::test]
async fn a_real_api_server_takes_ours_and_then_fluxs_over_them() -> Result<()> {
    let control_plane = ControlPlane::start(Options::api_server_only()).await?;
    let client = control_plane.client();
    install_all_crds(&client).await?;
    let reference = testkit::tools::repository_root().join("../shared/reference/crds");
    if reference.is_dir() {
        install_crds_from(&client, &reference)
            .await
            .context("Flux's definitions over ours")?;
        install_all_crds(&client).await.context("ours over Flux's")?;
    } else {
        eprintln!(
            "{} is not there: only our own definitions were applied",
            reference.display()
        );
    }
    let served = client
        .list_api_group_resources("kustomize.toolkit.fluxcd.io/v1")
        .await?;
    ensure!(
        served
            .resources
            .iter()
            .any(|r| r.name == "kustomizations" && r.short_names == Some(vec!["ks".into()]))
    );
    Ok(())
}
