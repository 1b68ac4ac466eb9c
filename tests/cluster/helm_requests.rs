//! Tests of helm-controller's requests to the API server: few for a release, none for one at rest.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use testkit::Controller;
use testkit::objects::{condition, is_ready};

use crate::helm::{DEPLOYMENT, chart, newest, run};

/// Requests of the controller so far, without those that publish events.
async fn requests(controller: &Controller) -> Result<u64> {
    let metrics = controller.metrics().await?;
    let mut sum = 0;
    for line in metrics
        .lines()
        .filter(|line| line.starts_with("rest_client_requests_total{"))
    {
        let count = line.rsplit(' ').next().context("a metric has no value")?;
        sum += count.parse::<f64>()? as u64;
    }
    Ok(sum)
}

#[test]
fn an_install_takes_few_requests_and_a_release_at_rest_none() {
    run("helm-count", |test| async move {
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let mut options = test.own_shard();
        options.flags.push("--interval-jitter-percentage=0".to_owned());
        let controller = Controller::start_helm(kubeconfig, &test.world.source, options).await?;
        test.oci_chart("1.0.0", chart("1.0.0", &[("web.yaml", DEPLOYMENT)])?)
            .await?;
        // What is learnt once of the cluster and of kinds is not counted: the first release learns it.
        let mut first = test.in_own_shard(test.release(json!({"releaseName": "first"})));
        first["metadata"]["name"] = json!("first");
        test.apply(&first).await?;
        testkit::wait_for(&test.releases(), "first", is_ready, crate::world::PATIENCE).await?;
        tokio::time::sleep(Duration::from_millis(1500)).await;

        let before = requests(&controller).await?;
        test.apply(&test.in_own_shard(test.release(json!({"interval": "2s"}))))
            .await?;
        let object = test.ready().await?;
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let after = requests(&controller).await?;
        eprintln!("an install of two objects took {} requests", after - before);
        ensure!(
            after - before <= 20,
            "an install took {} requests",
            after - before
        );

        // Two intervals pass.
        tokio::time::sleep(Duration::from_millis(4500)).await;
        let rested = requests(&controller).await?;
        ensure!(rested == after, "at rest there were {} requests", rested - after);
        let now = test.releases().get("web").await?;
        ensure!(now.metadata.resource_version == object.metadata.resource_version);
        test.delete().await
    });
}

#[test]
fn the_controller_may_be_killed_at_any_moment() {
    run("helm-kill", |test| async move {
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let mut controller = Controller::start_helm(kubeconfig, &test.world.source, test.own_shard()).await?;
        test.oci_chart("1.0.0", chart("1.0.0", &[("web.yaml", DEPLOYMENT)])?)
            .await?;
        let mut moment: u64 = 7;
        for round in 0..12 {
            let value = format!("round-{round}");
            let release = test
                .release(json!({"values": {"value": value, "image": format!("example.com/web:{round}")}}));
            test.apply(&test.in_own_shard(release)).await?;
            moment = (moment * 1_103_515_245 + 12_345) % 2_147_483_648;
            tokio::time::sleep(Duration::from_millis(moment % 500)).await;
            controller.kill();
            controller.restart().await?;
            test.map_has("value", &value).await?;
            let object = test
                .when(|object| is_ready(object) && newest(object)["status"] == "deployed")
                .await?;
            let records = test.records("web").await?;
            let deployed = records.iter().filter(|(_, status)| status == "deployed").count();
            let pending = records.iter().any(|(_, status)| status.starts_with("pending"));
            ensure!(deployed == 1 && !pending, "round {round}: {records:?}");
            ensure!(records.last().map(|(version, _)| *version) == newest(&object)["version"].as_i64());
            let map: ConfigMap = test.config_maps().get("web-map").await?;
            ensure!(map.data.unwrap_or_default().get("value") == Some(&value));
            ensure!(condition(&object, "Stalled").is_none());
        }
        test.delete().await?;
        test.config_map_gone("web-map").await
    });
}
