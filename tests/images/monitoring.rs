//! A real Prometheus reads image-controller, evaluates the rules of the chart, and answers what its dashboard asks.

use anyhow::ensure;
use kube::api::{Api, DeleteParams, DynamicObject};
use serde_json::json;
use testkit::objects::{self, is_ready};
use testkit::{Prometheus, wait_until_gone};

use crate::world::{IMAGE, PATIENCE, play};

/// Panels that show nothing as long as nothing of the kind has happened.
const MAY_BE_EMPTY: [&str; 1] = ["How long scans take, half and 95 of 100"];

#[test]
fn a_real_prometheus_reads_what_images_do() {
    play("monitoring", async |scene| {
        let namespace = &scene.namespace;
        let marker = format!("{{\"$imagepolicy\": \"{namespace}:web:tag\"}}");
        let file = format!("kind: App\nmetadata:\n  name: web\ntag: 0.1.0 # {marker}\n");
        scene.git(&[("app.yaml", &file)]).await?;
        scene.push("web", &["1.0.0", "1.1.0"]).await?;
        let held = json!({"windlass.dev/held-tags": r#"[{"tag": "1.1.0", "reason": "errors"}]"#});
        let any = json!({"policy": {"semver": {"range": "*"}}});
        scene.follow_with("web", any, held).await?;
        scene.automate("auto", json!({}), json!({})).await?;
        scene
            .automate(
                "lost",
                json!({}),
                json!({"sourceRef": {"kind": "GitRepository", "name": "missing"}}),
            )
            .await?;
        scene.wait("ImageUpdateAutomation", "auto", is_ready).await?;
        let prometheus = Prometheus::start(&[&scene.world.images]).await?;
        let of = |name: &str| format!("exported_namespace=\"{namespace}\",name=\"{name}\"");
        for (query, expected) in [
            (format!("windlass_image_tags{{{}}}", of("web")), 2.0),
            (format!("windlass_image_held_tags{{{}}}", of("web")), 1.0),
            (format!("windlass_image_commits_total{{{}}}", of("auto")), 1.0),
            (
                format!("windlass_image_pull_requests_open{{{}}}", of("auto")),
                0.0,
            ),
            (
                format!(
                    "gotk_resource_info{{customresource_kind=\"ImageRepository\",{},ready=\"True\"}}",
                    of("web")
                ),
                1.0,
            ),
            (
                format!(
                    "gotk_reconcile_duration_seconds_count{{kind=\"ImageUpdateAutomation\",{}}} > bool 0",
                    of("auto")
                ),
                1.0,
            ),
            (
                format!(
                    "ALERTS{{alertname=\"WindlassTagHeld\",alertstate=\"pending\",{}}}",
                    of("web")
                ),
                1.0,
            ),
        ] {
            prometheus.until(&query, expected).await?;
        }
        let scans = "sum(windlass_image_scan_duration_seconds_count{result=\"listed\"}) > bool 0";
        prometheus.until(scans, 1.0).await?;
        let asked = prometheus.shows_dashboard("images", &MAY_BE_EMPTY).await?;
        ensure!(asked > 10, "only {asked} expressions were found");
        ensure!(prometheus.evaluates_rules().await? > 10);

        // What is deleted leaves nothing behind.
        let automations: Api<DynamicObject> =
            objects::api(&scene.client, IMAGE, "ImageUpdateAutomation", namespace);
        automations.delete("auto", &DeleteParams::default()).await?;
        wait_until_gone(&automations, "auto", PATIENCE).await?;
        let gone = format!(
            "count({{__name__=~\"windlass_image.*|gotk_.*\",{}}}) or vector(0)",
            of("auto")
        );
        prometheus.until(&gone, 0.0).await
    });
}
