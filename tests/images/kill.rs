//! kill -9 at random moments between an image and its commit: no commit is lost, none is made twice.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::objects::{self, apply, text};
use testkit::{Controller, wait_for};

use crate::proposals::{Shop, marked};
use crate::world::{IMAGE, KILLED, PATIENCE, Scene, play};

/// Kills of each story, unless `ROUNDS` says another number (`make chaos-images`).
const ROUNDS: u32 = 12;

fn rounds() -> u32 {
    let given = std::env::var("ROUNDS").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(ROUNDS)
}

async fn apply_own(scene: &Scene, kind: &str, spec: Value) -> Result<()> {
    let object = json!({
        "apiVersion": IMAGE,
        "kind": kind,
        "metadata": {"name": "web", "namespace": scene.namespace, "labels": {KILLED: "true"}},
        "spec": spec,
    });
    apply(&scene.client, &object).await?;
    Ok(())
}

#[test]
fn a_killed_controller_neither_loses_nor_doubles_a_commit() {
    play("kill", async |scene| {
        let image = scene.image("web");
        let file = |tag: &str| {
            let marker = format!("{{\"$imagepolicy\": \"{}:web\"}}", scene.namespace);
            format!("image: {image}:{tag} # {marker}\n")
        };
        let repository = scene.git(&[("app.yaml", &file("0.0.0"))]).await?;
        scene.push("web", &["1.0.0"]).await?;
        apply_own(
            &scene,
            "ImageRepository",
            json!({"image": image, "interval": "1s", "insecure": true}),
        )
        .await?;
        let policy = json!({"imageRepositoryRef": {"name": "web"}, "policy": {"semver": {"range": "*"}}});
        apply_own(&scene, "ImagePolicy", policy).await?;
        let automation = json!({
            "sourceRef": {"kind": "GitRepository", "name": "app"},
            "interval": "1h",
            "git": {"commit": {"author": {"email": "bot@example.com"}}},
        });
        apply_own(&scene, "ImageUpdateAutomation", automation).await?;
        let options = ControllerOptions {
            flags: vec![format!("--watch-label-selector={KILLED}=true")],
            ..ControllerOptions::default()
        };
        let kubeconfig = scene.world.control_plane.kubeconfig_path();
        let mut controller = Controller::start_image(kubeconfig, options).await?;
        let automations = objects::api(&scene.client, IMAGE, "ImageUpdateAutomation", &scene.namespace);
        let random = RandomState::new();
        let rounds = rounds();
        for round in 1..=rounds {
            let tag = format!("1.0.{round}");
            scene.push("web", &[&tag]).await?;
            // Between the scan, the choice, the commit, the push and the status.
            let pause = Duration::from_millis(random.hash_one(round) % 1500);
            tokio::time::sleep(pause).await;
            controller.kill();
            controller.restart().await?;
            let head = || repository.resolve("main").unwrap_or_default();
            let is_done = |object: &_| {
                let observed = text(object, "/status/observedPolicies/web/tag") == tag;
                observed && text(object, "/status/observedSourceRevision").ends_with(&head())
            };
            wait_for(&automations, "web", is_done, PATIENCE).await?;
            let found = repository.git(&["show", "main:app.yaml"])?;
            assert_eq!(
                found.trim_end(),
                file(&tag).trim_end(),
                "round {round}, killed after {pause:?}"
            );
        }
        // The first commit, at most one for 1.0.0, and one for each round.
        let commits = repository
            .git(&["rev-list", "--count", "main"])?
            .trim()
            .parse::<u32>()?;
        ensure!(
            (rounds + 1..=rounds + 2).contains(&commits),
            "{commits} commits for {rounds} tags"
        );
        repository.git(&["fsck", "--strict"])?;
        Ok(())
    });
}

#[test]
fn a_killed_controller_neither_loses_nor_doubles_a_pull_request() {
    play("kill-proposal", async |scene| {
        let shop = Shop::open(&scene, &[("app.yaml", &marked(&scene, "web", "0.0.0"))]).await?;
        scene.push("web", &["1.0.0"]).await?;
        let repository = json!({"image": scene.image("web"), "interval": "1s", "insecure": true});
        apply_own(&scene, "ImageRepository", repository).await?;
        let policy = json!({"imageRepositoryRef": {"name": "web"}, "policy": {"semver": {"range": "*"}}});
        apply_own(&scene, "ImagePolicy", policy).await?;
        let request = json!({"labels": ["images"], "reviewers": [shop.ana.name]});
        shop.review_as(&scene, request, json!({}), json!({"labels": {KILLED: "true"}}))
            .await?;
        let options = ControllerOptions {
            flags: vec![format!("--watch-label-selector={KILLED}=true")],
            ..ControllerOptions::default()
        };
        let kubeconfig = scene.world.control_plane.kubeconfig_path();
        let mut controller = Controller::start_image(kubeconfig, options).await?;
        let automations = objects::api(&scene.client, IMAGE, "ImageUpdateAutomation", &scene.namespace);
        let random = RandomState::new();
        let rounds = rounds();
        for round in 1..=rounds {
            let tag = format!("1.0.{round}");
            scene.push("web", &[&tag]).await?;
            // Between the scan, the push, the pull request, its labels and reviewers, and the status.
            let pause = Duration::from_millis(500 + random.hash_one(round) % 2000);
            tokio::time::sleep(pause).await;
            controller.kill();
            controller.restart().await?;
            let is_done = |object: &_| text(object, "/status/observedPolicies/web/tag") == tag;
            wait_for(&automations, "auto", is_done, PATIENCE).await?;
            // The forge may carry out what the killed process had asked for after the next one looked: then one is closed again.
            let single = async {
                loop {
                    let mut open = shop.requests().await?;
                    open.retain(|request| request["state"] == "open");
                    match open.as_slice() {
                        [one] => return Ok::<_, anyhow::Error>(one.clone()),
                        _ => tokio::time::sleep(Duration::from_millis(50)).await,
                    }
                }
            };
            let single = tokio::time::timeout(PATIENCE, single).await;
            let request = single.with_context(|| {
                format!("round {round}, killed after {pause:?}: not one pull request is open")
            })??;
            let number = request["number"].as_u64().unwrap_or_default();
            assert_eq!(
                request["title"],
                format!("Update to {}:{tag}", scene.image("web"))
            );
            assert_eq!(request["labels"][0]["name"], "images");
            assert_eq!(request["requested_reviewers"][0]["login"], shop.ana.name);
            let branch = request["head"]["ref"].as_str().unwrap_or_default();
            // Once, under load, the file of before was read here, for a cause that is not known. No run comes that would mend it.
            let wanted = marked(&scene, "web", &tag);
            let shown = async {
                while shop.gitea.file(&shop.repository, branch, "app.yaml").await? != wanted {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Ok::<_, anyhow::Error>(())
            };
            tokio::time::timeout(PATIENCE, shown).await.with_context(|| {
                format!("round {round}, killed after {pause:?}: the branch lacks {tag}")
            })??;
            let commits = shop.get(&format!("pulls/{number}/commits")).await?;
            ensure!(
                commits.as_array().map(Vec::len) == Some(1),
                "round {round}: {commits}"
            );
        }
        Ok(())
    });
}
