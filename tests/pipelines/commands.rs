//! Our command on pipelines.

use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testkit::controller::program;
use testkit::git::Change;

use crate::world::{KUSTOMIZE, Scene, app, play, release_of, waits};

impl Scene {
    /// Runs our command in the namespace of the story. Returns what it says, and whether it succeeded.
    pub async fn windlass(&self, arguments: &[&str]) -> Result<(bool, String)> {
        self.windlass_in(&self.namespace, arguments, &[]).await
    }

    /// The same in another namespace, with variables.
    pub async fn windlass_in(
        &self,
        namespace: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<(bool, String)> {
        let home = testkit::scratch::directory("home")?;
        let mut command = Command::new(program("windlass")?);
        command
            .args(arguments)
            .arg("--kubeconfig")
            .arg(self.world.control_plane.kubeconfig_path())
            .args(["--namespace", namespace])
            .env("HOME", home.path())
            .envs(variables.iter().copied())
            .stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        Ok((output.status.success(), text))
    }
}

#[test]
fn releases_are_held_released_and_approved_in_the_name_of_who_does_it() {
    play("commands", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        let repository = scene
            .fleet(&[
                ("dev", app(&dev, team, "v1")),
                ("production", app(&production, team, "v1")),
            ])
            .await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [{"namespace": production}], "approvals": {"required": 1}},
        ]);
        scene.pipeline("Kustomization", environments).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        let (ok, said) = scene
            .windlass(&["approve", "pipeline/shop", "--env", "production"])
            .await?;
        ensure!(
            !ok && said.contains("no release is newer than that of production"),
            "{said}"
        );
        let next = Change::write("dev/shop.yaml", app(&dev, team, "v2"));
        repository.commit("main", "by a person", &[next])?;
        scene
            .wait(|pipeline| waits(pipeline, 1) == ["release 2: approval 0 of 1"])
            .await?;

        let hold = [
            "hold",
            "pipeline/shop",
            "--env",
            "production",
            "--for",
            "12h",
            "--reason",
            "incident 7",
        ];
        let (ok, said) = scene.windlass(&hold).await?;
        ensure!(
            ok && said
                .trim_end()
                .ends_with("every release in production is held back"),
            "{said}"
        );
        let pipeline = scene
            .wait(|pipeline| {
                waits(pipeline, 1)
                    .iter()
                    .any(|wait| wait.contains(": incident 7, until "))
            })
            .await?;
        let held = waits(&pipeline, 1).join(";");
        let by = held
            .strip_prefix("release 2 is held by ")
            .and_then(|rest| rest.split(':').next());
        let by = by.unwrap_or_default().to_owned();
        ensure!(!by.is_empty() && by != "someone", "{held}");

        let approve = ["approve", "pipeline/shop", "--env", "production"];
        let (ok, said) = scene.windlass(&approve).await?;
        ensure!(
            ok && said
                .trim_end()
                .ends_with(&format!("release 2 is approved for production by {by}")),
            "{said}"
        );
        let (ok, said) = scene.windlass(&approve).await?;
        ensure!(!ok && said.contains("has approved release 2 already"), "{said}");
        let (ok, said) = scene
            .windlass(&["approve", "pipeline/shop", "--env", "nowhere"])
            .await?;
        ensure!(
            !ok && said.contains("there is no environment 'nowhere': it has dev, production"),
            "{said}"
        );
        let file = repository.git(&["show", "main:production/shop.yaml"])?;
        ensure!(
            file.contains("v1 # of the day"),
            "the hold goes before the approval: {file}"
        );

        let (ok, said) = scene
            .windlass(&["release", "pipeline/shop", "--env", "dev"])
            .await?;
        ensure!(!ok && said.contains("nothing such is held back"), "{said}");
        let (ok, said) = scene
            .windlass(&["release", "pipeline/shop", "--env", "production"])
            .await?;
        ensure!(ok, "{said}");
        scene
            .has(
                (KUSTOMIZE, "Kustomization"),
                &production,
                "/spec/images/0/newTag",
                "v2",
            )
            .await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(2)).await?;
        let (ok, said) = scene.windlass(&["get", "pipelines"]).await?;
        ensure!(
            ok && said.contains("dev: release 2; production: release 2"),
            "{said}"
        );
        let (ok, said) = scene.windlass(&["reconcile", "pipeline/shop"]).await?;
        ensure!(ok, "{said}");

        // Nothing is promoted while it is suspended.
        let (ok, said) = scene.windlass(&["suspend", "pipeline/shop"]).await?;
        ensure!(ok, "{said}");
        let next = Change::write("dev/shop.yaml", app(&dev, team, "v3"));
        repository.commit("main", "by a person", &[next])?;
        let tag = "/spec/images/0/newTag";
        scene.has((KUSTOMIZE, "Kustomization"), &dev, tag, "v3").await?;
        let pipeline = scene.wait(|_| true).await?;
        ensure!(
            release_of(&pipeline, 0) == Some(2),
            "it was looked at while it was suspended"
        );
        let (ok, said) = scene.windlass(&["resume", "pipeline/shop"]).await?;
        ensure!(ok, "{said}");
        scene
            .wait(|pipeline| waits(pipeline, 1) == ["release 3: approval 0 of 1"])
            .await?;
        Ok(())
    });
}

#[test]
fn a_dry_run_prints_the_files_that_would_change() {
    play("dry-run", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        let files = [
            ("dev", app(&dev, team, "v1")),
            ("production", app(&production, team, "v1")),
        ];
        let repository = scene.fleet(&files).await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [{"namespace": production}], "approvals": {"required": 1}},
        ]);
        scene.pipeline("Kustomization", environments).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        let dry_run = ["promote", "pipeline/shop", "--env", "production", "--dry-run"];
        let (ok, said) = scene.windlass(&dry_run).await?;
        ensure!(
            !ok && said.contains("no release is newer than that of production"),
            "{said}"
        );
        let next = Change::write("dev/shop.yaml", app(&dev, team, "v2"));
        let commit = repository.commit("main", "by a person", &[next])?;
        let before = scene
            .wait(|pipeline| waits(pipeline, 1) == ["release 2: approval 0 of 1"])
            .await?;
        let (ok, said) = scene.windlass(&dry_run).await?;
        let expected = format!(
            "release 2 in production\n\n{production}: with GitRepository/{team}/fleet at main@sha1:{}\n\
             --- production/shop.yaml\n+++ production/shop.yaml\n@@ -12,4 +12,4 @@\n   sourceRef: {{kind: GitRepository, name: \
             fleet, namespace: {team}}}\n   images:\n     - name: h.io/web\n-      newTag: v1 # of the day\n+      newTag: v2 # of \
             the day\n",
            &commit[..8]
        );
        ensure!(ok && said == expected, "{said}\n{expected}");
        let after = scene.wait(|_| true).await?;
        ensure!(before.metadata.resource_version == after.metadata.resource_version);
        ensure!(repository.git(&["rev-parse", "main"])?.trim() == commit);

        // Back from what it has: the same, the other way round.
        let (ok, said) = scene
            .windlass(&["approve", "pipeline/shop", "--env", "production"])
            .await?;
        ensure!(ok, "{said}");
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(2)).await?;
        let (ok, said) = scene
            .windlass(&["rollback", "pipeline/shop", "--env", "production", "--dry-run"])
            .await?;
        let is_back = said.starts_with("release 1 in production\n")
            && said.contains("-      newTag: v2 # of the day\n+      newTag: v1 # of the day\n");
        ensure!(ok && is_back, "{said}");
        let (ok, said) = scene
            .windlass(&["rollback", "pipeline/shop", "--env", "production"])
            .await?;
        ensure!(
            !ok && said.contains("--reason"),
            "a rollback needs a reason: {said}"
        );

        // The history lists the promotion.
        let (ok, said) = scene
            .windlass(&["history", "pipeline/shop", "--output", "json"])
            .await?;
        let rows: Value = serde_json::from_str(&said)?;
        let row = &rows[0];
        ensure!(
            ok && row["revision"] == "production: release 2" && row["outcome"] == "Succeeded",
            "{said}"
        );
        ensure!(
            row["message"] == *production && row["changes"] == "Kustomization/shop: image h.io/web v2",
            "{said}"
        );
        Ok(())
    });
}
