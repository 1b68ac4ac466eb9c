//! What a policy demands of a tag beyond its order: its age, its signature, its platforms.

use anyhow::{Result, ensure};
use jiff::Timestamp;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::objects::{self, apply, condition, text};
use testkit::registry::{Artifact, CosignKey};

use crate::world::{IMAGE, Scene, play};

impl Scene {
    /// Follows the versions of `web` with annotations.
    async fn demand(&self, annotations: Value, reflection: &str) -> Result<()> {
        let mut spec = json!({"policy": {"semver": {"range": "*"}}, "digestReflectionPolicy": reflection});
        if reflection == "Always" {
            spec["interval"] = json!("1h");
        }
        self.follow_with("web", spec, annotations).await
    }

    /// Waits until the policy has chosen a tag.
    async fn chosen(&self, tag: &str) -> Result<DynamicObject> {
        let is_chosen = |object: &DynamicObject| {
            text(object, "/status/latestRef/tag") == tag && objects::is_ready(object)
        };
        self.wait("ImagePolicy", "web", is_chosen).await
    }

    /// Waits until the policy says something of a tag that it passes over.
    async fn passed_over(&self, words: &str) -> Result<DynamicObject> {
        let says = |object: &DynamicObject| {
            condition(object, "TagsIneligible").is_some_and(|(_, _, message)| message.contains(words))
        };
        self.wait("ImagePolicy", "web", says).await
    }

    async fn scan(&self) -> Result<()> {
        self.poke("ImageRepository", "web").await.map(drop)
    }

    async fn sign(&self, key: &CosignKey, digest: &str) -> Result<()> {
        let repository = format!("{}/web", self.namespace);
        key.sign(&self.world.registry, &repository, digest).await
    }

    /// A key, in the Secret that [`signed`] names.
    async fn key(&self) -> Result<CosignKey> {
        let key = CosignKey::generate()?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "keys", "namespace": self.namespace},
            "stringData": {"cosign.pub": key.public_key()?},
        });
        apply(&self.client, &secret).await?;
        Ok(key)
    }
}

fn signed() -> Value {
    json!({"windlass.dev/verify": r#"{"provider": "cosign", "secretRef": {"name": "keys"}}"#})
}

fn first_seen(object: &DynamicObject) -> Result<Timestamp> {
    let (_, _, message) = condition(object, "Ready").unwrap_or_default();
    let time = message
        .split("first seen ")
        .nth(1)
        .and_then(|rest| rest.split(',').next());
    Ok(time.unwrap_or_default().parse()?)
}

#[test]
fn a_tag_is_chosen_when_it_is_old_enough_without_being_asked_for() {
    play("age", async |scene| {
        scene.push("web", &["1.0.0"]).await?;
        scene
            .demand(json!({"windlass.dev/minimum-age": "5s"}), "Never")
            .await?;
        let refused = |object: &DynamicObject| {
            condition(object, "Ready").is_some_and(|(_, reason, _)| reason == "NoEligibleTag")
        };
        let object = scene.wait("ImagePolicy", "web", refused).await?;
        let since = first_seen(&object)?;
        ensure!(
            text(&object, "/status/latestRef/tag").is_empty(),
            "{:#}",
            object.data
        );
        scene.chosen("1.0.0").await?;
        ensure!(
            Timestamp::now().duration_since(since).as_secs() >= 5,
            "chosen too early"
        );

        scene.push("web", &["1.1.0"]).await?;
        scene.scan().await?;
        let object = scene.passed_over("1.1.0: is too young").await?;
        assert_eq!(text(&object, "/status/latestRef/tag"), "1.0.0");
        let object = scene.chosen("1.1.0").await?;
        ensure!(
            condition(&object, "TagsIneligible").is_none(),
            "{:#}",
            object.data
        );
        Ok(())
    });
}

#[test]
fn a_demand_of_age_does_not_take_back_what_was_chosen() {
    play("agelater", async |scene| {
        scene.push("web", &["1.0.0"]).await?;
        scene.push("web", &["1.1.0"]).await?;
        scene.demand(json!({}), "Always").await?;
        scene.chosen("1.1.0").await?;
        let age = json!({"windlass.dev/minimum-age": "24h"});
        scene.demand(age, "Always").await?;
        let digest = scene.push("web", &["1.2.0"]).await?;
        scene.scan().await?;
        scene.passed_over("1.2.0: is too young").await?;
        let object = scene.chosen("1.1.0").await?;
        let kept = text(&object, "/status/latestRef/digest").to_owned();

        // Somebody moves the chosen tag: what it pointed to stays chosen.
        let moved = Artifact::image("linux", "amd64", "moved")?;
        let repository = format!("{}/web", scene.namespace);
        let moved = scene.world.registry.push(&repository, &["1.1.0"], &moved).await?;
        ensure!(kept != moved && moved != digest);
        scene.poke("ImagePolicy", "web").await?;
        let object = scene.passed_over(&format!("1.1.0@{moved}: is too young")).await?;
        assert_eq!(text(&object, "/status/latestRef/digest"), kept);
        Ok(())
    });
}

#[test]
fn only_a_signed_tag_is_chosen() {
    play("signed", async |scene| {
        let key = scene.key().await?;
        let first = scene.push("web", &["1.0.0"]).await?;
        scene.sign(&key, &first).await?;
        let second = scene.push("web", &["1.1.0"]).await?;
        scene.sign(&CosignKey::generate()?, &second).await?;
        scene.push("web", &["1.2.0"]).await?;
        scene.demand(signed(), "IfNotPresent").await?;
        let object = scene.chosen("1.0.0").await?;
        assert_eq!(text(&object, "/status/latestRef/digest"), first);
        let (_, _, message) = condition(&object, "TagsIneligible").unwrap_or_default();
        let [unsigned, foreign] = message.lines().collect::<Vec<_>>()[..] else {
            anyhow::bail!("{message}");
        };
        ensure!(
            unsigned.starts_with("1.2.0: ") && unsigned.contains("no signatures found"),
            "{message}"
        );
        ensure!(
            foreign.starts_with("1.1.0: ") && foreign.contains("windlass.dev/verify"),
            "{message}"
        );

        scene.sign(&key, &second).await?;
        scene.poke("ImagePolicy", "web").await?;
        let object = scene.chosen("1.1.0").await?;
        assert_eq!(text(&object, "/status/latestRef/digest"), second);
        Ok(())
    });
}

#[test]
fn only_a_tag_whose_tests_passed_is_chosen() {
    const RESULT: &str = "https://in-toto.io/attestation/test-result/v0.1";
    play("attested", async |scene| {
        let key = scene.key().await?;
        let repository = format!("{}/web", scene.namespace);
        let attest = async |key: &CosignKey, digest: &str, result: &str| {
            let predicate = json!({"result": result});
            let registry = &scene.world.registry;
            key.attest(registry, &repository, digest, RESULT, &predicate)
                .await
        };
        let mut digests = Vec::new();
        for tag in ["1.0.0", "1.1.0", "1.2.0", "1.3.0"] {
            digests.push(scene.push("web", &[tag]).await?);
        }
        attest(&key, &digests[0], "PASSED").await?;
        attest(&key, &digests[1], "FAILED").await?;
        attest(&CosignKey::generate()?, &digests[2], "PASSED").await?;
        let demand = json!([{
            "predicateType": RESULT, "secretRef": {"name": "keys"}, "expression": "predicate.result == 'PASSED'",
        }]);
        let annotations = json!({"windlass.dev/verify-attestations": demand.to_string()});
        scene.demand(annotations, "IfNotPresent").await?;
        let object = scene.chosen("1.0.0").await?;
        assert_eq!(text(&object, "/status/latestRef/digest"), digests[0]);
        let (_, _, message) = condition(&object, "TagsIneligible").unwrap_or_default();
        let lines: Vec<_> = message.lines().collect();
        let expected = [
            ("1.3.0: ", "none of this type found"),
            ("1.2.0: ", "invalid signature when validating with the public key"),
            ("1.1.0: ", "it does not meet the expression"),
        ];
        assert_eq!(lines.len(), expected.len(), "{message}");
        for (line, (tag, words)) in lines.iter().zip(expected) {
            ensure!(line.starts_with(tag) && line.contains(words), "{message}");
            ensure!(line.ends_with("(windlass.dev/verify-attestations)"), "{message}");
        }

        attest(&key, &digests[3], "PASSED").await?;
        scene.poke("ImagePolicy", "web").await?;
        let object = scene.chosen("1.3.0").await?;
        assert_eq!(text(&object, "/status/latestRef/digest"), digests[3]);
        Ok(())
    });
}

#[test]
fn a_signed_tag_that_is_moved_keeps_its_digest_until_the_new_one_is_signed() {
    play("moved", async |scene| {
        let key = scene.key().await?;
        let first = scene.push("web", &["1.0.0"]).await?;
        scene.sign(&key, &first).await?;
        scene.demand(signed(), "Always").await?;
        scene.chosen("1.0.0").await?;
        let moved = Artifact::image("linux", "amd64", "moved")?;
        let repository = format!("{}/web", scene.namespace);
        let moved = scene.world.registry.push(&repository, &["1.0.0"], &moved).await?;
        scene.poke("ImagePolicy", "web").await?;
        let object = scene.passed_over(&format!("1.0.0@{moved}: ")).await?;
        assert_eq!(text(&object, "/status/latestRef/digest"), first);
        scene.sign(&key, &moved).await?;
        scene.poke("ImagePolicy", "web").await?;
        let is_new = |object: &DynamicObject| text(object, "/status/latestRef/digest") == moved;
        scene.wait("ImagePolicy", "web", is_new).await?;
        Ok(())
    });
}

#[test]
fn demands_that_cannot_be_met_say_so() {
    play("demands", async |scene| {
        let repository = format!("{}/web", scene.namespace);
        let registry = &scene.world.registry;
        for (tag, architecture) in [("1.0.0", "arm64"), ("1.1.0", "amd64")] {
            let image = Artifact::image("linux", architecture, tag)?;
            registry.push(&repository, &[tag], &image).await?;
        }
        scene.push("web", &["1.2.0"]).await?;
        scene
            .demand(json!({"windlass.dev/platforms": "linux/arm64"}), "IfNotPresent")
            .await?;
        let object = scene.chosen("1.0.0").await?;
        let (_, _, message) = condition(&object, "TagsIneligible").unwrap_or_default();
        assert_eq!(
            message,
            "1.2.0: it is not an image: it has no configuration that names a platform (windlass.dev/platforms)\n\
             1.1.0: has no image for linux/arm64 (windlass.dev/platforms)"
        );

        // Without a digest, a tag could be moved after it was looked at.
        let spec = json!({"spec": {"digestReflectionPolicy": "Never"}});
        let policies = objects::api(&scene.client, IMAGE, "ImagePolicy", &scene.namespace);
        policies
            .patch("web", &PatchParams::default(), &Patch::Merge(&spec))
            .await?;
        let stalled = |object: &DynamicObject| condition(object, "Stalled").is_some();
        let object = scene.wait("ImagePolicy", "web", stalled).await?;
        let (_, reason, message) = condition(&object, "Stalled").unwrap_or_default();
        assert_eq!(reason, "InvalidPolicy");
        ensure!(message.contains("needs spec.digestReflectionPolicy"), "{message}");
        Ok(())
    });
}
