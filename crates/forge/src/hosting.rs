//! The repository itself: whether it is there, its making, and the deploy keys that may read it.

mod azure_devops;
mod bitbucket_server;
mod gitea;
mod github;
mod gitlab;

use serde::de::DeserializeOwned;

use crate::api::Api;
use crate::error::Error;
use crate::forge::{Forge, Repository};

/// Pages of deploy keys that are looked through.
const MAX_PAGES: usize = 10;
/// Deploy keys of a page, which all services give.
const PAGE: usize = 50;

/// A repository at a forge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosted {
    /// Its address for ssh, as the forge writes it; empty if there is none.
    pub ssh: String,
    /// The branch that is shown first; empty while there is none.
    pub default_branch: String,
}

/// A repository to be made.
#[derive(Debug, Clone, Copy, Default)]
pub struct Draft<'a> {
    /// One line that says what it is for.
    pub description: &'a str,
    /// Only its members may read it.
    pub private: bool,
    /// The owner is a person, not an organisation. Ignored where the forge tells them apart by itself.
    pub personal: bool,
    /// The branch that will be pushed first.
    pub default_branch: &'a str,
}

/// A key of ssh that may fetch from one repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeployKey {
    /// The forge's name for it.
    pub id: String,
    /// The name that people see.
    pub title: String,
    /// Type and key, without a comment.
    pub key: String,
    /// It cannot push.
    pub read_only: bool,
}

impl Forge<'_> {
    /// Finds the repository; None if it is not there, or the token may not see it.
    ///
    /// # Errors
    /// When the forge cannot be asked; at Bitbucket Cloud, which is not asked.
    pub async fn hosted(&self) -> Result<Option<Hosted>, Error> {
        let found = match &self.0 {
            Repository::GitHub(at) => at.hosted().await,
            Repository::GitLab(at) => at.hosted().await,
            Repository::Gitea(at) => at.hosted().await,
            Repository::BitbucketServer(at) => at.hosted().await,
            Repository::AzureDevOps(at) => at.hosted().await,
            Repository::Bitbucket(_) => Err(unsupported()),
        };
        found.map_err(|error| error.within("failed to look for the repository"))
    }

    /// Makes the repository, without a commit.
    ///
    /// # Errors
    /// When the forge refuses; at Bitbucket Cloud, which is not asked.
    pub async fn make(&self, draft: Draft<'_>) -> Result<Hosted, Error> {
        let made = match &self.0 {
            Repository::GitHub(at) => at.make(draft).await,
            Repository::GitLab(at) => at.make(draft).await,
            Repository::Gitea(at) => at.make(draft).await,
            Repository::BitbucketServer(at) => at.make(draft).await,
            Repository::AzureDevOps(at) => at.make().await,
            Repository::Bitbucket(_) => Err(unsupported()),
        };
        made.map_err(|error| error.within("failed to make the repository"))
    }

    /// Returns whether the forge has keys that may read one repository and nothing else.
    pub fn has_deploy_keys(&self) -> bool {
        !matches!(&self.0, Repository::AzureDevOps(_) | Repository::Bitbucket(_))
    }

    /// The deploy keys of the repository.
    ///
    /// # Errors
    /// When the token may not see them; where there are none ([`Forge::has_deploy_keys`]).
    pub async fn deploy_keys(&self) -> Result<Vec<DeployKey>, Error> {
        let found = match &self.0 {
            Repository::GitHub(at) => at.deploy_keys().await,
            Repository::GitLab(at) => at.deploy_keys().await,
            Repository::Gitea(at) => at.deploy_keys().await,
            Repository::BitbucketServer(at) => at.deploy_keys().await,
            Repository::AzureDevOps(_) | Repository::Bitbucket(_) => Err(no_keys()),
        };
        found.map_err(|error| error.within("failed to list the deploy keys"))
    }

    /// Lets a key fetch from the repository, and push to it if it is not read-only.
    ///
    /// # Errors
    /// When the forge refuses, for example since the key is in use elsewhere.
    pub async fn add_deploy_key(&self, title: &str, key: &str, read_only: bool) -> Result<(), Error> {
        let added = match &self.0 {
            Repository::GitHub(at) => at.add_deploy_key(title, key, read_only).await,
            Repository::GitLab(at) => at.add_deploy_key(title, key, read_only).await,
            Repository::Gitea(at) => at.add_deploy_key(title, key, read_only).await,
            Repository::BitbucketServer(at) => at.add_deploy_key(title, key, read_only).await,
            Repository::AzureDevOps(_) | Repository::Bitbucket(_) => Err(no_keys()),
        };
        added.map_err(|error| error.within("failed to add the deploy key"))
    }

    /// Takes a deploy key away. One that is gone already is no error.
    ///
    /// # Errors
    /// When the forge refuses.
    pub async fn remove_deploy_key(&self, id: &str) -> Result<(), Error> {
        let removed = match &self.0 {
            Repository::GitHub(at) => at.api.delete(&at.path(&["keys", id])?, &[]).await,
            Repository::GitLab(at) => at.api.delete(&at.path(&["deploy_keys", id]), &[]).await,
            Repository::Gitea(at) => at.api.delete(&at.path(&["keys", id])?, &[]).await,
            Repository::BitbucketServer(at) => at.api.delete(&at.keys(&["ssh", id]), &[]).await,
            Repository::AzureDevOps(_) | Repository::Bitbucket(_) => Err(no_keys()),
        };
        removed.map_err(|error| error.within("failed to remove the deploy key"))
    }
}

/// All pages of deploy keys, as most services give them.
async fn keys<K: DeserializeOwned + Into<DeployKey>>(
    api: &Api<'_>,
    path: &[&str],
    size: &str,
) -> Result<Vec<DeployKey>, Error> {
    let limit = PAGE.to_string();
    let mut all = Vec::new();
    for page in 1..=MAX_PAGES {
        let page = page.to_string();
        let found: Vec<K> = api.get(path, &[("page", &page), (size, &limit)]).await?;
        let is_last = found.len() < PAGE;
        all.extend(found.into_iter().map(K::into));
        if is_last {
            break;
        }
    }
    Ok(all)
}

/// Type and key, without the comment that some services keep.
fn without_comment(key: &str) -> String {
    let mut words = key.split_whitespace();
    match (words.next(), words.next()) {
        (Some(kind), Some(key)) => format!("{kind} {key}"),
        _ => key.trim().to_owned(),
    }
}

fn unsupported() -> Error {
    Error::invalid("repositories are not made at Bitbucket Cloud; make it there")
}

fn no_keys() -> Error {
    Error::invalid("this forge has no deploy keys; use a token")
}

#[cfg(test)]
mod tests {
    use super::without_comment;

    #[test]
    fn keys_are_compared_without_their_comments() {
        for (key, expected) in [
            ("ssh-ed25519 AAAA me@example.com\n", "ssh-ed25519 AAAA"),
            ("ssh-ed25519 AAAA", "ssh-ed25519 AAAA"),
            (" AAAA ", "AAAA"),
            ("", ""),
        ] {
            assert_eq!(without_comment(key), expected);
        }
    }
}
