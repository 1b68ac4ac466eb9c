//! Changes that are taken back in Git, proposed at a real Gitea.

use anyhow::{Context as _, Result, ensure};
use kube::api::DynamicObject;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::objects::{self, apply, condition, text};
use testkit::wait_for;

use crate::proposals::Forge;
use crate::world::{DELIVERY, HELM, KUSTOMIZE, PATIENCE, Scene, app, play, release};

/// A request that takes back what changed between two commits.
fn request(scene: &Scene, name: &str, (from, to): (&str, &str), more: Value) -> Value {
    let mut revert = json!({"from": format!("main@sha1:{from}"), "to": format!("main@sha1:{to}")});
    if let (Some(revert), Value::Object(more)) = (revert.as_object_mut(), more) {
        revert.extend(more);
    }
    json!({
        "apiVersion": DELIVERY, "kind": "ChangeRequest", "metadata": {"name": name, "namespace": scene.namespace},
        "spec": {"kustomizationRef": {"name": "dev"}, "changePolicyRef": {"name": "review"}, "title": "Back", "interval": "1s",
                 "revert": revert},
    })
}

/// Waits for the condition of a request, and returns its message.
async fn said(scene: &Scene, name: &str, reason: &str) -> Result<String> {
    let api = objects::api(&scene.client, DELIVERY, "ChangeRequest", &scene.namespace);
    let is_so =
        |object: &DynamicObject| condition(object, "Ready").is_some_and(|(_, found, _)| found == reason);
    let found = wait_for(&api, name, is_so, PATIENCE).await?;
    let (_, _, message) = condition(&found, "Ready").unwrap_or_default();
    Ok(message.to_owned())
}

impl Scene {
    /// Waits until a Kustomization of the team has applied a commit.
    async fn tried(&self, name: &str, commit: &str) -> Result<()> {
        let api = objects::api(&self.client, KUSTOMIZE, "Kustomization", &self.namespace);
        let is_so = |object: &DynamicObject| {
            objects::is_ready(object) && text(object, "/status/lastAppliedRevision").ends_with(commit)
        };
        wait_for(&api, name, is_so, PATIENCE).await.map(drop)
    }
}

impl Forge {
    /// Commits files to a branch, as the person; None deletes one.
    async fn push(&self, branch: &str, files: &[(&str, Option<&str>)]) -> Result<String> {
        let written: Vec<_> = files
            .iter()
            .filter_map(|(path, text)| Some((*path, (*text)?)))
            .collect();
        if !written.is_empty() {
            self.gitea
                .commit(&self.bot, &self.repository, branch, &written)
                .await?;
        }
        for (path, _) in files.iter().filter(|(_, text)| text.is_none()) {
            let at = format!("repos/{}/contents/{path}", self.repository);
            let found = self
                .gitea
                .call(Method::GET, &format!("{at}?ref={branch}"), None)
                .await?;
            let body = json!({"sha": found["sha"], "branch": branch, "message": "by a person"});
            self.gitea
                .call_as(&self.bot, Method::DELETE, &at, Some(body))
                .await?;
        }
        self.newest(branch).await
    }

    /// The files that a pull request changes, with what it does to them.
    async fn changed(&self, number: u64) -> Result<Vec<(String, String)>> {
        let path = format!("repos/{}/pulls/{number}/files", self.repository);
        let files = self.gitea.call(Method::GET, &path, None).await?;
        let files = files.as_array().cloned().unwrap_or_default();
        let field = |file: &Value, field: &str| file[field].as_str().unwrap_or_default().to_owned();
        let mut files: Vec<_> = files
            .iter()
            .map(|file| (field(file, "filename"), field(file, "status")))
            .collect();
        files.sort();
        Ok(files)
    }
}

#[test]
fn what_changed_since_a_revision_is_taken_back_by_a_pull_request() {
    play("revert", async |scene| {
        let [dev] = scene.targets(["dev"]).await?;
        let team = &scene.namespace;
        let forge = Forge::open(&scene, &[("dev", app(&dev, team, "v1"))], json!({})).await?;
        let shows = async |tag: &str| {
            let at = "/spec/images/0/newTag";
            scene.has((KUSTOMIZE, "Kustomization"), &dev, at, tag).await
        };
        shows("v1").await?;
        let note = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: note, namespace: {dev}}}\n");
        let first = forge
            .push(
                "main",
                &[("dev/note.yaml", Some(&note)), ("elsewhere.txt", Some("1"))],
            )
            .await?;
        scene.tried("dev", &first).await?;
        let bad = app(&dev, team, "v2");
        let extra = note.replace("name: note", "name: extra");
        let changes = [
            ("dev/shop.yaml", Some(&*bad)),
            ("dev/extra.yaml", Some(&extra)),
            ("dev/note.yaml", None),
            ("dev/.hidden/tool.sh", Some("2")),
            ("dev/tool.sh", Some("2")),
            ("elsewhere.txt", Some("2")),
        ];
        let second = forge.push("main", &changes).await?;
        shows("v2").await?;
        scene.tried("dev", &second).await?;

        let back = [
            "rollback",
            "kustomization/dev",
            "--commit",
            "--to",
            &first[..12],
            "--reason",
            "carts are empty",
        ];
        let (ok, said) = scene.windlass(&back).await?;
        ensure!(ok && said.contains("pull request 1 (http"), "{said}");
        let expected = [
            ("dev/extra.yaml", "deleted"),
            ("dev/note.yaml", "added"),
            ("dev/shop.yaml", "changed"),
        ];
        let changed = forge.changed(1).await?;
        let changed: Vec<_> = changed
            .iter()
            .map(|(path, status)| (&**path, &**status))
            .collect();
        ensure!(changed == expected, "{changed:?}");
        let all = forge.requests(|all| all.len() == 1).await?;
        let body = all[0]["body"].as_str().unwrap_or_default();
        let words = format!("takes back what changed from `main@sha1:{first}` to `main@sha1:{second}`");
        ensure!(
            body.contains(&words) && body.contains("carts are empty"),
            "{body}"
        );
        ensure!(
            body.contains("- `dev/extra.yaml: deleted`\n- `dev/note.yaml: as it was`\n"),
            "{body}"
        );
        shows("v2").await?;

        // What others push meanwhile stays, and is not taken back with it.
        forge
            .push(
                "main",
                &[("dev/later.yaml", Some(&note.replace("name: note", "name: later")))],
            )
            .await?;
        forge.merge(1).await?;
        shows("v1").await?;
        let maps = objects::api(&scene.client, "v1", "ConfigMap", &dev);
        for there in ["note", "later"] {
            wait_for(&maps, there, |_| true, PATIENCE).await?;
        }
        Ok(())
    });
}

#[test]
fn the_file_of_a_release_is_taken_back() {
    play("revert-hr", async |scene| {
        let [dev] = scene.targets(["dev"]).await?;
        let team = &scene.namespace;
        let forge = Forge::open(&scene, &[("dev", release(&dev, team, "1.0.0", "v1"))], json!({})).await?;
        let first = forge.newest("main").await?;
        scene.tried("dev", &first).await?;
        let bad = release(&dev, team, "1.0.0", "v2");
        let other = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: other, namespace: {dev}}}\n");
        let second = forge
            .push(
                "main",
                &[("dev/shop.yaml", Some(&bad)), ("dev/other.yaml", Some(&other))],
            )
            .await?;
        scene.tried("dev", &second).await?;
        scene
            .has((HELM, "HelmRelease"), &dev, "/spec/values/image/tag", "v2")
            .await?;
        let policy = format!("{team}/review");
        let back = [
            "rollback",
            "helmrelease/shop",
            "--commit",
            "--reason",
            "slow",
            "--change-policy",
            &policy,
        ];
        let (ok, said) = scene.windlass_in(&dev, &back, &[]).await?;
        ensure!(ok && said.contains("pull request 1 (http"), "{said}");
        let changed = forge.changed(1).await?;
        ensure!(
            changed == [("dev/shop.yaml".to_owned(), "changed".to_owned())],
            "{changed:?}"
        );
        Ok(())
    });
}

#[test]
fn nothing_is_taken_back_that_is_not_history_or_was_changed_again() {
    play("no-revert", async |scene| {
        let [dev] = scene.targets(["dev"]).await?;
        let team = &scene.namespace;
        let forge = Forge::open(&scene, &[("dev", app(&dev, team, "v1"))], json!({})).await?;
        let first = forge.newest("main").await?;
        let second = forge
            .push(
                "main",
                &[
                    ("dev/shop.yaml", Some(&app(&dev, team, "v2"))),
                    ("dev/.hidden.yaml", Some("2")),
                ],
            )
            .await?;

        // A commit of someone's branch, which the server hands out as well, was never delivered.
        let path = format!("repos/{}/branches", forge.repository);
        let body = json!({"new_branch_name": "theirs", "old_branch_name": "main"});
        forge
            .gitea
            .call_as(&forge.bot, Method::POST, &path, Some(body))
            .await?;
        let theirs = forge
            .push("theirs", &[("dev/shop.yaml", Some("kind: Evil\n"))])
            .await?;
        let refused = [
            ("theirs", (&*second, &*theirs), json!({}), "is not on branch"),
            ("from-theirs", (&theirs, &first), json!({}), "is not on branch"),
            (
                "same",
                (&second, &second),
                json!({}),
                "no file that it is built from differs",
            ),
            (
                "hidden",
                (&second, &first),
                json!({"path": "dev/.hidden.yaml"}),
                "without hidden files",
            ),
            (
                "ci",
                (&second, &first),
                json!({"path": "dev/azure-pipelines.yml"}),
                "no file of a CI service",
            ),
            (
                "up",
                (&second, &first),
                json!({"path": "dev/../dev/shop.yaml"}),
                "without '..'",
            ),
        ];
        for (name, commits, more, _) in &refused {
            apply(&scene.client, &request(&scene, name, *commits, more.clone())).await?;
        }
        for (name, _, _, expected) in &refused {
            let message = said(&scene, name, "ChangeNotPossible").await?;
            ensure!(message.contains(expected), "{name}: {message}");
        }
        // Neither a revert nor files, or both, or what is no commit.
        let api = objects::api(&scene.client, DELIVERY, "ChangeRequest", team);
        let whole = request(&scene, "odd", (&second, &first), json!({}));
        let (mut none, mut both, mut tag) = (whole.clone(), whole.clone(), whole);
        none["spec"].as_object_mut().context("a spec")?.remove("revert");
        both["spec"]["files"] = json!([{"path": "dev/a.yaml", "content": "a: b"}]);
        tag["spec"]["revert"]["to"] = json!("main");
        for (object, expected) in [
            (none, "either files or revert"),
            (both, "either files or revert"),
            (tag, "spec.revert.to"),
        ] {
            let object: DynamicObject = serde_json::from_value(object)?;
            let error = api
                .create(&kube::api::PostParams::default(), &object)
                .await
                .unwrap_err();
            ensure!(error.to_string().contains(expected), "{error}");
        }
        ensure!(forge.requests(|_| true).await?.is_empty());

        // Someone has mended it in another way.
        forge.deploy("dev", app(&dev, team, "v3")).await?;
        apply(
            &scene.client,
            &request(&scene, "late", (&second, &first), json!({})),
        )
        .await?;
        let message = said(&scene, "late", "ChangeNotPossible").await?;
        ensure!(
            message == "changed again since, so revert by hand: dev/shop.yaml",
            "{message}"
        );
        // Someone has taken it back already.
        forge.deploy("dev", app(&dev, team, "v1")).await?;
        apply(
            &scene.client,
            &request(&scene, "done", (&second, &first), json!({})),
        )
        .await?;
        let message = said(&scene, "done", "Succeeded").await?;
        ensure!(message == "the branch 'main' has the change", "{message}");
        ensure!(forge.requests(|_| true).await?.is_empty());
        Ok(())
    });
}
