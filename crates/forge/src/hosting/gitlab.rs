//! Projects and deploy keys at GitLab.

use serde::Deserialize;
use serde_json::json;

use super::{DeployKey, Draft, Hosted, keys, without_comment};
use crate::error::Error;
use crate::gitlab::GitLab;

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    ssh_url_to_repo: String,
    /// Null while there is no commit.
    default_branch: Option<String>,
}

impl From<Found> for Hosted {
    fn from(found: Found) -> Self {
        Self {
            ssh: found.ssh_url_to_repo,
            default_branch: found.default_branch.unwrap_or_default(),
        }
    }
}

#[derive(Deserialize)]
struct Namespace {
    id: u64,
}

#[derive(Deserialize)]
struct Key {
    id: u64,
    #[serde(default)]
    title: String,
    key: String,
    #[serde(default)]
    can_push: bool,
}

impl From<Key> for DeployKey {
    fn from(key: Key) -> Self {
        Self {
            id: key.id.to_string(),
            title: key.title,
            key: without_comment(&key.key),
            read_only: !key.can_push,
        }
    }
}

impl GitLab<'_> {
    pub(super) async fn hosted(&self) -> Result<Option<Hosted>, Error> {
        let found: Option<Found> = self.api.find(&self.path(&[]), &[]).await?;
        Ok(found.map(Hosted::from))
    }

    /// Groups and people are namespaces alike.
    pub(super) async fn make(&self, draft: Draft<'_>) -> Result<Hosted, Error> {
        let (namespace, name) = self.project.rsplit_once('/').ok_or_else(|| {
            Error::invalid(format!("'{}' is no path of a project in a group", self.project))
        })?;
        let found: Namespace = self.api.get(&["namespaces", namespace], &[]).await?;
        let visibility = if draft.private { "private" } else { "public" };
        let mut body = json!({"name": name, "path": name, "namespace_id": found.id,
            "description": draft.description, "visibility": visibility});
        if !draft.default_branch.is_empty() {
            body["default_branch"] = draft.default_branch.into();
        }
        let made: Found = self.api.create(&["projects"], &[], &body).await?;
        Ok(Hosted {
            // It is named before there is a commit.
            default_branch: String::new(),
            ..Hosted::from(made)
        })
    }

    pub(super) async fn deploy_keys(&self) -> Result<Vec<DeployKey>, Error> {
        keys::<Key>(&self.api, &self.path(&["deploy_keys"]), "per_page").await
    }

    pub(super) async fn add_deploy_key(&self, title: &str, key: &str, read_only: bool) -> Result<(), Error> {
        let body = json!({"title": title, "key": key, "can_push": !read_only});
        self.api
            .post(&self.path(&["deploy_keys"]), &[], &body)
            .await
            .map(drop)
    }
}
