//! Registries that fail, and lists of tags that are not what they should be.

use std::time::Duration;

use anyhow::ensure;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use testkit::objects::{self, apply, condition, text};
use testkit::registry::{Fault, Kind};

use crate::world::{IMAGE, play};

#[test]
fn a_scan_that_fails_says_why_and_changes_no_choice() {
    play("registry", async |scene| {
        scene.push("web", &["1.0.0", "1.0.0.sig", "nightly"]).await?;
        scene
            .follow("web", json!({"policy": {"semver": {"range": "*"}}}))
            .await?;
        let chosen = |object: &_| text(object, "/status/latestRef/tag") == "1.0.0";
        scene.wait("ImagePolicy", "web", chosen).await?;
        let scanned = scene
            .wait("ImageRepository", "web", testkit::objects::is_ready)
            .await?;
        assert_eq!(
            scanned.data["status"]["lastScanResult"]["tagCount"], 2,
            "without signatures"
        );
        assert_eq!(
            scanned.data["status"]["lastScanResult"]["latestTags"],
            json!(["nightly", "1.0.0"])
        );
        assert_eq!(text(&scanned, "/status/canonicalImageName"), scene.image("web"));

        scene.push("web", &["1.1.0"]).await?;
        let repository = format!("{}/web", scene.namespace);
        scene.world.registry.set_fault(&repository, Fault::Status(429));
        scene.poke("ImageRepository", "web").await?;
        let failed = |object: &_| condition(object, "Ready").is_some_and(|(status, ..)| status == "False");
        let object = scene.wait("ImageRepository", "web", failed).await?;
        let (_, reason, message) = condition(&object, "Ready").unwrap_or_default();
        assert_eq!(reason, "ReadOperationFailed");
        ensure!(
            message.starts_with("scan failed: ") && message.contains("429"),
            "{message}"
        );
        scene.wait("ImagePolicy", "web", chosen).await?;
        scene.world.registry.set_fault(&repository, None);
        scene
            .wait("ImagePolicy", "web", |object| {
                text(object, "/status/latestRef/tag") == "1.1.0"
            })
            .await?;
        Ok(())
    });
}

#[test]
fn a_pause_that_a_registry_asks_for_holds_for_all_images_of_it() {
    play("pauses", async |scene| {
        let any = || json!({"policy": {"semver": {"range": "*"}}});
        for name in ["web", "api"] {
            scene.push(name, &["1.0.0"]).await?;
            scene.follow(name, any()).await?;
            scene.wait("ImagePolicy", name, objects::is_ready).await?;
        }
        let repository = |name: &str| format!("{}/{name}", scene.namespace);
        let busy = Fault::TooManyRequests(Duration::from_secs(600));
        scene.world.registry.set_fault(&repository("web"), busy);
        scene.poke("ImageRepository", "web").await?;
        let failed = |object: &_| condition(object, "Ready").is_some_and(|(status, ..)| status == "False");
        scene.wait("ImageRepository", "web", failed).await?;

        let asked = || scene.world.registry.requests(&repository("api")).len();
        let before = asked();
        let token = scene.poke("ImageRepository", "api").await?;
        let waits = |object: &_| {
            text(object, "/status/lastHandledReconcileAt") == token
                && condition(object, "Reconciling")
                    .is_some_and(|(_, _, message)| message.contains("asked for a pause until 2"))
        };
        let object = scene.wait("ImageRepository", "api", waits).await?;
        ensure!(
            objects::is_ready(&object),
            "what was found before stays: {:#}",
            object.data
        );
        assert_eq!(asked(), before, "it was asked all the same");
        Ok(())
    });
}

#[test]
fn tags_that_a_registry_reports_are_looked_for_alone() {
    play("reported", async |scene| {
        scene.push("web", &["1.0.0"]).await?;
        scene
            .follow("web", json!({"policy": {"semver": {"range": "*"}}}))
            .await?;
        let is_chosen = |tag: &'static str| move |object: &_| text(object, "/status/latestRef/tag") == tag;
        scene.wait("ImagePolicy", "web", is_chosen("1.0.0")).await?;
        let before = scene.wait("ImageRepository", "web", objects::is_ready).await?;
        scene.push("web", &["1.1.0"]).await?;

        let repository = format!("{}/web", scene.namespace);
        let lists = || {
            let kinds = scene.world.registry.kinds(&repository);
            kinds.iter().filter(|kind| **kind == Kind::Tags).count()
        };
        let listed = lists();
        let pushed = json!({"requestedAt": "reported", "tags": ["1.1.0", "1.2.0", "sha256-1.sig"]});
        let annotations = json!({"metadata": {"annotations": {
            "reconcile.fluxcd.io/requestedAt": "reported", "windlass.dev/pushed-tags": pushed.to_string(),
        }}});
        let repositories = objects::api(&scene.client, IMAGE, "ImageRepository", &scene.namespace);
        repositories
            .patch("web", &PatchParams::default(), &Patch::Merge(&annotations))
            .await?;
        scene.wait("ImagePolicy", "web", is_chosen("1.1.0")).await?;
        let handled = |object: &_| text(object, "/status/lastHandledReconcileAt") == "reported";
        let after = scene.wait("ImageRepository", "web", handled).await?;
        let scanned = |object: &kube::api::DynamicObject| object.data["status"]["lastScanResult"].clone();
        assert_eq!(
            scanned(&after)["latestTags"],
            json!(["1.1.0", "1.0.0"]),
            "1.2.0 is not there"
        );
        assert_eq!(
            scanned(&after)["scanTime"],
            scanned(&before)["scanTime"],
            "the interval goes on"
        );
        // One list: of the tags that there are instead of the one that is not.
        ensure!(lists() <= listed + 1, "all tags were listed");

        // The next request is for all of them, whatever stands in the annotation.
        let listed = lists();
        scene.poke("ImageRepository", "web").await?;
        let again = |object: &_| text(object, "/status/lastHandledReconcileAt") != "reported";
        scene.wait("ImageRepository", "web", again).await?;
        ensure!(lists() > listed, "no list was asked for");
        Ok(())
    });
}

#[test]
fn names_and_rules_that_are_none_stall() {
    play("stalled", async |scene| {
        let stalled = |reason: &'static str| {
            move |object: &_| condition(object, "Stalled").is_some_and(|(_, found, _)| found == reason)
        };
        let repository = json!({
            "apiVersion": IMAGE,
            "kind": "ImageRepository",
            "metadata": {"name": "bad", "namespace": scene.namespace},
            "spec": {"image": "https://example.com/app", "interval": "1h"},
        });
        apply(&scene.client, &repository).await?;
        let object = scene
            .wait("ImageRepository", "bad", stalled("ImageURLInvalid"))
            .await?;
        let (_, _, message) = condition(&object, "Ready").unwrap_or_default();
        assert_eq!(
            message,
            "image 'https://example.com/app' should not include URL scheme; remove 'https://'"
        );
        for (name, policy, expected) in [
            (
                "none",
                json!({}),
                "invalid policy: given ImagePolicyChoice object is invalid",
            ),
            ("range", json!({"semver": {"range": "x y"}}), "invalid policy: "),
        ] {
            scene.follow(name, json!({"policy": policy})).await?;
            let object = scene.wait("ImagePolicy", name, stalled("InvalidPolicy")).await?;
            let (_, _, message) = condition(&object, "Ready").unwrap_or_default();
            ensure!(message.starts_with(expected), "{message}");
        }
        Ok(())
    });
}

#[test]
fn tags_that_are_no_numbers_are_skipped_and_counted() {
    play("numbers", async |scene| {
        scene.push("web", &["9", "10", "latest"]).await?;
        scene
            .follow("web", json!({"policy": {"numerical": {"order": "asc"}}}))
            .await?;
        let object = scene
            .wait("ImagePolicy", "web", |object| {
                text(object, "/status/latestRef/tag") == "10"
            })
            .await?;
        let (_, _, message) = condition(&object, "TagsSkipped").unwrap_or_default();
        assert_eq!(
            message,
            "the order of the policy does not apply to 1 of 3 tags, such as latest"
        );
        Ok(())
    });
}

#[test]
fn another_image_with_the_same_tags_is_another_choice() {
    play("renamed", async |scene| {
        scene.push("web", &["1.0.0"]).await?;
        scene.push("api", &["1.0.0"]).await?;
        let policy = json!({"policy": {"semver": {"range": "*"}}});
        scene.follow("web", policy).await?;
        let chosen = |image: String| move |object: &_| text(object, "/status/latestRef/name") == image;
        scene
            .wait("ImagePolicy", "web", chosen(scene.image("web")))
            .await?;
        let other = json!({
            "apiVersion": IMAGE,
            "kind": "ImageRepository",
            "metadata": {"name": "web", "namespace": scene.namespace},
            "spec": {"image": scene.image("api"), "interval": "1h", "insecure": true},
        });
        apply(&scene.client, &other).await?;
        scene
            .wait("ImagePolicy", "web", chosen(scene.image("api")))
            .await?;
        Ok(())
    });
}

#[test]
fn a_policy_that_forbids_downgrades_keeps_its_tag_when_that_disappears() {
    play("downgrades", async |scene| {
        scene.push("web", &["1.0.0"]).await?;
        let newest = scene.push("web", &["1.1.0"]).await?;
        scene
            .follow("web", json!({"policy": {"semver": {"range": "*"}}}))
            .await?;
        let policies = objects::api(&scene.client, IMAGE, "ImagePolicy", &scene.namespace);
        let annotate = async |value: &str| {
            let patch = json!({"metadata": {"annotations": {"windlass.dev/downgrades": value}}});
            let parameters = PatchParams::default();
            policies.patch("web", &parameters, &Patch::Merge(&patch)).await
        };
        let is_chosen = |tag: &'static str| move |object: &_| text(object, "/status/latestRef/tag") == tag;
        scene.wait("ImagePolicy", "web", is_chosen("1.1.0")).await?;
        annotate("never").await?;
        let stalled = |object: &_| condition(object, "Stalled").is_some();
        scene.poke("ImagePolicy", "web").await?;
        let object = scene.wait("ImagePolicy", "web", stalled).await?;
        let (_, _, message) = condition(&object, "Stalled").unwrap_or_default();
        ensure!(message.contains("no value but 'forbidden'"), "{message}");
        annotate("forbidden").await?;
        scene.poke("ImagePolicy", "web").await?;
        scene.wait("ImagePolicy", "web", objects::is_ready).await?;

        let repository = format!("{}/web", scene.namespace);
        scene.world.registry.delete(&repository, &newest).await?;
        scene.poke("ImageRepository", "web").await?;
        let held = |object: &_| condition(object, "DowngradeHeld").is_some();
        let object = scene.wait("ImagePolicy", "web", held).await?;
        ensure!(is_chosen("1.1.0")(&object), "{:#}", object.data);
        let (_, _, message) = condition(&object, "DowngradeHeld").unwrap_or_default();
        ensure!(message.contains("from 1.1.0 to 1.0.0"), "{message}");

        let patch = json!({"spec": {"policy": {"semver": {"range": ">=1.0.0"}}}});
        policies
            .patch("web", &PatchParams::default(), &Patch::Merge(&patch))
            .await?;
        let object = scene.wait("ImagePolicy", "web", is_chosen("1.0.0")).await?;
        ensure!(!held(&object), "{:#}", object.data);
        Ok(())
    });
}

#[test]
fn a_list_that_is_still_the_same_is_not_sent_again() {
    play("marked", async |scene| {
        let repository = format!("{}/web", scene.namespace);
        scene.world.registry.mark_lists(&repository);
        scene.push("web", &["1.0.0", "1.1.0-rc"]).await?;
        scene
            .follow("web", json!({"policy": {"semver": {"range": ">=0-0"}}}))
            .await?;
        let is_chosen = |tag: &'static str| move |object: &_| text(object, "/status/latestRef/tag") == tag;
        scene.wait("ImagePolicy", "web", is_chosen("1.1.0-rc")).await?;
        let unchanged = || {
            let kinds = scene.world.registry.kinds(&repository);
            kinds.iter().filter(|kind| **kind == Kind::TagsUnchanged).count()
        };
        assert_eq!(unchanged(), 0);
        let scan = async || {
            let token = scene.poke("ImageRepository", "web").await?;
            let handled = |object: &_| text(object, "/status/lastHandledReconcileAt") == token;
            scene.wait("ImageRepository", "web", handled).await
        };
        let object = scan().await?;
        assert_eq!(unchanged(), 1);
        assert_eq!(object.data["status"]["lastScanResult"]["tagCount"], 2);

        // The same list, of which something else is left out.
        let exclusions = json!({"spec": {"exclusionList": ["-rc$"]}});
        let repositories = objects::api(&scene.client, IMAGE, "ImageRepository", &scene.namespace);
        repositories
            .patch("web", &PatchParams::default(), &Patch::Merge(&exclusions))
            .await?;
        scene.wait("ImagePolicy", "web", is_chosen("1.0.0")).await?;
        assert_eq!(unchanged(), 1);

        scene.push("web", &["1.2.0"]).await?;
        scan().await?;
        scene.wait("ImagePolicy", "web", is_chosen("1.2.0")).await?;
        assert_eq!(unchanged(), 1);
        scan().await?;
        assert_eq!(unchanged(), 2);
        Ok(())
    });
}
