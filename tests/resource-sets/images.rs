//! Images of ResourceSets under VerificationPolicies (ADR 33).

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use serde_json::{Value, json};
use testkit::objects::{apply, condition};

use crate::world::{Scene, play};

/// A Pod of an image.
fn pod(name: &str, image: &str) -> Value {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "app", "image": image}]},
    });
    json!({"inputs": [{"name": name}], "resources": [pod]})
}

impl Scene {
    async fn known_images(&self, action: &str) -> Result<()> {
        let policy = json!({
            "apiVersion": "delivery.windlass.dev/v1alpha1", "kind": "VerificationPolicy",
            "metadata": {"name": "known", "namespace": self.namespace},
            "spec": {"action": action, "images": {"from": ["registry.example.com/*"]}},
        });
        apply(&self.client, &policy).await.map(drop)
    }
}

#[test]
fn a_set_makes_no_pod_of_an_image_that_is_refused() {
    play("rset-images", |scene| async move {
        scene.known_images("Enforce").await?;
        scene
            .set("known", pod("known", "registry.example.com/app:1"))
            .await?;
        scene.applied("known").await?;
        scene.set("other", pod("other", "evil.example.com/app:1")).await?;
        let is_refused = |set: &DynamicObject| {
            condition(set, "Ready").is_some_and(|(_, reason, _)| reason == "ImageVerificationFailed")
        };
        let set = scene.wait("other", is_refused).await?;
        let (_, _, message) = condition(&set, "Ready").unwrap_or_default();
        let ns = &scene.namespace;
        let expected = format!(
            "image 'evil.example.com/app:1' of Pod/{ns}/other is refused by VerificationPolicy {ns}/known: images may \
             not come from evil.example.com/app"
        );
        ensure!(message == expected, "{message}");
        // It is tried again when the policy changes.
        scene.known_images("Warn").await?;
        scene.applied("other").await?;
        Ok(())
    });
}
