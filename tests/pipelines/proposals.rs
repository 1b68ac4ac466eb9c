//! Releases that go in by pull request, at a real Gitea.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::DynamicObject;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Gitea;
use testkit::gitea::User;
use testkit::objects::{apply, field};
use tokio::sync::OnceCell;

use crate::world::{DELIVERY, KUSTOMIZE, PATIENCE, Scene, app, files_of, play, release_of, waits};

/// The team's repository at the forge, with a robot that writes to it and a person.
pub struct Forge {
    pub gitea: &'static Gitea,
    pub bot: User,
    ana: User,
    pub repository: String,
}

impl Forge {
    /// The repository, what delivers it, and a ChangePolicy `review`.
    pub async fn open(scene: &Scene, files: &[(&str, String)], request: Value) -> Result<Self> {
        static GITEA: OnceCell<Gitea> = OnceCell::const_new();
        let gitea = GITEA.get_or_try_init(Gitea::start).await?;
        let bot = gitea.add_user(&format!("{}-bot", scene.namespace)).await?;
        let ana = gitea.add_user(&format!("{}-ana", scene.namespace)).await?;
        let all = files_of(files);
        let all: Vec<_> = all
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        gitea.add_repository(&bot, "fleet", &all).await?;
        let repository = format!("{}/fleet", bot.name);
        let at = format!("repos/{repository}/collaborators/{}", ana.name);
        let right = json!({"permission": "write"});
        gitea.call_as(&bot, Method::PUT, &at, Some(right)).await?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "fleet", "namespace": scene.namespace},
            "stringData": {"username": bot.name, "password": bot.token},
        });
        apply(&scene.client, &secret).await?;
        let mut fields = json!({"forge": {"provider": "gitea", "secretRef": {"name": "fleet"}}});
        if let (Some(fields), Value::Object(more)) = (fields.as_object_mut(), request) {
            fields.extend(more);
        }
        let policy = json!({
            "apiVersion": DELIVERY, "kind": "ChangePolicy", "metadata": {"name": "review", "namespace": scene.namespace},
            "spec": {"type": "PullRequest", "pullRequest": fields},
        });
        apply(&scene.client, &policy).await?;
        let url = gitea.repository_url(&bot.name, "fleet");
        let url = url.strip_suffix(".git").unwrap_or(&url);
        let secret = json!({"secretRef": {"name": "fleet"}});
        scene.deliver(&format!("{url}.git"), secret, files).await?;
        Ok(Self {
            gitea,
            bot,
            ana,
            repository,
        })
    }

    /// Changes a file, as the person.
    pub async fn deploy(&self, folder: &str, text: String) -> Result<()> {
        let path = format!("{folder}/shop.yaml");
        let files = [(path.as_str(), text.as_str())];
        let committing = self.gitea.commit(&self.ana, &self.repository, "main", &files);
        committing.await.map(drop)
    }

    /// All pull requests, the oldest first, when they look so.
    pub async fn requests(&self, predicate: impl Fn(&[Value]) -> bool) -> Result<Vec<Value>> {
        let path = format!("repos/{}/pulls?state=all&sort=oldest", self.repository);
        let looking = async {
            loop {
                let all = self.gitea.call(Method::GET, &path, None).await?;
                let all = all.as_array().cloned().unwrap_or_default();
                if predicate(&all) {
                    return Ok::<_, anyhow::Error>(all);
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking)
            .await
            .context("pull requests do not look so")?
    }

    /// The newest commit of a branch.
    pub async fn newest(&self, branch: &str) -> Result<String> {
        let path = format!("repos/{}/branches/{branch}", self.repository);
        let found = self.gitea.call(Method::GET, &path, None).await?;
        let commit = found["commit"]["id"].as_str();
        commit.map(str::to_owned).context("the branch has no commit")
    }

    /// Gives a commit a status, as CI does.
    pub async fn say(&self, commit: &str, context: &str, state: &str) -> Result<()> {
        let path = format!("repos/{}/statuses/{commit}", self.repository);
        let status = json!({"context": context, "state": state});
        self.gitea
            .call_as(&self.ana, Method::POST, &path, Some(status))
            .await
            .map(drop)
    }

    pub async fn merge(&self, number: u64) -> Result<()> {
        let path = format!("repos/{}/pulls/{number}/merge", self.repository);
        // Gitea checks for conflicts in the background, and says 405 until it has.
        let merging = async {
            let body = || Some(json!({"Do": "merge"}));
            while self
                .gitea
                .call_as(&self.ana, Method::POST, &path, body())
                .await
                .is_err()
            {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, merging).await.is_err() {
            let path = format!("repos/{}/pulls/{number}", self.repository);
            anyhow::bail!(
                "Gitea does not merge: {}",
                self.gitea.call(Method::GET, &path, None).await?
            );
        }
        Ok(())
    }

    /// Gitea hears in the background that the branch of a merged pull request was deleted, closes what is open for it by then, and
    /// tells of the deletion.
    async fn has_forgotten_branches(&self, count: usize) -> Result<()> {
        let path = format!("repos/{}/activities/feeds?limit=50", self.repository);
        let forgetting = async {
            loop {
                let all = self.gitea.call(Method::GET, &path, None).await?;
                let all = all.as_array().map(Vec::as_slice).unwrap_or_default();
                let deleted = all.iter().filter(|one| one["op_type"] == "delete_branch");
                if deleted.count() >= count {
                    return Ok::<_, anyhow::Error>(());
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, forgetting)
            .await
            .context("Gitea does not tell of deleted branches")?
    }

    /// An Alert that gives commits a status.
    async fn report(&self, scene: &Scene) -> Result<()> {
        let version = "notification.toolkit.fluxcd.io/v1beta3";
        let metadata = json!({"name": "status", "namespace": scene.namespace});
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"token": self.bot.token},
        });
        let address = format!("{}/{}", self.gitea.url(), self.repository);
        let provider = json!({
            "apiVersion": version, "kind": "Provider", "metadata": metadata,
            "spec": {"type": "gitea", "address": address, "secretRef": {"name": "status"}},
        });
        let alert = json!({
            "apiVersion": version, "kind": "Alert", "metadata": metadata,
            "spec": {"providerRef": {"name": "status"}, "eventSources": [{"kind": "Pipeline", "name": "shop"}]},
        });
        for object in [&secret, &provider, &alert] {
            apply(&scene.client, object).await?;
        }
        Ok(())
    }

    /// Waits until the newest commit has a status that is good and says so.
    async fn has_status(&self, said: &str) -> Result<()> {
        let path = format!("repos/{}/commits/main/status", self.repository);
        let looking = async {
            loop {
                let status = self.gitea.call(Method::GET, &path, None).await?;
                let text = status["statuses"][0]["description"].as_str().unwrap_or_default();
                if status["state"] == "success" && text.contains(said) {
                    return Ok::<_, anyhow::Error>(());
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, looking).await {
            Ok(found) => found,
            Err(_) => {
                let status = self.gitea.call(Method::GET, &path, None).await?;
                anyhow::bail!("{} has: {}", status["sha"], status["statuses"])
            }
        }
    }

    pub async fn file(&self, folder: &str) -> Result<String> {
        self.gitea
            .file(&self.repository, "main", &format!("{folder}/shop.yaml"))
            .await
    }
}

fn title(scene: &Scene, release: u64) -> String {
    format!(
        "Promote release {release} of {}/shop to production",
        scene.namespace
    )
}

#[test]
fn a_release_is_proposed_kept_up_to_date_and_merged_by_a_person() {
    play("propose", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        let files = [
            ("dev", app(&dev, team, "v1")),
            ("production", app(&production, team, "v1")),
        ];
        let forge = Forge::open(&scene, &files, json!({"labels": [], "reviewers": []})).await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [{"namespace": production}], "changePolicyRef": {"name": "review"},
                "rollout": {"timeout": "1s"}},
        ]);
        scene.pipeline("Kustomization", environments).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        forge.deploy("dev", app(&dev, team, "v2")).await?;
        let open = forge.requests(|all| all.len() == 1).await?;
        ensure!(open[0]["title"] == title(&scene, 2), "{}", open[0]["title"]);
        let body = open[0]["body"].as_str().unwrap_or_default();
        let line = "- `production/shop.yaml: Kustomization/shop: v1 -> v2`";
        ensure!(body.contains(line), "{body}");
        let pipeline = scene
            .wait(|pipeline| waits(pipeline, 1).iter().any(|wait| wait.ends_with("is open")))
            .await?;
        let said = waits(&pipeline, 1).join(";");
        ensure!(
            said.starts_with(&format!("{production}: pull request 1 (http")),
            "{said}"
        );
        ensure!(forge.file("production").await?.contains("v1 # of the day"));

        // A newer one while it waits, longer than targets may take: there is one pull request, for the newer.
        forge.deploy("dev", app(&dev, team, "v3")).await?;
        let wanted = title(&scene, 3);
        let open = forge.requests(|all| all[0]["title"] == wanted.as_str()).await?;
        ensure!(open.len() == 1 && open[0]["state"] == "open");
        forge.merge(1).await?;
        scene
            .has(
                (KUSTOMIZE, "Kustomization"),
                &production,
                "/spec/images/0/newTag",
                "v3",
            )
            .await?;
        let pipeline = scene.wait(|pipeline| release_of(pipeline, 1) == Some(3)).await?;
        let target = "/status/environments/1/targets/0";
        ensure!(field(&pipeline, &format!("{target}/newest")) == Some(&json!(3)));
        scene
            .wait(|pipeline| field(pipeline, &format!("{target}/change")).is_none())
            .await?;
        let all = forge.requests(|all| !all.is_empty()).await?;
        ensure!(all.len() == 1, "{} pull requests", all.len());
        drop(forge.bot);
        Ok(())
    });
}

#[test]
fn a_pull_request_that_a_person_closes_is_not_opened_again() {
    play("decline", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        let files = [
            ("dev", app(&dev, team, "v1")),
            ("production", app(&production, team, "v1")),
        ];
        let forge = Forge::open(&scene, &files, json!({})).await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [{"namespace": production}], "changePolicyRef": {"name": "review"}},
        ]);
        scene.pipeline("Kustomization", environments).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        forge.deploy("dev", app(&dev, team, "v2")).await?;
        forge.requests(|all| all.len() == 1).await?;
        let path = format!("repos/{}/pulls/1", forge.repository);
        let closed = json!({"state": "closed"});
        forge
            .gitea
            .call_as(&forge.ana, Method::PATCH, &path, Some(closed))
            .await?;
        scene
            .wait(|pipeline| {
                let waits = waits(pipeline, 1);
                waits.len() == 1
                    && waits[0].contains("not proposed again: pull request 1")
                    && waits[0].ends_with("was closed")
            })
            .await?;
        forge.deploy("dev", app(&dev, team, "v3")).await?;
        let all = forge.requests(|all| all.len() == 2).await?;
        ensure!(all[1]["title"] == title(&scene, 3), "{}", all[1]["title"]);
        Ok(())
    });
}

#[test]
fn a_pull_request_is_merged_after_its_checks() {
    play("checks", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        let files = [
            ("dev", app(&dev, team, "v1")),
            ("production", app(&production, team, "v1")),
        ];
        let merge = json!({"merge": {"method": "Squash", "checks": ["ci"]}});
        let forge = Forge::open(&scene, &files, merge).await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [{"namespace": production}], "changePolicyRef": {"name": "review"}},
        ]);
        scene.pipeline("Kustomization", environments).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        forge.deploy("dev", app(&dev, team, "v2")).await?;
        scene
            .wait(|pipeline| {
                waits(pipeline, 1)
                    .iter()
                    .any(|wait| wait.ends_with("is open, waits for ci"))
            })
            .await?;
        let open = forge.requests(|all| all.len() == 1).await?;
        let commit = open[0]["head"]["sha"].as_str().unwrap_or_default();
        let path = format!("repos/{}/statuses/{commit}", forge.repository);
        let passed = json!({"context": "ci", "state": "success"});
        forge
            .gitea
            .call_as(&forge.ana, Method::POST, &path, Some(passed))
            .await?;
        scene
            .has(
                (KUSTOMIZE, "Kustomization"),
                &production,
                "/spec/images/0/newTag",
                "v2",
            )
            .await?;
        scene
            .wait(|pipeline| release_of(pipeline, 1) == Some(2))
            .await
            .map(drop)
    });
}

/// Approval by review: the Git service asks for it, and the merge waits for it.
#[test]
fn a_pull_request_is_merged_after_its_review() {
    play("review", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        let files = [
            ("dev", app(&dev, team, "v1")),
            ("production", app(&production, team, "v1")),
        ];
        let merge = json!({"merge": {"method": "Merge", "checks": ["ci"]}});
        let forge = Forge::open(&scene, &files, merge).await?;
        let protection = json!({
            "rule_name": "main", "enable_push": true, "required_approvals": 1, "block_on_rejected_reviews": true,
        });
        let path = format!("repos/{}/branch_protections", forge.repository);
        let protecting = forge
            .gitea
            .call_as(&forge.bot, Method::POST, &path, Some(protection));
        protecting.await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [{"namespace": production}], "changePolicyRef": {"name": "review"}},
        ]);
        scene.pipeline("Kustomization", environments).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        forge.deploy("dev", app(&dev, team, "v2")).await?;
        let open = forge.requests(|all| all.len() == 1).await?;
        let commit = open[0]["head"]["sha"].as_str().unwrap_or_default();
        forge.say(commit, "ci", "success").await?;
        let lacks = |wait: &String| wait.to_lowercase().contains("does not have enough approvals");
        scene
            .wait(|pipeline| waits(pipeline, 1).iter().any(lacks))
            .await?;
        ensure!(forge.file("production").await?.contains("newTag: v1"));
        let path = format!("repos/{}/pulls/{}/reviews", forge.repository, open[0]["number"]);
        let review = json!({"event": "APPROVED", "body": "Fine."});
        forge
            .gitea
            .call_as(&forge.ana, Method::POST, &path, Some(review))
            .await?;
        let kind = (KUSTOMIZE, "Kustomization");
        scene.has(kind, &production, "/spec/images/0/newTag", "v2").await
    });
}

#[test]
fn an_environment_goes_back_and_forth_by_pull_requests() {
    play("backpr", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        let files = [
            ("dev", app(&dev, team, "v1")),
            ("production", app(&production, team, "v1")),
        ];
        let forge = Forge::open(&scene, &files, json!({})).await?;
        forge.report(&scene).await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [{"namespace": production}], "changePolicyRef": {"name": "review"}},
        ]);
        scene.pipeline("Kustomization", environments).await?;
        scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        forge.deploy("dev", app(&dev, team, "v2")).await?;
        // Each is merged: forth to 2, back to 1, and forth to 2, which is the same change as the first one.
        let back = format!("Roll back {team}/shop in production to release 1");
        for (number, title, release) in [(1, title(&scene, 2), 2), (2, back, 1), (3, title(&scene, 2), 2)] {
            let all = forge.requests(|all| all.len() == number).await?;
            let newest = &all[all.len() - 1];
            ensure!(newest["title"] == title.as_str(), "{}", newest["title"]);
            forge.merge(number as u64).await?;
            let arrived = |pipeline: &DynamicObject| {
                let change = "/status/environments/1/targets/0/change";
                release_of(pipeline, 1) == Some(release) && field(pipeline, change).is_none()
            };
            scene.wait(arrived).await?;
            forge.has_forgotten_branches(number).await?;
            let rollback = [
                "rollback",
                "pipeline/shop",
                "--env",
                "production",
                "--reason",
                "`crash`",
            ];
            let release = ["release", "pipeline/shop"];
            let promote = ["promote", "pipeline/shop", "--env", "production", "--number", "2"];
            let commands: &[&[&str]] = match number {
                1 => &[&rollback],
                2 => &[&release, &promote],
                _ => &[],
            };
            for command in commands {
                let (ok, said) = scene.windlass(command).await?;
                ensure!(ok, "{said}");
            }
        }
        forge.has_status("promotion succeeded").await?;
        let all = forge.requests(|all| all.len() == 3).await?;
        let body = all[1]["body"].as_str().unwrap_or_default();
        ensure!(
            body.contains("Asked for by `") && body.contains(":  crash`."),
            "{body}"
        );
        Ok(())
    });
}
