//! Releases that Flux's helm-controller made are taken over without a write, changed, and given back.
//!
//! What Flux left in a cluster is in tests/cases/takeover-helm. It was recorded by the test that works with Flux's own
//! program, which runs where WINDLASS_FLUX_HELM_CONTROLLER names it.

mod recording;
mod scene;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use testkit::Controller;
use testkit::objects::field;

use crate::helm::{HelmTest, newest, run};
use recording::NAMESPACE;
use scene::{RELEASES, Scene};

/// Names Flux's helm-controller.
const PROGRAM: &str = "WINDLASS_FLUX_HELM_CONTROLLER";
/// Has what it leaves written to tests/cases/takeover-helm.
const RECORD: &str = "WINDLASS_RECORD";

/// Our helm-controller, for the objects of a scene alone.
async fn ours(test: &HelmTest, scene: &Scene<'_>) -> Result<Controller> {
    let kubeconfig = test.world.control_plane.kubeconfig_path();
    Controller::start_helm(kubeconfig, &test.world.source, scene.own_controller()).await
}

#[test]
fn what_flux_released_is_taken_over_without_a_write() {
    run("helm-takeover", |test| async move {
        let scene = Scene::new(&test, NAMESPACE).await?;
        let recorded = recording::read()?;
        scene.sources().await?;
        scene.replay(&recorded).await?;
        let before = scene.seen().await?;
        let _ours = ours(&test, &scene).await?;
        scene.poke_all(&RELEASES).await?;
        let after = scene.seen().await?;
        before.ensure_same(&after)?;

        // What is changed is another revision, and what has failed starts afresh.
        scene.change("full", json!({"values": {"value": "ours"}})).await?;
        let object = scene.ready_at("full", 3).await?;
        ensure!(newest(&object)["status"] == "deployed");
        scene
            .change("failed", json!({"values": {"value": "mended", "broken": false}}))
            .await?;
        let object = scene.ready("failed").await?;
        ensure!(field(&object, "/status/upgradeFailures").is_none());
        before.ensure_same_workloads(&scene.seen().await?)?;
        scene.delete(&RELEASES).await?;
        for namespace in [NAMESPACE.to_owned(), scene.elsewhere()] {
            test.world.control_plane.delete_namespace(&namespace).await?;
        }
        Ok(())
    });
}

#[test]
fn flux_and_we_hand_releases_to_each_other() {
    let Some(program) = std::env::var_os(PROGRAM).map(PathBuf::from) else {
        println!("{PROGRAM} names no program of Flux's, which the repository does not build");
        return;
    };
    run("helm-handing", |test| async move {
        let recorded = std::env::var_os(RECORD).is_some();
        let namespace = if recorded { NAMESPACE } else { &test.namespace };
        let scene = Scene::new(&test, namespace).await?;
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let flux = async || Controller::start_foreign(&program, kubeconfig, scene.own_controller()).await;
        let stop = |controller: &Controller| controller.terminate(Duration::from_secs(60));

        let theirs = flux().await?;
        scene.sources().await?;
        scene.releases().await?;
        stop(&theirs)?;
        let before = scene.seen().await?;
        if recorded {
            recording::write(&before)?;
        }

        let helm = ours(&test, &scene).await?;
        scene.poke_all(&RELEASES).await?;
        before
            .ensure_same(&scene.seen().await?)
            .context("taken over by us")?;
        scene.change("full", json!({"values": {"value": "ours"}})).await?;
        scene.ready_at("full", 3).await?;
        scene
            .change("made", json!({"chart": {"spec": {"version": "1.1.0"}}}))
            .await?;
        scene.ready_at("made", 2).await?;
        scene
            .change("failed", json!({"values": {"value": "mended", "broken": false}}))
            .await?;
        scene.ready("failed").await?;
        stop(&helm)?;
        let ours = scene.seen().await?;
        before.ensure_same_workloads(&ours)?;
        let ours = ours.without_stalls();

        let theirs = flux().await?;
        scene.poke_all(&RELEASES).await?;
        ours.ensure_same(&scene.seen().await?.without_stalls())
            .context("taken back by Flux")?;
        scene
            .change("full", json!({"values": {"value": "theirs"}}))
            .await?;
        scene.ready_at("full", 4).await?;
        scene.delete(&RELEASES).await?;
        stop(&theirs).map(drop)
    });
}
