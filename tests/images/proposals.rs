//! From a pushed image to a pull request at a real Gitea, and to its merge.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::DynamicObject;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::gitea::User;
use testkit::objects::{self, apply, condition, text};
use testkit::{Gitea, MessageSink};
use tokio::sync::OnceCell;

use crate::world::{IMAGE, PATIENCE, Scene, play};

const DELIVERY: &str = "delivery.windlass.dev/v1alpha1";
pub const BASE: &str = "main";

/// A repository at the forge, with a robot that writes to it and a person.
pub struct Shop {
    pub gitea: &'static Gitea,
    pub bot: User,
    pub ana: User,
    pub repository: String,
}

impl Shop {
    /// The forge is shared by all stories, the repository and its people are the story's.
    pub async fn open(scene: &Scene, files: &[(&str, &str)]) -> Result<Self> {
        static GITEA: OnceCell<Gitea> = OnceCell::const_new();
        let gitea = GITEA.get_or_try_init(Gitea::start).await?;
        let bot = gitea.add_user(&format!("{}-bot", scene.namespace)).await?;
        let ana = gitea.add_user(&format!("{}-ana", scene.namespace)).await?;
        gitea.add_repository(&bot, "shop", files).await?;
        let repository = format!("{}/shop", bot.name);
        let at = format!("repos/{repository}/collaborators/{}", ana.name);
        let right = json!({"permission": "write"});
        gitea.call_as(&bot, Method::PUT, &at, Some(right)).await?;
        let shop = Self {
            gitea,
            bot,
            ana,
            repository,
        };
        shop.describe(scene).await?;
        Ok(shop)
    }

    /// The Secret and the GitRepository.
    async fn describe(&self, scene: &Scene) -> Result<()> {
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "shop", "namespace": scene.namespace},
            "stringData": {"username": self.bot.name, "password": self.bot.token},
        });
        apply(&scene.client, &secret).await?;
        let url = format!("{}/{}.git", self.gitea.url(), self.repository);
        let source = objects::git_repository(&scene.namespace, "app", &url, BASE);
        let source = objects::with_spec(source, json!({"secretRef": {"name": "shop"}}));
        apply(&scene.client, &source).await?;
        Ok(())
    }

    /// A ChangePolicy named `review`, and an automation under it.
    pub async fn review(&self, scene: &Scene, request: Value, spec: Value) -> Result<()> {
        self.review_as(scene, request, spec, json!({})).await
    }

    /// As [`review`](Self::review), with fields of the automation's metadata.
    pub async fn review_as(&self, scene: &Scene, request: Value, spec: Value, metadata: Value) -> Result<()> {
        let mut fields = json!({"forge": {"provider": "gitea", "secretRef": {"name": "shop"}}});
        extend(&mut fields, request);
        let mut policy = json!({"type": "PullRequest", "pullRequest": fields});
        extend(&mut policy, spec);
        let policy = json!({
            "apiVersion": DELIVERY,
            "kind": "ChangePolicy",
            "metadata": {"name": "review", "namespace": scene.namespace},
            "spec": policy,
        });
        apply(&scene.client, &policy).await?;
        let mut meta = json!({
            "name": "auto",
            "namespace": scene.namespace,
            "annotations": {"delivery.windlass.dev/change-policy": "review"},
        });
        extend(&mut meta, metadata);
        let automation = json!({
            "apiVersion": IMAGE,
            "kind": "ImageUpdateAutomation",
            "metadata": meta,
            "spec": {
                "sourceRef": {"kind": "GitRepository", "name": "app"},
                "interval": "1h",
                "git": {"commit": {"author": {"name": "Bot", "email": "bot@example.com"}}},
            },
        });
        apply(&scene.client, &automation).await?;
        Ok(())
    }

    pub async fn get(&self, path: &str) -> Result<Value> {
        let path = format!("repos/{}/{path}", self.repository);
        self.gitea.call(Method::GET, &path, None).await
    }

    /// Does something as the person.
    pub async fn ana(&self, method: Method, path: &str, body: Value) -> Result<Value> {
        let path = format!("repos/{}/{path}", self.repository);
        self.gitea.call_as(&self.ana, method, &path, Some(body)).await
    }

    /// All pull requests, the oldest first.
    pub async fn requests(&self) -> Result<Vec<Value>> {
        let all = self.get("pulls?state=all&sort=oldest").await?;
        Ok(all.as_array().cloned().unwrap_or_default())
    }

    /// Merges a pull request as the person does.
    pub async fn merge(&self, number: u64) -> Result<()> {
        let path = format!("pulls/{number}/merge");
        // Gitea checks for conflicts in the background, and says 405 until it has.
        let merging = async {
            while self
                .ana(Method::POST, &path, json!({"Do": "merge"}))
                .await
                .is_err()
            {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, merging)
            .await
            .context("Gitea does not merge")
    }

    pub async fn branches(&self) -> Result<Vec<String>> {
        let all = self.get("branches").await?;
        let names = all.as_array().into_iter().flatten();
        Ok(names
            .map(|branch| branch["name"].as_str().unwrap_or_default().to_owned())
            .collect())
    }
}

fn extend(to: &mut Value, with: Value) {
    if let (Some(to), Value::Object(with)) = (to.as_object_mut(), with) {
        to.extend(with);
    }
}

pub fn marked(scene: &Scene, image: &str, tag: &str) -> String {
    let marker = format!("{{\"$imagepolicy\": \"{}:{image}\"}}", scene.namespace);
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {image}\nspec:\n  image: {}:{tag} # {marker}\n",
        scene.image(image)
    )
}

async fn follow(scene: &Scene, image: &str, tag: &str) -> Result<()> {
    scene.push(image, &[tag]).await?;
    let any = json!({"policy": {"semver": {"range": "*"}}});
    scene.follow(image, any).await
}

fn ready_message(object: &DynamicObject) -> String {
    let (status, _, message) = condition(object, "Ready").unwrap_or_default();
    if status == "True" {
        message.to_owned()
    } else {
        String::new()
    }
}

impl Scene {
    /// Waits until the Ready message of the automation has this in it, and returns it.
    async fn says(&self, words: &str) -> Result<String> {
        let says = |object: &DynamicObject| ready_message(object).contains(words);
        let object = self.wait("ImageUpdateAutomation", "auto", says).await;
        let object = object.with_context(|| format!("the automation never says '{words}'"))?;
        Ok(ready_message(&object))
    }

    async fn newer(&self, image: &str, tag: &str) -> Result<()> {
        self.push(image, &[tag]).await?;
        self.poke("ImageRepository", image).await.map(drop)
    }

    async fn look(&self) -> Result<()> {
        let handled = self.poke("ImageUpdateAutomation", "auto").await?;
        let done = |object: &DynamicObject| text(object, "/status/lastHandledReconcileAt") == handled;
        self.wait("ImageUpdateAutomation", "auto", done).await.map(drop)
    }
}

#[test]
fn a_pushed_image_becomes_a_pull_request_which_follows_it_until_it_is_merged() {
    play("proposal", async |scene| {
        let old = marked(&scene, "web", "0.1.0");
        let shop = Shop::open(&scene, &[("app.yaml", &old)]).await?;
        follow(&scene, "web", "1.0.0").await?;
        let more = json!({"labels": ["images"], "reviewers": [shop.ana.name]});
        shop.review(&scene, more, json!({})).await?;

        let said = scene.says("pull request 1").await?;
        let url = format!("{}/{}/pulls/1", shop.gitea.url(), shop.repository);
        assert_eq!(said, format!("pull request 1 ({url}) is open"));
        let request = shop.requests().await?.remove(0);
        let image = scene.image("web");
        assert_eq!(request["title"], format!("Update to {image}:1.0.0"));
        let body = request["body"].as_str().unwrap_or_default();
        let row = format!("| `{image}:0.1.0` | `{image}:1.0.0` | `Deployment/web` | `app.yaml:6` |");
        ensure!(body.contains(&row), "{body}");
        assert_eq!(request["labels"][0]["name"], "images");
        assert_eq!(request["requested_reviewers"][0]["login"], shop.ana.name);
        let branch = format!("windlass/{}-auto", scene.namespace);
        assert_eq!(request["head"]["ref"], branch);
        assert_eq!(shop.gitea.file(&shop.repository, BASE, "app.yaml").await?, old);

        // Newer images, and unrelated commits on the base, are taken up by the same one; it stays one commit.
        shop.gitea
            .commit(&shop.ana, &shop.repository, BASE, &[("readme.txt", "hello\n")])
            .await?;
        scene.newer("web", "1.1.0").await?;
        let pushed = |object: &DynamicObject| text(object, "/status/observedPolicies/web/tag") == "1.1.0";
        scene.wait("ImageUpdateAutomation", "auto", pushed).await?;
        let requests = shop.requests().await?;
        ensure!(requests.len() == 1, "{requests:?}");
        assert_eq!(requests[0]["title"], format!("Update to {image}:1.1.0"));
        let commits = shop.get("pulls/1/commits").await?;
        ensure!(commits.as_array().map(Vec::len) == Some(1), "{commits}");

        let listed = scene.windlass(&["get", "changepolicies"]).await?;
        ensure!(listed.contains("review") && listed.contains("True"), "{listed}");
        let listed = scene.windlass(&["get", "imageupdateautomations"]).await?;
        ensure!(listed.contains("pull request 1"), "{listed}");

        // Looking again changes nothing. Gitea itself looks for conflicts after a push, and notes it.
        let settled = async {
            loop {
                let request = shop.get("pulls/1").await?;
                if request["mergeable"] == true {
                    return anyhow::Ok(request);
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await; // Gitea tells nobody
            }
        };
        let mut before = tokio::time::timeout(std::time::Duration::from_secs(60), settled).await??;
        // What Gitea notes by itself comes once; what we wrote would come with each look.
        let mut changes = 0;
        for _ in 0..3 {
            scene.look().await?;
            let now = shop.get("pulls/1").await?;
            changes += usize::from(now["updated_at"] != before["updated_at"]);
            before = now;
        }
        ensure!(changes <= 1, "each look changes it");

        shop.merge(1).await?;
        scene.look().await?;
        scene.says("repository up-to-date").await?;
        let new = shop.gitea.file(&shop.repository, BASE, "app.yaml").await?;
        assert_eq!(new, marked(&scene, "web", "1.1.0"));
        assert_eq!(shop.branches().await?, [BASE]);
        Ok(())
    });
}

#[test]
fn the_description_says_what_changes_in_objects() {
    play("objects", async |scene| {
        let app = marked(&scene, "web", "0.1.0");
        let hostile = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: map\ndata:\n  \"```\\n@ana\": {}\n",
            app.lines()
                .last()
                .unwrap_or_default()
                .trim()
                .trim_start_matches("image: "),
        );
        let files = [
            ("app/app.yaml", &*app),
            ("app/map.yaml", &*hostile),
            ("rest/link.yaml", "a: 1"),
        ];
        let shop = Shop::open(&scene, &files).await?;
        let kustomization = async |name: &str, source: &str, path: &str| {
            let object = objects::kustomization(&scene.namespace, name, ("GitRepository", source), path);
            let spec = json!({"targetNamespace": "live", "namePrefix": "our-"});
            apply(&scene.client, &objects::with_spec(object, spec)).await
        };
        kustomization("app", "app", "./app").await?;
        kustomization("rest", "app", "rest").await?;
        kustomization("foreign", "other", "./app").await?;
        follow(&scene, "web", "1.0.0").await?;
        let named = json!({"kustomizations": ["app", "rest", "foreign", "missing", "../../default/kustomizations/app"]});
        shop.review(&scene, named, json!({})).await?;
        scene.says("pull request 1").await?;
        let request = shop.requests().await?.remove(0);
        let body = request["body"].as_str().unwrap_or_default();
        let image = scene.image("web");
        for part in [
            "In the objects of Kustomization `app`:",
            &format!("Deployment/live/our-web:\n  spec.image: \"{image}:0.1.0\" → \"{image}:1.0.0\"\n"),
            "The objects of Kustomization `rest` are not compared: before the change, they cannot be built: `rest/link.yaml:1: ",
            "The objects of Kustomization `foreign` are not compared: its source is not the GitRepository",
            "The objects of Kustomization `missing` are not compared: it does not exist.",
            "/kustomizations/app` are not compared: this is not the name of a Kustomization.",
        ] {
            ensure!(body.contains(part), "no {part} in:\n{body}");
        }
        // The key of the map stays inside the fence.
        assert_eq!(body.matches("```").count(), 2, "{body}");
        ensure!(!body.lines().any(|line| line.starts_with("@ana")), "{body}");

        // What is newer is compared anew, and a description of one's own may have that alone.
        let own = json!({"kustomizations": ["app"], "body": "Of {{ .Policy }}{{ .AutomationObject.Name }}:\n{{ .Objects }}"});
        shop.review(&scene, own, json!({})).await?;
        scene.newer("web", "1.1.0").await?;
        let is_new = |object: &DynamicObject| text(object, "/status/observedPolicies/web/tag") == "1.1.0";
        scene.wait("ImageUpdateAutomation", "auto", is_new).await?;
        let request = shop.requests().await?.remove(0);
        let body = request["body"].as_str().unwrap_or_default();
        let line = format!("  spec.image: \"{image}:0.1.0\" → \"{image}:1.1.0\"\n");
        ensure!(body.contains(&line) && body.contains("Of auto:"), "{body}");
        ensure!(
            !body.contains("| from |") && !body.contains("built from"),
            "{body}"
        );
        Ok(())
    });
}

#[test]
fn what_a_person_adds_to_the_branch_stays() {
    play("continued", async |scene| {
        let shop = Shop::open(&scene, &[("app.yaml", &marked(&scene, "web", "0.1.0"))]).await?;
        follow(&scene, "web", "1.0.0").await?;
        shop.review(&scene, json!({}), json!({})).await?;
        scene.says("pull request 1").await?;
        let branch = format!("windlass/{}-auto", scene.namespace);
        let theirs = shop
            .gitea
            .commit(&shop.ana, &shop.repository, &branch, &[("fix.txt", "needed\n")])
            .await?;
        scene.newer("web", "1.1.0").await?;
        let is_new = |object: &DynamicObject| text(object, "/status/observedPolicies/web/tag") == "1.1.0";
        scene.wait("ImageUpdateAutomation", "auto", is_new).await?;
        let commits = shop.get("pulls/1/commits").await?;
        let has_theirs = |commit: &Value| commit["sha"] == theirs.as_str();
        ensure!(
            commits.as_array().is_some_and(|all| all.iter().any(has_theirs)),
            "{commits}"
        );
        // And once more: what stands on the work of others is never replaced.
        scene.newer("web", "1.2.0").await?;
        let is_new = |object: &DynamicObject| text(object, "/status/observedPolicies/web/tag") == "1.2.0";
        scene.wait("ImageUpdateAutomation", "auto", is_new).await?;
        let commits = shop.get("pulls/1/commits").await?;
        ensure!(
            commits.as_array().is_some_and(|all| all.iter().any(has_theirs)),
            "{commits}"
        );
        let file = shop.gitea.file(&shop.repository, &branch, "app.yaml").await?;
        assert_eq!(file, marked(&scene, "web", "1.2.0"));
        assert_eq!(shop.requests().await?.len(), 1);
        Ok(())
    });
}

#[test]
fn what_was_closed_or_reverted_waits_for_something_newer() {
    play("declined", async |scene| {
        let old = marked(&scene, "web", "0.1.0");
        let shop = Shop::open(&scene, &[("app.yaml", &old)]).await?;
        follow(&scene, "web", "1.0.0").await?;
        shop.review(&scene, json!({}), json!({})).await?;
        scene.says("pull request 1").await?;
        shop.ana(Method::PATCH, "pulls/1", json!({"state": "closed"}))
            .await?;
        scene.look().await?;
        let said = scene.says("was closed").await?;
        ensure!(said.starts_with("not proposed again: pull request 1 "), "{said}");
        scene.look().await?;
        assert_eq!(shop.requests().await?.len(), 1);

        scene.newer("web", "1.1.0").await?;
        scene.says("pull request 2").await?;
        shop.merge(2).await?;
        scene.look().await?;
        scene.says("repository up-to-date").await?;
        // A person takes it back in Git.
        shop.gitea
            .commit(&shop.ana, &shop.repository, BASE, &[("app.yaml", &old)])
            .await?;
        scene.look().await?;
        let said = scene.says("no longer has its values").await?;
        ensure!(said.starts_with("not proposed again: pull request 2 "), "{said}");
        assert_eq!(shop.requests().await?.len(), 2);
        scene.newer("web", "1.2.0").await?;
        scene.says("pull request 3").await?;
        Ok(())
    });
}

#[test]
fn it_is_merged_when_its_checks_have_passed() {
    play("merged", async |scene| {
        let shop = Shop::open(&scene, &[("app.yaml", &marked(&scene, "web", "0.1.0"))]).await?;
        follow(&scene, "web", "1.0.0").await?;
        let merge = json!({"merge": {"checks": ["ci/build"], "method": "Squash"}});
        shop.review(&scene, merge, json!({})).await?;
        let said = scene.says("waits for ci/build").await?;
        ensure!(said.contains("is open, waits for"), "{said}");
        let head = shop.get("pulls/1").await?["head"]["sha"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let check = async |state: &str| {
            let body = json!({"state": state, "context": "ci/build"});
            shop.ana(Method::POST, &format!("statuses/{head}"), body).await
        };
        check("failure").await?;
        scene.look().await?;
        scene.says("not merged, as ci/build failed").await?;
        check("success").await?;
        scene.look().await?;
        // Gitea may still be looking for conflicts.
        let merged = async {
            while shop.get("pulls/1").await?["merged"] != true {
                scene.look().await?;
            }
            Ok::<_, anyhow::Error>(())
        };
        tokio::time::timeout(PATIENCE, merged)
            .await
            .context("it is not merged")??;
        let new = shop.gitea.file(&shop.repository, BASE, "app.yaml").await?;
        assert_eq!(new, marked(&scene, "web", "1.0.0"));
        scene.look().await?;
        scene.says("repository up-to-date").await?;
        assert_eq!(shop.branches().await?, [BASE]);
        Ok(())
    });
}

#[test]
fn a_robot_does_not_merge_what_a_person_added() {
    play("unmerged", async |scene| {
        let shop = Shop::open(&scene, &[("app.yaml", &marked(&scene, "web", "0.1.0"))]).await?;
        follow(&scene, "web", "1.0.0").await?;
        shop.review(&scene, json!({"merge": {}}), json!({})).await?;
        scene.says("waits for a first check").await?;
        let branch = format!("windlass/{}-auto", scene.namespace);
        let head = shop
            .gitea
            .commit(
                &shop.ana,
                &shop.repository,
                &branch,
                &[("more.yaml", "evil: true\n")],
            )
            .await?;
        let passed = json!({"state": "success", "context": "ci"});
        shop.ana(Method::POST, &format!("statuses/{head}"), passed)
            .await?;
        scene.look().await?;
        scene.look().await?;
        assert_eq!(shop.get("pulls/1").await?["merged"], false);
        Ok(())
    });
}

#[test]
fn each_policy_has_its_own_and_no_more_than_are_allowed_are_open() {
    play("grouped", async |scene| {
        let (web, api) = (marked(&scene, "web", "0.1.0"), marked(&scene, "api", "0.1.0"));
        let shop = Shop::open(&scene, &[("web.yaml", &web), ("api.yaml", &api)]).await?;
        follow(&scene, "api", "1.0.0").await?;
        follow(&scene, "web", "2.0.0").await?;
        for image in ["api", "web"] {
            let chosen = |object: &DynamicObject| !text(object, "/status/latestRef/tag").is_empty();
            scene.wait("ImagePolicy", image, chosen).await?;
        }
        let each = json!({"grouping": "Policy", "maxOpen": 1, "title": "{{ .Policy }} in {{ .AutomationObject.Namespace }}"});
        shop.review(&scene, each.clone(), json!({})).await?;
        let said = scene.says("waits for one of 1 open pull requests").await?;
        ensure!(said.lines().count() == 2, "{said}");
        let requests = shop.requests().await?;
        ensure!(requests.len() == 1, "{requests:?}");
        assert_eq!(requests[0]["title"], format!("api in {}", scene.namespace));
        assert_eq!(
            requests[0]["head"]["ref"],
            format!("windlass/{}-auto-api", scene.namespace)
        );
        shop.merge(1).await?;
        scene.look().await?;
        scene.says("pull request 2").await?;
        let files = shop.get("pulls/2/files").await?;
        assert_eq!(files[0]["filename"], "web.yaml");

        // The one that is open counts, though its policy comes after.
        scene.newer("api", "1.1.0").await?;
        scene
            .says("waits for one of 1 open pull requests: the change of api")
            .await?;
        assert_eq!(shop.requests().await?.len(), 2);

        let mut same = each;
        same["branch"] = "updates".into();
        shop.review(&scene, same, json!({})).await?;
        let refused = |object: &DynamicObject| {
            condition(object, "Ready")
                .is_some_and(|(_, _, message)| message.contains("must differ by {{ .Policy }}"))
        };
        scene.wait("ImageUpdateAutomation", "auto", refused).await?;
        Ok(())
    });
}

#[test]
fn nothing_is_proposed_or_committed_outside_of_the_windows() {
    play("windows", async |scene| {
        let old = marked(&scene, "web", "0.1.0");
        let shop = Shop::open(&scene, &[("app.yaml", &old)]).await?;
        follow(&scene, "web", "1.0.0").await?;
        // A window that begins in an hour at the earliest.
        let hour = |more: i64| {
            let time = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(more);
            time.strftime("%H:%M").to_string()
        };
        let closed = json!({"windows": [{"from": hour(2), "to": hour(3)}]});
        shop.review(&scene, json!({}), closed).await?;
        scene.says("changes wait for the window that opens at").await?;
        assert_eq!(shop.branches().await?, [BASE]);
        // The policy alone is changed: that wakes the automation.
        shop.review(&scene, json!({}), json!({"windows": []})).await?;
        scene.says("pull request 1").await?;
        Ok(())
    });
}

#[test]
fn a_source_of_another_namespace_does_not_get_the_token() {
    play("token", async |scene| {
        let shop = Shop::open(&scene, &[("app.yaml", &marked(&scene, "web", "0.1.0"))]).await?;
        follow(&scene, "web", "1.0.0").await?;
        // Whoever owns that GitRepository may turn it to a server of theirs.
        let theirs = MessageSink::start().await?;
        let other = scene.world.control_plane.namespace("token-theirs").await?;
        let url = theirs.url("o/r.git");
        apply(&scene.client, &objects::git_repository(&other, "app", &url, BASE)).await?;
        shop.review(&scene, json!({}), json!({})).await?;
        let automation = json!({
            "apiVersion": IMAGE,
            "kind": "ImageUpdateAutomation",
            "metadata": {
                "name": "auto",
                "namespace": scene.namespace,
                "annotations": {"delivery.windlass.dev/change-policy": "review"},
            },
            "spec": {
                "sourceRef": {"kind": "GitRepository", "name": "app", "namespace": other},
                "interval": "1h",
                "git": {"commit": {"author": {"email": "bot@example.com"}}},
            },
        });
        apply(&scene.client, &automation).await?;
        let refused = |object: &DynamicObject| {
            condition(object, "Ready")
                .is_some_and(|(_, _, message)| message.contains("spec.pullRequest.forge.url is required"))
        };
        scene.wait("ImageUpdateAutomation", "auto", refused).await?;
        for call in theirs.calls() {
            ensure!(!call.headers.contains_key("authorization"), "{call:?}");
        }
        Ok(())
    });
}

#[test]
fn a_branch_that_was_never_ours_is_left_alone() {
    play("occupied", async |scene| {
        let shop = Shop::open(&scene, &[("app.yaml", &marked(&scene, "web", "0.1.0"))]).await?;
        let develop = json!({"new_branch_name": "develop", "old_branch_name": BASE});
        shop.ana(Method::POST, "branches", develop).await?;
        let head = shop
            .gitea
            .commit(&shop.ana, &shop.repository, "develop", &[("half.txt", "done\n")])
            .await?;
        follow(&scene, "web", "1.0.0").await?;
        shop.review(&scene, json!({"branch": "develop"}), json!({}))
            .await?;
        scene.says("the branch 'develop' has commits of others").await?;
        assert_eq!(shop.get("branches/develop").await?["commit"]["id"], head.as_str());
        assert_eq!(shop.requests().await?.len(), 0);
        Ok(())
    });
}
