//! Bitbucket Server and Data Center.

use http::{HeaderName, Method as Verb};
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::api::{self, Api};
use crate::check::{Check, State as CheckState, Status};
use crate::error::Error;
use crate::exchange::Exchange;
use crate::gitea::foreign;
use crate::log::{self, Commit};
use crate::pull_request::{Draft, Merge, Method, PullRequest, State, page};

/// Path between the service and a repository in the URL of a clone.
const CLONE: &str = "/scm/";
const PAGE: (&str, &str) = ("limit", "100");

/// A repository at a service.
#[derive(Debug, PartialEq)]
pub struct Address {
    /// Where the service is, with its context path.
    pub root: Url,
    /// Key of the project.
    pub project: String,
    /// Name of the repository.
    pub name: String,
}

/// A repository at Bitbucket Server.
pub struct BitbucketServer<'a> {
    /// The API, at `/rest`.
    pub api: Api<'a>,
    /// The repository.
    pub address: Address,
}

#[derive(Deserialize)]
struct Page<T> {
    #[serde(default = "Vec::new")]
    values: Vec<T>,
}

#[derive(Deserialize)]
struct Found {
    id: u64,
    version: u64,
    title: Option<String>,
    description: Option<String>,
    state: Option<String>,
    #[serde(rename = "fromRef")]
    from: Option<End>,
    #[serde(rename = "toRef")]
    to: Option<End>,
    #[serde(rename = "createdDate")]
    created: Option<i64>,
    links: Option<Links>,
}

#[derive(Deserialize)]
struct End {
    #[serde(rename = "displayId")]
    name: Option<String>,
    #[serde(rename = "latestCommit")]
    commit: Option<String>,
    repository: Option<Id>,
}

#[derive(Deserialize)]
struct Id {
    id: Option<u64>,
}

#[derive(Deserialize)]
struct Links {
    #[serde(rename = "self", default)]
    own: Vec<Link>,
}

#[derive(Deserialize)]
struct Link {
    href: Option<String>,
}

#[derive(Deserialize)]
struct FoundStatus {
    key: Option<String>,
    name: Option<String>,
    state: Option<String>,
    description: Option<String>,
}

impl Address {
    /// Reads `https://host/context/scm/project/name.git`.
    pub fn parse(address: &str) -> Result<Self, Error> {
        let refuse = |problem: &str| Error::invalid(format!("could not parse git address: {problem}"));
        let mut root = Url::parse(address.trim()).map_err(|error| refuse(&error.to_string()))?;
        if !matches!(root.scheme(), "http" | "https") {
            return Err(refuse(
                "unsupported scheme type in address. Must be http or https",
            ));
        }
        let path = percent_decode_str(root.path()).decode_utf8();
        let path = path.map_err(|_| refuse("its path is not UTF-8"))?.into_owned();
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let (context, id) = path
            .rsplit_once(CLONE)
            .ok_or_else(|| refuse("supplied provider address is not http(s) git clone url"))?;
        let (project, name) = id
            .split_once('/')
            .filter(|(project, name)| !project.is_empty() && !name.is_empty() && !name.contains('/'))
            .ok_or_else(|| refuse("invalid repository id"))?;
        let (project, name) = (project.to_owned(), name.to_owned());
        let _ = root.set_username(""); // fails only for URLs that can have none
        let _ = root.set_password(None);
        root.set_query(None);
        root.set_fragment(None);
        root.set_path(context);
        Ok(Self { root, project, name })
    }
}

impl<'a> BitbucketServer<'a> {
    /// The repository at this address, for who has this name and password, or this token.
    pub fn new(
        http: impl Exchange + 'a,
        address: &str,
        username: &str,
        password: &str,
    ) -> Result<Self, Error> {
        let address = Address::parse(address)?;
        let api = Api::new(http, api::url(&address.root, &["rest"])?)
            .header(HeaderName::from_static("x-atlassian-token"), "no-check")
            .header(HeaderName::from_static("x-requested-with"), "XMLHttpRequest");
        let api = match username {
            "" => api.bearer(password)?,
            username => api.basic(username, password)?,
        };
        Ok(Self { api, address })
    }

    /// The path to something of the repository.
    pub fn path<'b>(&'b self, rest: &[&'b str]) -> Vec<&'b str> {
        let Address { project, name, .. } = &self.address;
        [&["api", "latest", "projects", project, "repos", name], rest].concat()
    }

    /// The commits of `new` that `old` lacks.
    pub(crate) async fn commits(&self, old: &str, new: &str) -> Result<Vec<Commit>, Error> {
        let query = [("since", old), ("until", new), ("limit", log::MOST)];
        let found: log::Found = self.api.get(&self.path(&["commits"]), &query).await?;
        Ok(found.own())
    }

    pub(crate) async fn find(&self, head: &str, base: &str) -> Result<Vec<PullRequest>, Error> {
        let at = format!("refs/heads/{head}");
        let query = [
            ("direction", "OUTGOING"),
            ("at", at.as_str()),
            ("state", "ALL"),
            ("order", "NEWEST"),
            PAGE,
        ];
        let found: Page<Found> = self.api.get(&self.path(&["pull-requests"]), &query).await?;
        let own = found.values.into_iter().filter_map(Found::own);
        Ok(own
            .filter(|request| request.head == head && request.base == base)
            .collect())
    }

    pub(crate) async fn open(&self, draft: Draft<'_>) -> Result<PullRequest, Error> {
        let Address { project, name, .. } = &self.address;
        let end = |branch: &str| {
            json!({
                "id": format!("refs/heads/{branch}"),
                "repository": {"slug": name, "project": {"key": project}},
            })
        };
        let body = json!({
            "title": draft.title,
            "description": draft.body,
            "fromRef": end(draft.head),
            "toRef": end(draft.base),
        });
        let path = self.path(&["pull-requests"]);
        let found: Found = self.api.create(&path, &[], &body).await?;
        found.own().ok_or_else(foreign)
    }

    pub(crate) async fn edit(&self, number: u64, title: &str, body: &str) -> Result<(), Error> {
        self.put(number, json!({"title": title, "description": body}))
            .await
    }

    pub(crate) async fn request_review(&self, request: &PullRequest, people: &[String]) -> Result<(), Error> {
        let reviewers: Vec<Value> = people
            .iter()
            .map(|name| json!({"user": {"name": name}}))
            .collect();
        // What is not said again is taken away.
        let body = json!({"title": request.title, "description": request.body, "reviewers": reviewers});
        self.put(request.number, body).await
    }

    /// Changes go through only for the version that they were made for.
    async fn put(&self, number: u64, mut body: Value) -> Result<(), Error> {
        body["version"] = self.get(number).await?.version.into();
        let number = number.to_string();
        let path = self.path(&["pull-requests", &number]);
        self.api.send(Verb::PUT, &path, &[], &body).await.map(drop)
    }

    async fn get(&self, number: u64) -> Result<Found, Error> {
        let number = number.to_string();
        self.api.get(&self.path(&["pull-requests", &number]), &[]).await
    }

    pub(crate) async fn close(&self, number: u64) -> Result<(), Error> {
        let version = self.get(number).await?.version.to_string();
        let number = number.to_string();
        let path = self.path(&["pull-requests", &number, "decline"]);
        let query = [("version", version.as_str())];
        self.api.post(&path, &query, &json!({})).await.map(drop)
    }

    pub(crate) async fn comment(&self, number: u64, text: &str) -> Result<(), Error> {
        let number = number.to_string();
        let path = self.path(&["pull-requests", &number, "comments"]);
        self.api.post(&path, &[], &json!({"text": text})).await.map(drop)
    }

    /// The version stands for the commit: a push makes a new one.
    pub(crate) async fn merge(&self, number: u64, method: Method, commit: &str) -> Result<Merge, Error> {
        let way = match method {
            Method::Merge => "no-ff",
            Method::Squash => "squash",
            Method::Rebase => "rebase-ff-only",
        };
        let found = self.get(number).await?;
        if found.from.and_then(|from| from.commit).as_deref() != Some(commit) {
            return Ok(Merge::NotYet("its branch has another commit".to_owned()));
        }
        let (number, version) = (number.to_string(), found.version.to_string());
        let path = self.path(&["pull-requests", &number, "merge"]);
        let query = [("version", version.as_str())];
        let body = json!({"strategyId": way});
        self.api.merge(Verb::POST, &path, &query, &body).await
    }

    pub(crate) async fn checks(&self, commit: &str) -> Result<Vec<Check>, Error> {
        let path = ["build-status", "1.0", "commits", commit];
        let found: Page<FoundStatus> = self.api.get(&path, &[PAGE]).await?;
        Ok(found.values.into_iter().map(FoundStatus::check).collect())
    }

    /// The status with this key.
    pub async fn status(&self, commit: &str, key: &str) -> Result<Option<Check>, Error> {
        let path = self.path(&["commits", commit, "builds"]);
        let found: Option<FoundStatus> = self.api.find(&path, &[("key", key)]).await?;
        let mine = found.filter(|found| found.key.as_deref() == Some(key));
        Ok(mine.map(FoundStatus::check))
    }

    /// Says something of a commit.
    pub async fn set_status(&self, status: Status<'_>, key: &str) -> Result<(), Error> {
        let state = match status.state {
            CheckState::Pending => "INPROGRESS",
            CheckState::Success => "SUCCESSFUL",
            CheckState::Failure => "FAILED",
        };
        let url = if status.url.is_empty() {
            self.address.root.as_str()
        } else {
            status.url
        };
        let body = json!({
            "key": key,
            "state": state,
            "name": status.name,
            "url": url,
            "description": status.description,
        });
        let path = self.path(&["commits", status.commit, "builds"]);
        self.api.post(&path, &[], &body).await.map(drop)
    }
}

impl FoundStatus {
    fn check(self) -> Check {
        Check {
            name: self.name.or(self.key).unwrap_or_default(),
            state: match self.state.as_deref() {
                Some("SUCCESSFUL") => CheckState::Success,
                Some("FAILED" | "CANCELLED") => CheckState::Failure,
                _ => CheckState::Pending,
            },
            description: self.description.unwrap_or_default(),
        }
    }
}

impl Found {
    /// Returns None for one from a fork: its branch is not the branch of that name here.
    fn own(self) -> Option<PullRequest> {
        let (from, to) = (self.from?, self.to?);
        if from.repository?.id? != to.repository?.id? {
            return None;
        }
        Some(PullRequest {
            number: self.id,
            url: page(self.links.and_then(|links| links.own.into_iter().next()?.href)),
            title: self.title.unwrap_or_default(),
            body: self.description.unwrap_or_default(),
            state: match self.state.as_deref() {
                Some("OPEN") => State::Open,
                Some("MERGED") => State::Merged,
                _ => State::Closed,
            },
            head: from.name?,
            base: to.name?,
            commit: from.commit.unwrap_or_default(),
            opened: self
                .created
                .and_then(|time| Timestamp::from_millisecond(time).ok()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(address: &str) -> String {
        match Address::parse(address) {
            Ok(repository) => format!("{} {} {}", repository.root, repository.project, repository.name),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_address_of_a_clone_has_place_project_and_name() {
        for (address, expected) in [
            (
                "https://example.com:7990/scm/projectfoo/repobar.git",
                "https://example.com:7990/ projectfoo repobar",
            ),
            (
                "https://u:p@example.com/context/scm/x/scm/foo/bar.git",
                "https://example.com/context/scm/x foo bar",
            ),
            ("http://example.com/scm/~me/bar", "http://example.com/ ~me bar"),
        ] {
            assert_eq!(parsed(address), expected);
        }
        for address in [
            "ssh://git@example.com/scm/foo/bar.git",
            "https://example.com/foo/bar.git",
            "https://example.com/scm/foo",
            "https://example.com/scm/foo/bar/baz.git",
            "",
        ] {
            assert!(
                parsed(address).starts_with("could not parse git address: "),
                "{address}"
            );
        }
    }
}
