//! kill -9 at random moments of a promotion: none is lost, doubled or out of order.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::json;
use testkit::Controller;
use testkit::controller::ControllerOptions;
use testkit::git::Change;
use testkit::objects;

use crate::world::{KILLED, app, play, release_of};

/// Kills, unless `ROUNDS` says another number (`make chaos-pipelines`).
const ROUNDS: u64 = 8;

#[test]
fn a_killed_controller_neither_loses_nor_doubles_a_promotion() {
    play("kill", async |scene| {
        let [dev, eu, us] = scene.targets(["dev", "eu", "us"]).await?;
        let team = &scene.namespace;
        let repository = scene
            .fleet(&[
                ("dev", app(&dev, team, "v1")),
                ("eu", app(&eu, team, "v1")),
                ("us", app(&us, team, "v1")),
            ])
            .await?;
        let options = ControllerOptions {
            flags: vec![format!("--watch-label-selector={KILLED}=true")],
            ..ControllerOptions::default()
        };
        let kubeconfig = scene.world.control_plane.kubeconfig_path();
        let mut controller = Controller::start_pipeline(kubeconfig, options).await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [{"namespace": eu}, {"namespace": us}]},
        ]);
        let labels = json!({"labels": {KILLED: "true"}});
        scene.pipeline_with("Kustomization", environments, labels).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        let random = RandomState::new();
        let given = std::env::var("ROUNDS").ok();
        let rounds = given.and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
        for round in 2..rounds + 2 {
            let next = Change::write("dev/shop.yaml", app(&dev, team, &format!("v{round}")));
            repository.commit("main", "by a person", &[next])?;
            objects::poke(
                &objects::api(
                    &scene.client,
                    "source.toolkit.fluxcd.io/v1",
                    "GitRepository",
                    team,
                ),
                "fleet",
            )
            .await?;
            // Between the look, the first status, the pushes and the last status.
            tokio::time::sleep(Duration::from_millis(random.hash_one(round) % 1500)).await;
            controller.kill();
            controller.restart().await?;
            scene
                .wait(|pipeline| release_of(pipeline, 1) == Some(round))
                .await
                .with_context(|| format!("round {round}"))?;
            for folder in ["eu", "us"] {
                let log = repository.git(&["log", "--reverse", "--format=%s", "main", "--", folder])?;
                let promoted = log.lines().filter(|line| line.starts_with("Promote"));
                let expected = (2..=round)
                    .map(|number| format!("Promote release {number} of {team}/shop to production"));
                ensure!(promoted.eq(expected), "{folder}, round {round}:\n{log}");
            }
        }
        Ok(())
    });
}
