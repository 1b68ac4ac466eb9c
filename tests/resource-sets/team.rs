//! A team's repository at a real Gitea, with the providers of its namespace.

use anyhow::{Context as _, Result};
use kube::api::DynamicObject;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::gitea::User;
use testkit::objects::{apply, field, text};
use testkit::{Gitea, wait_for};
use tokio::sync::OnceCell;

use crate::world::{PATIENCE, Scene};

/// A team's repository.
pub struct Team {
    pub scene: Scene,
    pub gitea: &'static Gitea,
    pub bot: User,
    /// Number of the label `deploy`.
    pub label: u64,
}

impl Team {
    pub async fn new(scene: Scene) -> Result<Self> {
        static GITEA: OnceCell<Gitea> = OnceCell::const_new();
        let gitea = GITEA.get_or_try_init(Gitea::start).await?;
        let bot = gitea.add_user(&format!("{}-bot", scene.namespace)).await?;
        gitea
            .add_repository(&bot, "shop", &[("readme.md", "shop")])
            .await?;
        let labels = format!("repos/{}/shop/labels", bot.name);
        let body = json!({"name": "deploy", "color": "#00aabb"});
        let label = gitea.call_as(&bot, Method::POST, &labels, Some(body)).await?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "git", "namespace": scene.namespace},
            "stringData": {"username": bot.name, "password": bot.token},
        });
        apply(&scene.client, &secret).await?;
        Ok(Self {
            label: label["id"].as_u64().context("the label has no id")?,
            scene,
            gitea,
            bot,
        })
    }

    pub async fn call(&self, method: Method, rest: &str, body: Value) -> Result<Value> {
        let path = format!("repos/{}/shop/{rest}", self.bot.name);
        self.gitea.call_as(&self.bot, method, &path, Some(body)).await
    }

    /// Opens a pull request with the label; returns its number and commit.
    pub async fn open(&self, branch: &str, title: &str) -> Result<(u64, String)> {
        let file = json!({
            "branch": "main", "new_branch": branch, "message": branch,
            "files": [{"operation": "create", "path": branch, "content": ""}],
        });
        let answer = self.call(Method::POST, "contents", file).await?;
        let commit = answer["commit"]["sha"].as_str().context("no commit")?.to_owned();
        let body = json!({"head": branch, "base": "main", "title": title, "labels": [self.label]});
        let repository = format!("{}/shop", self.bot.name);
        let opened = self
            .gitea
            .open_pull_request(&self.bot, &repository, &body)
            .await?;
        Ok((opened, commit))
    }

    pub async fn provider(&self, name: &str, kind: &str, more: Value) -> Result<()> {
        let mut spec = json!({
            "type": kind, "url": self.gitea.repository_url(&self.bot.name, "shop"), "secretRef": {"name": "git"},
        });
        if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
            spec.extend(more);
        }
        let every = json!({"annotations": {"fluxcd.controlplane.io/reconcileEvery": "1s"}});
        self.scene
            .make("ResourceSetInputProvider", name, spec, every)
            .await
            .map(drop)
    }

    pub async fn exported(&self, name: &str, is_right: impl Fn(&[Value]) -> bool) -> Result<Vec<Value>> {
        let sets = |object: &DynamicObject| {
            let sets = field(object, "/status/exportedInputs").and_then(Value::as_array);
            sets.cloned().unwrap_or_default()
        };
        let ready = |object: &DynamicObject| {
            text(object, "/status/lastExportedRevision").starts_with("sha256:") && is_right(&sets(object))
        };
        let found = wait_for(&self.scene.providers(), name, ready, PATIENCE).await?;
        Ok(sets(&found))
    }
}
