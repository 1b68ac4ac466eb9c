//! Alerts as the real `flux` makes and shows them, and about a HelmRelease.

use anyhow::ensure;
use serde_json::json;

use crate::alerts::Alerts;
use crate::flux_cli::Flux;
use crate::helm;
use crate::world::run;

#[test]
fn flux_makes_shows_exports_and_deletes_alerts_and_providers() {
    run("alert-flux", |test| async move {
        let alerts = Alerts::start(&test, &[]).await?;
        let flux = Flux::start(&test).await?;
        let address = alerts.sink.url("made");
        flux.run(&[
            "create",
            "alert-provider",
            "made",
            "--type=generic",
            "--address",
            &address,
        ])
        .done()
        .await?;
        let create = [
            "create",
            "alert",
            "made",
            "--provider-ref=made",
            "--event-severity=error",
            "--event-source=Kustomization/*",
        ];
        flux.run(&create).done().await?;
        alerts.until_known(&["made"]).await?;
        alerts
            .post(&alerts.event("Kustomization", "web", "error", "told"))
            .await?;
        alerts.sink.until_message("made", "told").await?;

        for (word, kind) in [("alerts", "alert"), ("alert-providers", "alert-provider")] {
            let seen = flux.run(&["get", word]).done().await?;
            ensure!(seen.contains("made"), "{seen}");
            let exported = flux.run(&["export", kind, "made"]).done().await?;
            ensure!(
                exported.contains("name: made") && !exported.contains("finalizers"),
                "{exported}"
            );
        }
        flux.run(&["suspend", "alert", "made"]).done().await?;
        let suspended = flux.run(&["get", "alerts"]).done().await?;
        ensure!(suspended.contains("True"), "{suspended}");
        flux.run(&["resume", "alert", "made"]).done().await?;

        alerts.sink.answer(400);
        alerts
            .post(&alerts.event("Kustomization", "web", "error", "refused"))
            .await?;
        alerts.told_on("made", "NotificationDispatchFailed").await?;
        let events = flux.run(&["events", "--for=Alert/made"]).done().await?;
        ensure!(events.contains("NotificationDispatchFailed"), "{events}");
        for kind in ["alert", "alert-provider"] {
            flux.run(&["delete", kind, "made", "--silent"]).done().await?;
        }
        Ok(())
    });
}

#[test]
fn a_failing_helm_release_is_told() {
    helm::run("alert-helm", |test| async move {
        let alerts = Alerts::start(&test.test, &[]).await?;
        let sources = json!([{"kind": "HelmRelease", "name": "*"}, {"kind": "Kustomization", "name": "*"}]);
        alerts
            .generic("told", json!({"eventSeverity": "error", "eventSources": sources}))
            .await?;
        let broken = helm::chart("1.0.0", &[("broken.yaml", "{{ fail \"no way\" }}")])?;
        test.oci_chart("1.0.0", broken).await?;
        test.apply(&test.release(json!({}))).await?;
        let call = alerts
            .sink
            .until("told", |call| {
                call.json["involvedObject"]["kind"] == "HelmRelease"
            })
            .await?;
        let message = call.json["message"].to_string();
        ensure!(
            call.json["reason"] == "InstallFailed" && message.contains("no way"),
            "{}",
            call.json
        );
        Ok(())
    });
}
