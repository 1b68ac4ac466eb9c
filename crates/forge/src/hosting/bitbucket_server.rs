//! Repositories and access keys at Bitbucket Server and Data Center.

use serde::Deserialize;
use serde_json::json;

use super::{DeployKey, Draft, Hosted, MAX_PAGES, PAGE, without_comment};
use crate::bitbucket_server::BitbucketServer;
use crate::error::Error;

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    links: Links,
}

#[derive(Deserialize, Default)]
struct Links {
    #[serde(default)]
    clone: Vec<Link>,
}

#[derive(Deserialize)]
struct Link {
    #[serde(default)]
    name: String,
    #[serde(default)]
    href: String,
}

#[derive(Deserialize)]
struct Branch {
    #[serde(rename = "displayId", default)]
    name: String,
}

#[derive(Deserialize)]
struct Page<T> {
    values: Vec<T>,
    #[serde(rename = "isLastPage", default)]
    is_last: bool,
}

#[derive(Deserialize)]
struct Access {
    key: Key,
    #[serde(default)]
    permission: String,
}

#[derive(Deserialize)]
struct Key {
    id: u64,
    text: String,
    #[serde(default)]
    label: String,
}

impl Found {
    fn ssh(self) -> String {
        let link = self.links.clone.into_iter().find(|link| link.name == "ssh");
        link.map(|link| link.href).unwrap_or_default()
    }
}

impl BitbucketServer<'_> {
    /// The path to something of the access keys.
    pub(super) fn keys<'b>(&'b self, rest: &[&'b str]) -> Vec<&'b str> {
        let (project, name) = (self.address.project.as_str(), self.address.name.as_str());
        [&["keys", "latest", "projects", project, "repos", name], rest].concat()
    }

    pub(super) async fn hosted(&self) -> Result<Option<Hosted>, Error> {
        let Some(found) = self.api.find::<Found>(&self.path(&[]), &[]).await? else {
            return Ok(None);
        };
        // Without a commit there is none.
        let branch: Option<Branch> = self.api.find(&self.path(&["branches", "default"]), &[]).await?;
        Ok(Some(Hosted {
            ssh: found.ssh(),
            default_branch: branch.map(|branch| branch.name).unwrap_or_default(),
        }))
    }

    pub(super) async fn make(&self, draft: Draft<'_>) -> Result<Hosted, Error> {
        let (project, name) = (self.address.project.as_str(), self.address.name.as_str());
        let mut body = json!({"name": name, "scmId": "git", "public": !draft.private,
            "description": draft.description});
        if !draft.default_branch.is_empty() {
            body["defaultBranch"] = draft.default_branch.into();
        }
        let path = ["api", "latest", "projects", project, "repos"];
        let made: Found = self.api.create(&path, &[], &body).await?;
        Ok(Hosted {
            ssh: made.ssh(),
            default_branch: String::new(),
        })
    }

    pub(super) async fn deploy_keys(&self) -> Result<Vec<DeployKey>, Error> {
        let (path, limit) = (self.keys(&["ssh"]), PAGE.to_string());
        let mut all = Vec::new();
        for page in 0..MAX_PAGES {
            let start = (page * PAGE).to_string();
            let query = [("start", start.as_str()), ("limit", &limit)];
            let found: Page<Access> = self.api.get(&path, &query).await?;
            all.extend(found.values.into_iter().map(|access| DeployKey {
                id: access.key.id.to_string(),
                title: access.key.label,
                key: without_comment(&access.key.text),
                read_only: access.permission == "REPO_READ",
            }));
            if found.is_last {
                break;
            }
        }
        Ok(all)
    }

    pub(super) async fn add_deploy_key(&self, title: &str, key: &str, read_only: bool) -> Result<(), Error> {
        let permission = if read_only { "REPO_READ" } else { "REPO_WRITE" };
        // The label is the comment of the key.
        let body =
            json!({"key": {"text": format!("{key} {title}"), "label": title}, "permission": permission});
        self.api.post(&self.keys(&["ssh"]), &[], &body).await.map(drop)
    }
}
