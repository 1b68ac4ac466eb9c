//! A tenant opens a source to others through the chart that is made for their release.
//!
//! They hold: a HelmRelease whose template for the HelmChart has annotations. What only an owner may say must not be among those
//! that arrive.

use anyhow::ensure;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::json;
use testkit::wait_for;

use crate::scene::{HELM, PATIENCE, SOURCE, play};

#[test]
fn a_release_does_not_write_annotations_that_open_its_chart() {
    play("annotations", |scene| async move {
        let repository = json!({"apiVersion": SOURCE, "kind": "HelmRepository",
            "metadata": {"name": "charts", "namespace": scene.attacker},
            "spec": {"url": "http://127.0.0.1:1/charts", "interval": "1h"}});
        scene.apply(&repository).await?;
        let annotations =
            json!({"windlass.dev/access-from": "*", "windlass.dev/anything": "x", "example.com/team": "a"});
        let chart = json!({
            "metadata": {"annotations": annotations},
            "spec": {"chart": "app", "sourceRef": {"kind": "HelmRepository", "name": "charts"}},
        });
        let release = json!({"apiVersion": HELM, "kind": "HelmRelease",
            "metadata": {"name": "web", "namespace": scene.attacker}, "spec": {"interval": "1h", "chart": chart}});
        scene.apply(&release).await?;
        let charts = scene.api(SOURCE, "HelmChart", &scene.attacker);
        let name = format!("{}-web", scene.attacker);
        let made = wait_for(&charts, &name, |_: &DynamicObject| true, PATIENCE).await?;
        let annotations = made.annotations();
        ensure!(annotations.contains_key("example.com/team"), "{annotations:?}");
        ensure!(
            !annotations.keys().any(|key| key.starts_with("windlass.dev/")),
            "{annotations:?}"
        );
        Ok(())
    });
}
