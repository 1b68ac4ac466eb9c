//! Who may use the images of others.

use anyhow::{Result, ensure};
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::json;
use testkit::git::Repository;
use testkit::objects::{self, apply, condition, text};
use testkit::registry::Artifact;
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

const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  own: h/web:0 # {\"$imagepolicy\": \"OWN:web\"}
  lent: h/web:0 # {\"$imagepolicy\": \"OTHER:web\"}
";

/// A policy of the tags of `web`, in another namespace, shared with those that `access` lists.
async fn other_policy(scene: &Scene, namespace: &str, access: Option<&str>) -> Result<()> {
    let guest = Scene {
        world: scene.world,
        client: scene.client.clone(),
        namespace: namespace.to_owned(),
    };
    let annotations = match access {
        Some(list) => json!({"windlass.dev/access-from": list}),
        None => json!({}),
    };
    let spec = json!({"policy": {"semver": {"range": "*"}}});
    guest.follow_with("web", spec, annotations).await
}

fn file(repository: &Repository) -> Result<String> {
    repository.git(&["show", "main:web.yaml"])
}

#[test]
fn an_automation_follows_policies_of_other_namespaces_that_are_shared_with_it() {
    play("lent", async |scene| {
        let other = scene.world.control_plane.namespace("lender").await?;
        scene.push("web", &["1.0.0"]).await?;
        scene
            .follow("web", json!({"policy": {"semver": {"range": "*"}}}))
            .await?;
        let artifact = Artifact::from_files("main@sha1:1", &[("content", "lent")])?;
        let registry = &scene.world.registry;
        registry
            .push(&format!("{other}/web"), &["2.0.0"], &artifact)
            .await?;
        other_policy(&scene, &other, Some("somebody-else")).await?;
        let policies = objects::api(&scene.client, IMAGE, "ImagePolicy", &other);
        wait_for(&policies, "web", objects::is_ready, PATIENCE).await?;

        let text_of = DEPLOYMENT
            .replace("OWN", &scene.namespace)
            .replace("OTHER", &other);
        let repository = scene.git(&[("web.yaml", &text_of)]).await?;
        scene.automate("app", json!({}), json!({})).await?;
        let annotation = json!({"metadata": {"annotations": {"windlass.dev/policy-namespaces": other}}});
        let automations = objects::api(&scene.client, IMAGE, "ImageUpdateAutomation", &scene.namespace);
        let patch = Patch::Merge(&annotation);
        automations.patch("app", &PatchParams::default(), &patch).await?;
        let commit = scene.pushed("app", "").await?;
        let ignored = |object: &DynamicObject| {
            condition(object, "MarkersIgnored")
                .is_some_and(|(_, _, message)| message.contains(&format!("{other}:web")))
        };
        scene.wait("ImageUpdateAutomation", "app", ignored).await?;
        let text = file(&repository)?;
        ensure!(
            text.contains("/web:1.0.0 #") && text.contains("lent: h/web:0 #"),
            "{text}"
        );

        other_policy(&scene, &other, Some(&scene.namespace)).await?;
        scene.poke("ImageUpdateAutomation", "app").await?;
        let lent = scene.pushed("app", &commit).await?;
        let text = file(&repository)?;
        ensure!(text.contains(&format!("{other}/web:2.0.0 #")), "{text}");
        let object = automations.get("app").await?;
        let observed = format!("/status/observedPolicies/{other}~1web/tag");
        ensure!(objects::text(&object, &observed) == "2.0.0", "{:#}", object.data);

        // A new choice over there wakes the automation here.
        registry
            .push(&format!("{other}/web"), &["2.1.0"], &artifact)
            .await?;
        let repositories = objects::api(&scene.client, IMAGE, "ImageRepository", &other);
        objects::poke(&repositories, "web").await?;
        scene.pushed("app", &lent).await?;
        ensure!(file(&repository)?.contains("/web:2.1.0 #"));
        Ok(())
    });
}
