//! Flux's own command and ours on the kinds of images.

use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::controller::program;
use testkit::objects::{apply, condition, is_ready, text};
use testkit::tools::Package;

use crate::world::{Scene, play};

impl Scene {
    /// Runs Flux's command in the namespace of the story; what it says.
    async fn flux(&self, arguments: &[&str]) -> Result<String> {
        tokio::task::spawn_blocking(|| Package::Flux.ensure(&mut |line| eprintln!("{line}"))).await??;
        self.said(
            Command::new(Package::Flux.path()?),
            &[&["--timeout=1m"], arguments].concat(),
        )
        .await
    }

    /// Runs our command in the namespace of the story; what it says.
    pub async fn windlass(&self, arguments: &[&str]) -> Result<String> {
        self.said(Command::new(program("windlass")?), arguments).await
    }

    /// Runs our command without a cluster; what it says.
    pub async fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(program("windlass")?);
        command.args(arguments);
        said(command).await
    }

    async fn said(&self, mut command: Command, arguments: &[&str]) -> Result<String> {
        command
            .args(arguments)
            .arg("--kubeconfig")
            .arg(self.world.control_plane.kubeconfig_path())
            .args(["--namespace", &self.namespace]);
        said(command).await
    }
}

async fn said(mut command: Command) -> Result<String> {
    let home = testkit::scratch::directory("home")?;
    command.env("HOME", home.path()).stdin(Stdio::null());
    let shown = format!("{command:?}");
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(output.status.success(), "{shown} failed:\n{text}");
    Ok(text)
}

#[test]
fn fluxs_command_creates_reconciles_and_exports_the_kinds_of_images() {
    play("flux-images", async |scene| {
        let image = scene.image("web");
        let marker = format!("{{\"$imagepolicy\": \"{}:web\"}}", scene.namespace);
        let file = format!("image: {image}:0.0.0 # {marker}\n");
        scene.git(&[("app.yaml", &file)]).await?;
        scene.push("web", &["1.0.0", "2.0.0"]).await?;
        let from = format!("--image={image}");
        let said = scene
            .flux(&["create", "image", "repository", "web", &from, "--interval=1h"])
            .await?;
        ensure!(
            said.contains("ImageRepository reconciliation completed"),
            "{said}"
        );
        let policy = ["create", "image", "policy", "web"];
        let said = scene
            .flux(&[&policy[..], &["--image-ref=web", "--select-semver=1.x"]].concat())
            .await?;
        ensure!(said.contains("ImagePolicy reconciliation completed"), "{said}");
        let update = ["create", "image", "update", "web", "--git-repo-ref=app"];
        let more = [
            "--checkout-branch=main",
            "--author-email=bot@example.com",
            "--author-name=Bot",
            "--interval=1h",
        ];
        let said = scene.flux(&[&update[..], &more].concat()).await?;
        ensure!(
            said.contains("ImageUpdateAutomation reconciliation completed"),
            "{said}"
        );
        let commit = scene.pushed("web", "").await?;

        let seen = scene.flux(&["get", "images", "all"]).await?;
        for words in [
            "imagerepository/web",
            "imagepolicy/web",
            "imageupdateautomation/web",
            "1.0.0",
        ] {
            ensure!(seen.contains(words), "{words:?} is not in\n{seen}");
        }
        for (kind, answer) in [
            ("repository", "scan fetched 2 tags"),
            ("policy", "selected ref"),
            ("update", "repository up-to-date"),
        ] {
            scene.flux(&["suspend", "image", kind, "web"]).await?;
            scene.flux(&["resume", "image", kind, "web"]).await?;
            let said = scene.flux(&["reconcile", "image", kind, "web"]).await?;
            ensure!(said.contains(answer), "{kind}: {said}");
            let exported = scene.flux(&["export", "image", kind, "web"]).await?;
            ensure!(
                exported.contains("apiVersion: image.toolkit.fluxcd.io/v1"),
                "{exported}"
            );
        }
        let automation = scene.wait("ImageUpdateAutomation", "web", is_ready).await?;
        ensure!(text(&automation, "/status/lastPushCommit") == commit);
        Ok(())
    });
}

#[test]
fn our_command_says_which_tag_was_chosen_and_why_and_who_wrote_it() {
    play("cli-images", async |scene| {
        let image = scene.image("web");
        let marker = format!("{{\"$imagepolicy\": \"{}:web\"}}", scene.namespace);
        let file = format!("image: {image}:0.0.0 # {marker}\n");
        scene.git(&[("app.yaml", &file)]).await?;
        scene.push("web", &["1.0.0", "2.0.0", "latest"]).await?;
        scene
            .follow("web", json!({"policy": {"semver": {"range": "1.x"}}}))
            .await?;
        scene.automate("all", json!({}), json!({})).await?;
        let commit = scene.pushed("all", "").await?;

        let seen = scene.windlass(&["get", "images"]).await?;
        for words in ["imagerepository/web", "imagepolicy/web", "1.0.0", &commit[..8]] {
            ensure!(seen.contains(words), "{words:?} is not in\n{seen}");
        }
        let seen = scene.windlass(&["why", "image", "policy", "web"]).await?;
        for words in [
            "1.0.0",
            "chosen",
            "outside of the range",
            "not a semantic version",
        ] {
            ensure!(seen.contains(words), "{words:?} is not in\n{seen}");
        }
        let seen = scene.windlass(&["tree", "imagerepository/web"]).await?;
        let lines: Vec<_> = seen.lines().collect();
        for (line, object) in lines.iter().zip([
            "ImageRepository",
            "ImagePolicy",
            "ImageUpdateAutomation",
            "GitRepository",
        ]) {
            ensure!(line.contains(object), "{object} is not in its place in\n{seen}");
        }
        ensure!(lines.len() >= 4, "{seen}");
        let said = scene.windlass(&["reconcile", "imagerepository/web"]).await?;
        ensure!(said.contains("web"), "{said}");

        // As if a Kustomization had applied it from the automation's repository.
        let delivered = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "app", "namespace": scene.namespace},
            "spec": {"interval": "1h", "prune": true, "path": "./", "sourceRef": {"kind": "GitRepository", "name": "app"}}});
        apply(&scene.client, &delivered).await?;
        let labels = json!({"kustomize.toolkit.fluxcd.io/name": "app",
            "kustomize.toolkit.fluxcd.io/namespace": scene.namespace});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": scene.namespace, "labels": labels},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": format!("{image}:1.0.0")}]}}}});
        apply(&scene.client, &deployment).await?;
        let seen = scene.windlass(&["trace", "deployment/web"]).await?;
        let expected = format!(
            "image: {image}:1.0.0 chosen by ImagePolicy/{0}/web, written by ImageUpdateAutomation/{0}/all",
            scene.namespace
        );
        ensure!(
            seen.contains(&expected) && seen.contains(&commit[..8]),
            "{expected:?} is not in\n{seen}"
        );
        Ok(())
    });
}

#[test]
fn a_held_tag_is_passed_over_until_it_is_released() {
    play("held", async |scene| {
        scene.push("web", &["1.0.0", "1.1.0"]).await?;
        scene
            .follow("web", json!({"policy": {"semver": {"range": "*"}}}))
            .await?;
        let chosen = async |tag: &'static str| {
            scene
                .wait("ImagePolicy", "web", move |object| {
                    text(object, "/status/latestRef/tag") == tag
                })
                .await
        };
        chosen("1.1.0").await?;
        let said = scene
            .windlass(&["hold", "imagepolicy/web", "--reason", "errors after the delivery"])
            .await?;
        ensure!(said.trim_end().ends_with(": 1.1.0 is held back"), "{said}");
        let policy = chosen("1.0.0").await?;
        let (status, _, message) = condition(&policy, "TagsHeld").unwrap_or_default();
        ensure!(
            status == "True"
                && message.starts_with("1.1.0 is held since 2")
                && message.ends_with(": errors after the delivery"),
            "{message}"
        );
        let why = scene.windlass(&["why", "imagepolicy/web"]).await?;
        ensure!(
            why.contains("held since 2") && why.contains("errors after the delivery"),
            "{why}"
        );
        // A newer one is no longer affected.
        scene.push("web", &["1.2.0"]).await?;
        scene.poke("ImageRepository", "web").await?;
        chosen("1.2.0").await?;
        scene
            .windlass(&["hold", "imagepolicy", "web", "--reason", "slow"])
            .await?;
        chosen("1.0.0").await?;
        let said = scene
            .windlass(&["release", "imagepolicy/web", "--tag", "1.2.0"])
            .await?;
        ensure!(said.trim_end().ends_with(": 1.2.0 released"), "{said}");
        chosen("1.2.0").await?;
        scene.windlass(&["release", "imagepolicy/web"]).await?;
        let policy = scene
            .wait("ImagePolicy", "web", |object| {
                condition(object, "TagsHeld").is_none()
            })
            .await?;
        assert_eq!(text(&policy, "/status/latestRef/tag"), "1.2.0");

        // What no one can read holds nothing back silently: the choice stays, and the policy says so.
        let broken = json!({
            "apiVersion": crate::world::IMAGE,
            "kind": "ImagePolicy",
            "metadata": {"name": "web", "namespace": scene.namespace, "annotations": {"windlass.dev/held-tags": "1.2.0"}},
            "spec": policy.data["spec"],
        });
        apply(&scene.client, &broken).await?;
        let refused = |object: &_| {
            condition(object, "Ready").is_some_and(|(status, _, message)| {
                status == "False" && message.contains("is no list of held tags")
            })
        };
        let policy = scene.wait("ImagePolicy", "web", refused).await?;
        assert_eq!(text(&policy, "/status/latestRef/tag"), "1.2.0");
        Ok(())
    });
}
