//! Deliveries are told as CDEvents, also when receiver or console were away.

use anyhow::{Context as _, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::message_sink::Call;
use testkit::objects::{self, apply};
use testkit::{Controller, MessageSink};

use crate::world::{Scene, play};

/// An outcome of a revision, so many minutes ago.
fn entry(revision: &str, status: &str, ago: i64) -> Value {
    let time = (Timestamp::now() - SignedDuration::from_mins(ago)).to_string();
    json!({
        "digest": format!("sha256:{revision}"), "firstReconciled": time, "lastReconciled": time,
        "lastReconciledDuration": "1s", "lastReconciledStatus": status, "totalReconciliations": 1,
        "metadata": {"revision": format!("main@sha1:{revision}")},
    })
}

async fn history(scene: &Scene, name: &str, entries: Value) -> Result<()> {
    let status = json!({"history": entries});
    let version = "kustomize.toolkit.fluxcd.io/v1";
    scene
        .status(version, "Kustomization", &scene.namespace, name, status)
        .await
}

/// The types of what was told of the story's objects, in their order.
fn told(scene: &Scene, sink: &MessageSink) -> Vec<String> {
    let environment = format!("local/{}", scene.namespace);
    let calls = sink.said_to("events").into_iter();
    let of_story = calls.filter(|call| call.json["subject"]["content"]["environment"]["id"] == environment);
    of_story.map(|call| kind(&call)).collect()
}

fn kind(call: &Call) -> String {
    let header = call.headers.get("ce-type").and_then(|value| value.to_str().ok());
    let kind = header.unwrap_or_default().trim_start_matches("dev.cdevents.");
    kind.trim_end_matches(".0.2.0").to_owned()
}

#[test]
fn each_delivery_is_told_although_receiver_and_console_go_away() {
    play("cdevents", async |scene| {
        let sink = MessageSink::start().await?;
        sink.answer(503);
        let ledger = testkit::scratch::directory("cdevents")?;
        let options = ControllerOptions {
            flags: vec![
                format!(
                    "--ledger-url=sqlite:{}",
                    ledger.path().join("ledger.db").display()
                ),
                format!("--cdevents-url={}", sink.url("events")),
            ],
            ..ControllerOptions::default()
        };
        let mut console =
            Controller::start_console(scene.world.control_plane.kubeconfig_path(), options).await?;
        for name in ["web", "past"] {
            let object = objects::kustomization(&scene.namespace, name, ("GitRepository", "repo"), "./");
            apply(&scene.client, &object).await?;
        }
        let good = entry("one", "ReconciliationSucceeded", 9);
        // What is of last week is recorded, and nobody is told.
        let old = entry("zero", "HealthCheckFailed", 7 * 24 * 60);
        history(&scene, "past", json!([old])).await?;
        history(&scene, "web", json!([&good])).await?;
        let failing = "the receiver of CDEvents did not take one";
        let refused = async {
            while !console.log().contains(failing) {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await; // a log tells nobody
            }
        };
        tokio::time::timeout(crate::world::PATIENCE, refused)
            .await
            .context("nothing was sent")?;
        console.kill();
        sink.answer(200);
        console.restart().await?;
        let is_ours =
            |call: &Call| call.json["subject"]["id"] == format!("Kustomization/{}/web", scene.namespace);
        let first = sink.until("events", is_ours).await?;
        assert_eq!(kind(&first), "service.deployed");
        let artifact = format!("pkg:generic/{}/web@main%40sha1%3Aone", scene.namespace);
        assert_eq!(first.json["subject"]["content"]["artifactId"], artifact);
        assert_eq!(
            first.json["context"]["id"].as_str(),
            first.headers["ce-id"].to_str().ok()
        );
        ensure!(first.headers["ce-specversion"] == "1.0");

        let bad = entry("two", "HealthCheckFailed", 5);
        history(&scene, "web", json!([&bad, &good])).await?;
        sink.until("events", |call| kind(call) == "incident.detected")
            .await?;
        let again = entry("three", "ReconciliationSucceeded", 1);
        history(&scene, "web", json!([again, bad, good])).await?;
        sink.until("events", |call| kind(call) == "incident.resolved")
            .await?;
        // Those of one moment come in the order of their names.
        let expected = [
            "service.deployed",
            "incident.detected",
            "incident.resolved",
            "service.upgraded",
        ];
        let last = |call: &Call| kind(call) == "service.upgraded";
        sink.until("events", last).await?;
        assert_eq!(told(&scene, &sink), expected);
        Ok(())
    });
}
