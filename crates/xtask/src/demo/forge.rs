//! The Git service of the demo: a real Gitea, a robot that proposes, and a person who merges.

use anyhow::{Context as _, Result};
use reqwest::Method;
use serde_json::json;
use testkit::Gitea;
use testkit::gitea::User;

/// The repository that is delivered from here.
pub(crate) const REPOSITORY: &str = "windlass-bot/storefront";

/// A running Gitea with the demo's users and repository.
pub(crate) struct Forge {
    pub(crate) gitea: Gitea,
    pub(crate) bot: User,
    pub(crate) ana: User,
}

impl Forge {
    pub(crate) async fn start() -> Result<Self> {
        let gitea = Gitea::start().await?;
        let bot = gitea.add_user("windlass-bot").await?;
        let ana = gitea.add_user("ana").await?;
        gitea
            .add_repository(&bot, "storefront", &[("README.md", "# Storefront\n")])
            .await?;
        let at = format!("repos/{REPOSITORY}/collaborators/{}", ana.name);
        let right = json!({"permission": "write"});
        gitea.call_as(&bot, Method::PUT, &at, Some(right)).await?;
        Ok(Self { gitea, bot, ana })
    }

    /// The URL to clone from.
    pub(crate) fn url(&self) -> String {
        format!("{}/{REPOSITORY}.git", self.gitea.url())
    }

    /// Writes a file on the branch `main`, and returns the commit.
    pub(crate) async fn commit(&self, path: &str, content: &str) -> Result<String> {
        self.gitea
            .commit(&self.ana, REPOSITORY, "main", &[(path, content)])
            .await
    }

    /// The newest commit of the branch `main`.
    pub(crate) async fn head(&self) -> Result<String> {
        let path = format!("repos/{REPOSITORY}/branches/main");
        let branch = self.gitea.call(Method::GET, &path, None).await?;
        let id = branch["commit"]["id"].as_str();
        id.map(str::to_owned).context("Gitea does not say where main is")
    }
}
