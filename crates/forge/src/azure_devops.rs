//! Azure DevOps, in the cloud and on premises.

use http::Method as Verb;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::address::Repository;
use crate::api::{self, Api};
use crate::check::{Check, State as CheckState, Status};
use crate::error::Error;
use crate::exchange::Exchange;
use crate::gitea::foreign;
use crate::incoming::Incoming;
use crate::log;
use crate::pull_request::{Draft, Merge, Method, PullRequest, State, time};
use crate::reference::Reference;

/// Azure DevOps Server has had it since 2020.
pub const VERSION: (&str, &str) = ("api-version", "6.0");
/// Which statuses are ours.
pub const GENRE: &str = "fluxcd";
/// Longer descriptions are refused, in characters.
const MAX_BODY: usize = 4000;
const BRANCHES: &str = "refs/heads/";
const TAGS: &str = "refs/tags/";
/// As many pull requests as are asked for at once, and how often.
const PAGE: usize = 100;
const MAX_PAGES: usize = 5;

/// A repository of a project of an organisation.
#[derive(Debug, PartialEq)]
pub struct Address {
    /// Where the organisation is.
    pub root: Url,
    /// The project.
    pub project: String,
    /// The repository.
    pub name: String,
}

/// A repository at Azure DevOps.
pub struct AzureDevOps<'a> {
    /// Its API.
    pub api: Api<'a>,
    /// The repository.
    pub address: Address,
}

#[derive(Deserialize)]
struct List<T> {
    #[serde(default = "Vec::new")]
    value: Vec<T>,
}

#[derive(Deserialize)]
struct Found {
    #[serde(rename = "pullRequestId")]
    id: u64,
    title: Option<String>,
    description: Option<String>,
    status: Option<String>,
    #[serde(rename = "sourceRefName")]
    source: Option<String>,
    #[serde(rename = "targetRefName")]
    target: Option<String>,
    #[serde(rename = "lastMergeSourceCommit")]
    commit: Option<Commit>,
    #[serde(rename = "creationDate")]
    created: Option<String>,
    #[serde(rename = "forkSource")]
    fork: Option<Value>,
    #[serde(rename = "createdBy")]
    author: Option<Identity>,
    labels: Option<Vec<Label>>,
}

/// A person, by the name that is one person's only.
#[derive(Deserialize)]
struct Identity {
    #[serde(rename = "uniqueName")]
    name: Option<String>,
}

#[derive(Deserialize)]
struct Label {
    name: String,
    active: Option<bool>,
}

/// A branch or tag. An annotated tag is an object of its own, and points to the commit.
#[derive(Deserialize)]
struct FoundReference {
    name: String,
    #[serde(rename = "objectId")]
    object: String,
    #[serde(rename = "peeledObjectId")]
    peeled: Option<String>,
}

#[derive(Deserialize)]
struct Commit {
    #[serde(rename = "commitId")]
    id: Option<String>,
}

/// How two commits differ, as far as it matters here.
#[derive(Deserialize)]
struct Difference {
    #[serde(rename = "commonCommit")]
    common: Option<String>,
}

#[derive(Deserialize)]
struct Logged {
    #[serde(rename = "commitId")]
    id: String,
    #[serde(default)]
    comment: String,
}

#[derive(Deserialize)]
struct FoundStatus {
    state: Option<String>,
    description: Option<String>,
    context: Option<Context>,
}

#[derive(Deserialize)]
struct Context {
    name: Option<String>,
    genre: Option<String>,
}

impl FoundStatus {
    fn check(self, name: String) -> Check {
        Check {
            name,
            state: match self.state.as_deref() {
                Some("succeeded" | "notApplicable") => CheckState::Success,
                Some("failed" | "error") => CheckState::Failure,
                _ => CheckState::Pending,
            },
            description: self.description.unwrap_or_default(),
        }
    }
}

impl Address {
    /// Reads `https://dev.azure.com/organisation/project/_git/name` and `git@ssh.dev.azure.com:v3/organisation/project/name`.
    pub fn parse(address: &str) -> Result<Self, Error> {
        let address = Repository::parse(address)?;
        let parts: Vec<&str> = address.id.split('/').collect();
        let (origin, [organisation, project, name]) = match parts[..] {
            ["v3", organisation, project, name] if address.host() == "ssh.dev.azure.com" => (
                Url::parse("https://dev.azure.com").expect("it is a constant"),
                [organisation, project, name],
            ),
            [organisation, project, _, name] => (address.origin.clone(), [organisation, project, name]),
            _ => return Err(Error::invalid(format!("invalid repository id '{}'", address.id))),
        };
        Ok(Self {
            root: api::url(&origin, &[organisation])?,
            project: project.to_owned(),
            name: name.to_owned(),
        })
    }

    fn page(&self, number: u64) -> String {
        let path = [
            self.project.as_str(),
            "_git",
            &self.name,
            "pullrequest",
            &number.to_string(),
        ];
        api::url(&self.root, &path).map(String::from).unwrap_or_default()
    }
}

impl<'a> AzureDevOps<'a> {
    /// The repository at this address, for who has this personal access token.
    pub fn new(http: impl Exchange + 'a, address: &str, token: &str) -> Result<Self, Error> {
        let address = Address::parse(address)?;
        let api = Api::new(http, address.root.clone()).basic("", token)?;
        Ok(Self { api, address })
    }

    /// The repository, for who has this token of an identity service.
    pub fn with_bearer(http: impl Exchange + 'a, address: Address, token: &str) -> Result<Self, Error> {
        let api = Api::new(http, address.root.clone()).bearer(token)?;
        Ok(Self { api, address })
    }

    /// The path to something of the repository.
    pub fn path<'b>(&'b self, rest: &[&'b str]) -> Vec<&'b str> {
        let Address { project, name, .. } = &self.address;
        [&[project.as_str(), "_apis", "git", "repositories", name], rest].concat()
    }

    pub(crate) async fn find(&self, head: &str, base: &str) -> Result<Vec<PullRequest>, Error> {
        let (source, target) = (format!("{BRANCHES}{head}"), format!("{BRANCHES}{base}"));
        let query = [
            VERSION,
            ("searchCriteria.sourceRefName", source.as_str()),
            ("searchCriteria.targetRefName", target.as_str()),
            ("searchCriteria.status", "all"),
            ("$top", "100"),
        ];
        let found: List<Found> = self.api.get(&self.path(&["pullrequests"]), &query).await?;
        let own = found.value.into_iter().filter_map(|found| self.own(found));
        Ok(own
            .filter(|request| request.head == head && request.base == base)
            .collect())
    }

    /// All open pull requests to `base`, the oldest first.
    pub(crate) async fn incoming(&self, base: Option<&str>) -> Result<Vec<Incoming>, Error> {
        let target = base.map(|base| format!("{BRANCHES}{base}"));
        let top = PAGE.to_string();
        let mut all = Vec::new();
        for page in 0..MAX_PAGES {
            let skip = (page * PAGE).to_string();
            let mut query = vec![
                VERSION,
                ("searchCriteria.status", "active"),
                ("$top", top.as_str()),
                ("$skip", skip.as_str()),
            ];
            query.extend(
                target
                    .iter()
                    .map(|target| ("searchCriteria.targetRefName", target.as_str())),
            );
            let found: List<Found> = self.api.get(&self.path(&["pullrequests"]), &query).await?;
            let is_last = found.value.len() < PAGE;
            all.extend(found.value.into_iter().filter_map(|found| self.seen(found)));
            if is_last {
                break;
            }
        }
        all.retain(|incoming| incoming.is_to(base));
        all.sort_by_key(|incoming| incoming.request.number);
        Ok(all)
    }

    pub(crate) async fn branches(&self) -> Result<Vec<Reference>, Error> {
        self.references(BRANCHES, &[VERSION, ("filter", "heads/")]).await
    }

    pub(crate) async fn tags(&self) -> Result<Vec<Reference>, Error> {
        self.references(TAGS, &[VERSION, ("filter", "tags/"), ("peelTags", "true")])
            .await
    }

    async fn references(&self, prefix: &str, query: &[(&str, &str)]) -> Result<Vec<Reference>, Error> {
        let found: List<FoundReference> = self.api.get(&self.path(&["refs"]), query).await?;
        let own = found.value.into_iter().filter_map(|found| {
            Some(Reference {
                name: found.name.strip_prefix(prefix)?.to_owned(),
                commit: found.peeled.unwrap_or(found.object),
            })
        });
        Ok(own.collect())
    }

    /// The commits of `new` down to what it has in common with `old`. Azure DevOps has no list of those that `old` lacks.
    pub(crate) async fn commits(&self, old: &str, new: &str) -> Result<Vec<log::Commit>, Error> {
        let query = [
            VERSION,
            ("baseVersion", old),
            ("baseVersionType", "commit"),
            ("targetVersion", new),
            ("targetVersionType", "commit"),
            ("$top", "1"),
        ];
        let difference: Difference = self.api.get(&self.path(&["diffs", "commits"]), &query).await?;
        let Some(common) = difference.common else {
            return Ok(Vec::new());
        };
        let query = [
            VERSION,
            ("searchCriteria.itemVersion.version", new),
            ("searchCriteria.itemVersion.versionType", "commit"),
            ("searchCriteria.$top", log::MOST),
        ];
        let found: List<Logged> = self.api.get(&self.path(&["commits"]), &query).await?;
        let own = found.value.into_iter().take_while(|found| found.id != common);
        Ok(own
            .map(|found| log::Commit::new(found.id, &found.comment))
            .collect())
    }

    pub(crate) async fn open(&self, draft: Draft<'_>) -> Result<PullRequest, Error> {
        let body = json!({
            "sourceRefName": format!("{BRANCHES}{}", draft.head),
            "targetRefName": format!("{BRANCHES}{}", draft.base),
            "title": draft.title,
            "description": cut(draft.body),
        });
        let path = self.path(&["pullrequests"]);
        let found: Found = self.api.create(&path, &[VERSION], &body).await?;
        self.own(found).ok_or_else(foreign)
    }

    pub(crate) async fn edit(&self, number: u64, title: &str, body: &str) -> Result<(), Error> {
        self.patch(number, json!({"title": title, "description": cut(body)}))
            .await
    }

    pub(crate) async fn close(&self, number: u64) -> Result<(), Error> {
        self.patch(number, json!({"status": "abandoned"})).await
    }

    async fn patch(&self, number: u64, body: Value) -> Result<(), Error> {
        let number = number.to_string();
        let path = self.path(&["pullrequests", &number]);
        self.api
            .send(Verb::PATCH, &path, &[VERSION], &body)
            .await
            .map(drop)
    }

    pub(crate) async fn label(&self, number: u64, labels: &[String]) -> Result<(), Error> {
        let number = number.to_string();
        let path = self.path(&["pullrequests", &number, "labels"]);
        for label in labels {
            let body = json!({"name": label});
            self.api.post(&path, &[VERSION], &body).await?;
        }
        Ok(())
    }

    /// Asks people by the IDs of their identities: Azure DevOps takes no names here.
    pub(crate) async fn request_review(&self, number: u64, people: &[String]) -> Result<(), Error> {
        let number = number.to_string();
        for id in people {
            let path = self.path(&["pullrequests", &number, "reviewers", id]);
            let body = json!({"vote": 0});
            self.api.send(Verb::PUT, &path, &[VERSION], &body).await?;
        }
        Ok(())
    }

    pub(crate) async fn comment(&self, number: u64, text: &str) -> Result<(), Error> {
        let number = number.to_string();
        let path = self.path(&["pullrequests", &number, "threads"]);
        let comment = json!({"parentCommentId": 0, "content": text, "commentType": 1});
        let body = json!({"comments": [comment], "status": 1});
        self.api.post(&path, &[VERSION], &body).await.map(drop)
    }

    pub(crate) async fn merge(&self, number: u64, method: Method, commit: &str) -> Result<Merge, Error> {
        let way = match method {
            Method::Merge => "noFastForward",
            Method::Squash => "squash",
            Method::Rebase => "rebase",
        };
        let number = number.to_string();
        let path = self.path(&["pullrequests", &number]);
        let body = json!({
            "status": "completed",
            "lastMergeSourceCommit": {"commitId": commit},
            "completionOptions": {"mergeStrategy": way, "deleteSourceBranch": true},
        });
        self.api.merge(Verb::PATCH, &path, &[VERSION], &body).await
    }

    pub(crate) async fn checks(&self, commit: &str) -> Result<Vec<Check>, Error> {
        let found = self.statuses(commit).await?;
        let check = |status: FoundStatus| {
            let context = status.context.as_ref()?;
            let name = context.name.as_ref()?;
            let name = match context.genre.as_ref().filter(|genre| !genre.is_empty()) {
                Some(genre) => format!("{genre}/{name}"),
                None => name.clone(),
            };
            Some(status.check(name))
        };
        Ok(found.into_iter().filter_map(check).collect())
    }

    /// The latest status of this genre and name.
    pub async fn status(&self, commit: &str, genre: &str, name: &str) -> Result<Option<Check>, Error> {
        let is_mine = |found: &FoundStatus| {
            let context = found.context.as_ref();
            context.is_some_and(|context| {
                context.name.as_deref() == Some(name) && context.genre.as_deref() == Some(genre)
            })
        };
        let found = self.statuses(commit).await?.into_iter().find(is_mine);
        Ok(found.map(|found| found.check(name.to_owned())))
    }

    async fn statuses(&self, commit: &str) -> Result<Vec<FoundStatus>, Error> {
        let path = self.path(&["commits", commit, "statuses"]);
        let query = [VERSION, ("latestOnly", "true")];
        let found: List<FoundStatus> = self.api.get(&path, &query).await?;
        Ok(found.value)
    }

    /// Says something of a commit.
    pub async fn set_status(&self, status: Status<'_>, genre: &str) -> Result<(), Error> {
        let state = match status.state {
            CheckState::Pending => "pending",
            CheckState::Success => "succeeded",
            CheckState::Failure => "error",
        };
        let mut body = json!({
            "state": state,
            "description": status.description,
            "context": {"genre": genre, "name": status.name},
        });
        if !status.url.is_empty() {
            body["targetUrl"] = status.url.into();
        }
        let path = self.path(&["commits", status.commit, "statuses"]);
        self.api.post(&path, &[VERSION], &body).await.map(drop)
    }

    fn seen(&self, mut found: Found) -> Option<Incoming> {
        let labels = found.labels.take().unwrap_or_default().into_iter();
        let labels = labels.filter(|label| label.active.unwrap_or(true));
        Some(Incoming {
            is_fork: is_fork(&found),
            author: found
                .author
                .take()
                .and_then(|author| author.name)
                .unwrap_or_default(),
            labels: labels.map(|label| label.name).collect(),
            request: self.request(found)?,
        })
    }

    /// Returns None for one from a fork: its branch is not the branch of that name here.
    fn own(&self, found: Found) -> Option<PullRequest> {
        match is_fork(&found) {
            true => None,
            false => self.request(found),
        }
    }

    fn request(&self, found: Found) -> Option<PullRequest> {
        let branch = |name: Option<String>| name?.strip_prefix(BRANCHES).map(str::to_owned);
        Some(PullRequest {
            number: found.id,
            // The forge gives the URL of the API only.
            url: self.address.page(found.id),
            title: found.title.unwrap_or_default(),
            body: found.description.unwrap_or_default(),
            state: match found.status.as_deref() {
                Some("active") => State::Open,
                Some("completed") => State::Merged,
                _ => State::Closed,
            },
            head: branch(found.source)?,
            base: branch(found.target)?,
            commit: found.commit.and_then(|commit| commit.id).unwrap_or_default(),
            opened: time(found.created),
        })
    }
}

fn is_fork(found: &Found) -> bool {
    found.fork.as_ref().is_some_and(|fork| !fork.is_null())
}

/// The beginning of a description. Markers stand at its beginning.
fn cut(body: &str) -> String {
    match body.char_indices().nth(MAX_BODY) {
        Some((end, _)) => body[..end].to_owned(),
        None => body.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_organisation_project_and_name() {
        for (address, expected) in [
            (
                "https://dev.azure.com/foo/bar/_git/baz",
                "https://dev.azure.com/foo bar baz",
            ),
            (
                "https://me@dev.azure.com/foo/my%20bar/_git/baz",
                "https://dev.azure.com/foo my bar baz",
            ),
            (
                "git@ssh.dev.azure.com:v3/foo/bar/baz",
                "https://dev.azure.com/foo bar baz",
            ),
            (
                "https://tfs.local:8080/foo/bar/_git/baz",
                "https://tfs.local:8080/foo bar baz",
            ),
        ] {
            let address = Address::parse(address).unwrap();
            let text = format!("{} {} {}", address.root, address.project, address.name);
            assert_eq!(text, expected);
        }
        assert!(Address::parse("https://dev.azure.com/foo/bar/baz").is_err());
    }
}
