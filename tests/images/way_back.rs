//! A way back that is respected: choices whose delivery failed, or that a person took back in Git, are held.

use anyhow::{Result, ensure};
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::Controller;
use testkit::controller::ControllerOptions;
use testkit::git::{Change, Repository};
use testkit::objects::{self, apply, condition, text};
use testkit::registry::Artifact;

use crate::world::{IMAGE, PATIENCE, Scene, play};

/// Objects with this label belong to the controllers that deliver.
const DELIVERED: &str = "images.example.com/delivered";

/// A Deployment whose Pods do what the tag of their image says.
fn deployment(scene: &Scene, tag: &str) -> String {
    let (image, namespace) = (scene.image("web"), &scene.namespace);
    let mark = |part: &str| format!("# {{\"$imagepolicy\": \"{namespace}:web{part}\"}}");
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: {namespace}\nspec:\n  progressDeadlineSeconds: 2\n  selector:\n    \
         matchLabels: {{app: web}}\n  template:\n    metadata:\n      labels:\n        app: web\n        \
         testkit.windlass.dev/outcome: {tag} {}\n    spec:\n      containers:\n        - name: web\n          image: {image}:{tag} {}\n",
        mark(":tag"),
        mark("")
    )
}

impl Scene {
    /// An automation that holds back what its annotations say; tags are ordered by their letters.
    async fn automate_holding(&self, annotations: Value) -> Result<()> {
        let by_letter = json!({"policy": {"alphabetical": {"order": "asc"}}});
        self.follow("web", by_letter).await?;
        self.automate("auto", json!({}), json!({})).await?;
        let automations = objects::api(&self.client, IMAGE, "ImageUpdateAutomation", &self.namespace);
        let patch = json!({"metadata": {"annotations": annotations}});
        automations
            .patch("auto", &PatchParams::default(), &Patch::Merge(&patch))
            .await?;
        Ok(())
    }

    async fn push_newer(&self, tag: &str) -> Result<()> {
        self.push("web", &[tag]).await?;
        self.poke("ImageRepository", "web").await.map(drop)
    }

    /// Waits until the policy holds a tag, and has chosen another one.
    async fn held(&self, tag: &str, words: &str) -> Result<()> {
        let held = |object: &DynamicObject| {
            condition(object, "TagsHeld").is_some_and(|(_, _, message)| {
                message.starts_with(&format!("{tag} is held since ")) && message.contains(words)
            })
        };
        self.wait("ImagePolicy", "web", held).await.map(drop)
    }

    /// Waits until the branch has a tag everywhere.
    async fn has(&self, repository: &Repository, tag: &str) -> Result<()> {
        let wanted = deployment(self, tag);
        let waiting = async {
            while repository.git(&["show", "main:app/web.yaml"])?.trim_end() != wanted.trim_end() {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            Ok(())
        };
        tokio::time::timeout(PATIENCE, waiting).await?
    }
}

#[test]
fn a_tag_whose_delivery_fails_is_taken_back_until_there_is_a_newer_one() {
    play("failed", async |scene| {
        let first = deployment(&scene, "a-good");
        let repository = scene.git(&[("app/web.yaml", &first)]).await?;
        let kubeconfig = scene.world.control_plane.kubeconfig_path();
        let own = || ControllerOptions {
            flags: vec![format!("--watch-label-selector={DELIVERED}=true")],
            ..ControllerOptions::default()
        };
        let source = Controller::start_source(kubeconfig, own()).await?;
        let _apply = Controller::start_apply(kubeconfig, &source, own()).await?;
        let git = objects::git_repository(&scene.namespace, "app", repository.url(), "main");
        let git = objects::with_spec(git, json!({"interval": "1s"}));
        let kustomization =
            objects::kustomization(&scene.namespace, "apps", ("GitRepository", "app"), "./app");
        for mut object in [git, kustomization] {
            object["metadata"]["labels"] = json!({DELIVERED: "true"});
            apply(&scene.client, &object).await?;
        }
        scene.push("web", &["a-good"]).await?;
        scene
            .automate_holding(json!({"windlass.dev/hold-failed": "infra, apps"}))
            .await?;
        let settled = |object: &DynamicObject| {
            let annotations = object.metadata.annotations.as_ref();
            annotations.is_some_and(|all| all.contains_key("windlass.dev/settled-tags"))
        };
        scene.wait("ImageUpdateAutomation", "auto", settled).await?;

        scene.push_newer("crash-loop").await?;
        scene.has(&repository, "crash-loop").await?;
        scene
            .held("crash-loop", "Kustomization apps failed at commit")
            .await?;
        scene.has(&repository, "a-good").await?;
        let kustomizations = objects::api(
            &scene.client,
            "kustomize.toolkit.fluxcd.io/v1",
            "Kustomization",
            &scene.namespace,
        );
        testkit::wait_for(&kustomizations, "apps", objects::is_ready, PATIENCE).await?;

        scene.push_newer("d-good").await?;
        scene.has(&repository, "d-good").await?;
        let log = repository.git(&["log", "--format=%an", "main"])?;
        assert_eq!(log.matches("Bot").count(), 3, "{log}");
        Ok(())
    });
}

#[test]
fn what_a_person_takes_back_in_git_stays_so() {
    play("reverted", async |scene| {
        let first = deployment(&scene, "a-good");
        let repository = scene.git(&[("app/web.yaml", &first)]).await?;
        scene.push("web", &["a-good"]).await?;
        scene
            .automate_holding(json!({"windlass.dev/hold-reverted": "true"}))
            .await?;
        scene.push_newer("b-good").await?;
        scene.has(&repository, "b-good").await?;
        let settled = |object: &DynamicObject| {
            let annotations = object.metadata.annotations.as_ref();
            let settled = annotations.and_then(|all| all.get("windlass.dev/settled-tags"));
            settled.is_some_and(|text| text.contains("b-good"))
        };
        scene.wait("ImageUpdateAutomation", "auto", settled).await?;

        let back = [Change::write("app/web.yaml", &*first)];
        let taken_back = repository.commit("main", "take it back", &back)?;
        scene.poke("ImageUpdateAutomation", "auto").await?;
        scene.held("b-good", "it was taken back in Git").await?;
        let chosen = |object: &DynamicObject| text(object, "/status/latestRef/tag") == "a-good";
        scene.wait("ImagePolicy", "web", chosen).await?;
        scene.poke("ImageUpdateAutomation", "auto").await?;
        let handled = |object: &DynamicObject| {
            objects::is_ready(object) && text(object, "/status/observedPolicies/web/tag") == "a-good"
        };
        scene.wait("ImageUpdateAutomation", "auto", handled).await?;
        ensure!(repository.resolve("main")? == taken_back, "it was set again");

        // A place that is new does not count as taken back.
        scene.push_newer("c-good").await?;
        scene.has(&repository, "c-good").await?;
        let second = deployment(&scene, "a-good").replace("name: web", "name: second");
        repository.commit("main", "more", &[Change::write("app/second.yaml", &*second)])?;
        scene.poke("ImageUpdateAutomation", "auto").await?;
        let waiting = async {
            let wanted = format!("{}:c-good", scene.image("web"));
            while !repository
                .git(&["show", "main:app/second.yaml"])?
                .contains(&wanted)
            {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            Ok::<_, anyhow::Error>(())
        };
        tokio::time::timeout(PATIENCE, waiting).await??;
        Ok(())
    });
}

#[test]
fn a_tag_that_moved_and_is_taken_back_is_held_at_its_digest() {
    play("moved", async |scene| {
        let first = scene.push("web", &["released"]).await?;
        let marker = format!("# {{\"$imagepolicy\": \"{}:web\"}}", scene.namespace);
        let file = |digest: &str| format!("image: {}:released@{digest} {marker}\n", scene.image("web"));
        let repository = scene.git(&[("app.yaml", &file(&first))]).await?;
        let spec =
            json!({"policy": {"alphabetical": {}}, "digestReflectionPolicy": "Always", "interval": "1h"});
        scene.follow("web", spec).await?;
        scene.automate("auto", json!({}), json!({})).await?;
        let automations = objects::api(&scene.client, IMAGE, "ImageUpdateAutomation", &scene.namespace);
        let patch = json!({"metadata": {"annotations": {"windlass.dev/hold-reverted": "true"}}});
        let patch = Patch::Merge(&patch);
        automations.patch("auto", &PatchParams::default(), &patch).await?;
        let settled = async |digest: &str| {
            let has = |object: &DynamicObject| {
                let annotations = object.metadata.annotations.as_ref();
                let settled = annotations.and_then(|all| all.get("windlass.dev/settled-tags"));
                settled.is_some_and(|text| text.contains(&format!("\"digest\":\"{digest}\"")))
            };
            scene.wait("ImageUpdateAutomation", "auto", has).await.map(drop)
        };
        let moves = async |content: &str| {
            let image = Artifact::image("linux", "amd64", content)?;
            let name = format!("{}/web", scene.namespace);
            let digest = scene.world.registry.push(&name, &["released"], &image).await?;
            scene.poke("ImagePolicy", "web").await?;
            Ok::<_, anyhow::Error>(digest)
        };
        let chosen = async |digest: &str| {
            let is_chosen = |object: &DynamicObject| text(object, "/status/latestRef/digest") == digest;
            scene.wait("ImagePolicy", "web", is_chosen).await
        };
        settled(&first).await?;
        let second = moves("second").await?;
        settled(&second).await?;
        let pushed = repository.git(&["show", "main:app.yaml"])?;
        ensure!(pushed.trim_end() == file(&second).trim_end(), "{pushed}");

        let back = [Change::write("app.yaml", file(&first))];
        let taken_back = repository.commit("main", "take it back", &back)?;
        scene.poke("ImageUpdateAutomation", "auto").await?;
        let policy = chosen(&first).await?;
        let (_, _, message) = condition(&policy, "TagsHeld").unwrap_or_default();
        ensure!(
            message.starts_with(&format!("released is held at {second} since ")),
            "{message}"
        );
        scene.poke("ImagePolicy", "web").await?;
        scene.poke("ImageUpdateAutomation", "auto").await?;
        settled(&first).await?;
        ensure!(repository.resolve("main")? == taken_back, "it was set again");

        // The next one goes on.
        let third = moves("third").await?;
        settled(&third).await?;
        let pushed = repository.git(&["show", "main:app.yaml"])?;
        ensure!(pushed.trim_end() == file(&third).trim_end(), "{pushed}");
        Ok(())
    });
}
