//! Who may use the images of others.

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::objects::{self, apply, condition, text};
use testkit::wait_for;

use crate::world::{IMAGE, PATIENCE, Scene, play};

async fn policy_in(scene: &Scene, namespace: &str) -> Result<()> {
    let policy = json!({
        "apiVersion": IMAGE,
        "kind": "ImagePolicy",
        "metadata": {"name": "guest", "namespace": namespace},
        "spec": {
            "imageRepositoryRef": {"name": "web", "namespace": scene.namespace},
            "policy": {"semver": {"range": "*"}},
        },
    });
    apply(&scene.client, &policy).await?;
    Ok(())
}

#[test]
fn a_repository_is_referred_to_from_elsewhere_only_if_its_owner_says_so() {
    play("access", async |scene| {
        let guest = scene.world.control_plane.namespace("guest").await?;
        scene.push("web", &["1.0.0"]).await?;
        scene
            .follow("web", json!({"policy": {"semver": {"range": "*"}}}))
            .await?;
        policy_in(&scene, &guest).await?;
        let policies = objects::api(&scene.client, IMAGE, "ImagePolicy", &guest);
        let denied =
            |object: &_| condition(object, "Ready").is_some_and(|(_, reason, _)| reason == "AccessDenied");
        let object = wait_for(&policies, "guest", denied, PATIENCE).await?;
        ensure!(
            text(&object, "/status/latestRef/tag").is_empty(),
            "nothing is given away"
        );

        let label = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": guest, "labels": {"team": "a"}}});
        apply(&scene.client, &label).await?;
        let allowed = json!({
            "apiVersion": IMAGE,
            "kind": "ImageRepository",
            "metadata": {"name": "web", "namespace": scene.namespace},
            "spec": {
                "image": scene.image("web"), "interval": "1h", "insecure": true,
                "accessFrom": {"namespaceSelectors": [{"matchLabels": {"team": "a"}}]},
            },
        });
        apply(&scene.client, &allowed).await?;
        objects::poke(&policies, "guest").await?;
        wait_for(
            &policies,
            "guest",
            |object| text(object, "/status/latestRef/tag") == "1.0.0",
            PATIENCE,
        )
        .await?;
        Ok(())
    });
}
