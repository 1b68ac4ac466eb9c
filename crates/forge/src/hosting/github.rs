//! Repositories and deploy keys at GitHub.

use serde::Deserialize;
use serde_json::json;

use super::{DeployKey, Draft, Hosted, keys, without_comment};
use crate::error::Error;
use crate::github::GitHub;

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    ssh_url: String,
    #[serde(default)]
    default_branch: String,
}

impl From<Found> for Hosted {
    fn from(found: Found) -> Self {
        Self {
            ssh: found.ssh_url,
            default_branch: found.default_branch,
        }
    }
}

#[derive(Deserialize)]
struct Key {
    id: u64,
    #[serde(default)]
    title: String,
    key: String,
    #[serde(default)]
    read_only: bool,
}

impl From<Key> for DeployKey {
    fn from(key: Key) -> Self {
        Self {
            id: key.id.to_string(),
            title: key.title,
            key: without_comment(&key.key),
            read_only: key.read_only,
        }
    }
}

impl GitHub<'_> {
    pub(super) async fn hosted(&self) -> Result<Option<Hosted>, Error> {
        let found: Option<Found> = self.api.find(&self.path(&[])?, &[]).await?;
        Ok(found.map(Hosted::from))
    }

    /// The first branch that is pushed becomes the default.
    pub(super) async fn make(&self, draft: Draft<'_>) -> Result<Hosted, Error> {
        let (owner, name) = self.repository.owner_and_name()?;
        let of_organisation = ["orgs", owner, "repos"];
        let path: &[&str] = if draft.personal {
            &["user", "repos"]
        } else {
            &of_organisation
        };
        let body = json!({"name": name, "description": draft.description, "private": draft.private});
        let made: Found = self.api.create(path, &[], &body).await?;
        Ok(made.into())
    }

    pub(super) async fn deploy_keys(&self) -> Result<Vec<DeployKey>, Error> {
        keys::<Key>(&self.api, &self.path(&["keys"])?, "per_page").await
    }

    pub(super) async fn add_deploy_key(&self, title: &str, key: &str, read_only: bool) -> Result<(), Error> {
        let body = json!({"title": title, "key": key, "read_only": read_only});
        self.api.post(&self.path(&["keys"])?, &[], &body).await.map(drop)
    }
}
