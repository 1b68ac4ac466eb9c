//! Bitbucket Cloud.

use http::Method as Verb;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::address::Repository;
use crate::api::Api;
use crate::check::{Check, State as CheckState, Status};
use crate::error::Error;
use crate::exchange::Exchange;
use crate::gitea::foreign;
use crate::log::{self, Commit};
use crate::pull_request::{Draft, Merge, Method, PullRequest, State, page, time};

/// There is one Bitbucket Cloud, whatever the host of the address.
pub const ROOT: &str = "https://api.bitbucket.org/2.0/";
const PAGE: (&str, &str) = ("pagelen", "50");
/// Where a status without a page leads to: Bitbucket wants one.
const LINK: &str = "https://bitbucket.org";

/// A repository at Bitbucket Cloud.
pub struct Bitbucket<'a> {
    /// Its API.
    pub api: Api<'a>,
    /// The repository.
    pub repository: Repository,
}

#[derive(Deserialize)]
struct Page<T> {
    #[serde(default = "Vec::new")]
    values: Vec<T>,
}

#[derive(Deserialize)]
struct Found {
    id: u64,
    title: Option<String>,
    description: Option<String>,
    state: Option<String>,
    source: Option<End>,
    destination: Option<End>,
    created_on: Option<String>,
    links: Option<Links>,
}

#[derive(Deserialize)]
struct End {
    branch: Option<Name>,
    commit: Option<Hash>,
    repository: Option<FullName>,
}

#[derive(Deserialize)]
struct Name {
    name: Option<String>,
}

#[derive(Deserialize)]
struct Hash {
    hash: Option<String>,
}

#[derive(Deserialize)]
struct FullName {
    full_name: Option<String>,
}

#[derive(Deserialize)]
struct Links {
    html: Option<Link>,
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

impl<'a> Bitbucket<'a> {
    /// The repository at this address, for who has this name and app password, or this access token.
    pub fn new(
        http: impl Exchange + 'a,
        root: Url,
        address: &str,
        username: &str,
        password: &str,
    ) -> Result<Self, Error> {
        let repository = Repository::parse(address)?;
        repository.owner_and_name()?;
        let api = Api::new(http, root);
        let api = match username {
            "" => api.bearer(password)?,
            username => api.basic(username, password)?,
        };
        Ok(Self { api, repository })
    }

    fn path<'b>(&'b self, rest: &[&'b str]) -> Result<Vec<&'b str>, Error> {
        let (owner, name) = self.repository.owner_and_name()?;
        Ok([&["repositories", owner, name], rest].concat())
    }

    /// The commits of `new` that `old` lacks.
    pub(crate) async fn commits(&self, old: &str, new: &str) -> Result<Vec<Commit>, Error> {
        let query = [("include", new), ("exclude", old), ("pagelen", log::MOST)];
        let found: log::Found = self.api.get(&self.path(&["commits"])?, &query).await?;
        Ok(found.own())
    }

    pub(crate) async fn find(&self, head: &str, base: &str) -> Result<Vec<PullRequest>, Error> {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let filter = format!(
            "source.branch.name=\"{}\" AND destination.branch.name=\"{}\"",
            quoted(head),
            quoted(base)
        );
        let query = [
            ("q", filter.as_str()),
            ("state", "OPEN"),
            ("state", "MERGED"),
            ("state", "DECLINED"),
            ("sort", "-created_on"),
            PAGE,
        ];
        let found: Page<Found> = self.api.get(&self.path(&["pullrequests"])?, &query).await?;
        let own = found.values.into_iter().filter_map(Found::own);
        Ok(own
            .filter(|request| request.head == head && request.base == base)
            .collect())
    }

    pub(crate) async fn open(&self, draft: Draft<'_>) -> Result<PullRequest, Error> {
        let body = json!({
            "title": draft.title,
            "description": draft.body,
            "source": {"branch": {"name": draft.head}},
            "destination": {"branch": {"name": draft.base}},
            "close_source_branch": true,
        });
        let found: Found = self
            .api
            .create(&self.path(&["pullrequests"])?, &[], &body)
            .await?;
        found.own().ok_or_else(foreign)
    }

    pub(crate) async fn edit(&self, number: u64, title: &str, body: &str) -> Result<(), Error> {
        self.put(number, json!({"title": title, "description": body}))
            .await
    }

    /// Asks people by their account IDs or UUIDs; Bitbucket keeps names to itself.
    pub(crate) async fn request_review(&self, request: &PullRequest, people: &[String]) -> Result<(), Error> {
        let reviewer = |id: &String| match id.starts_with('{') {
            true => json!({"uuid": id}),
            false => json!({"account_id": id}),
        };
        let reviewers: Vec<Value> = people.iter().map(reviewer).collect();
        // The title must be said again.
        let body = json!({"title": request.title, "reviewers": reviewers});
        self.put(request.number, body).await
    }

    async fn put(&self, number: u64, body: Value) -> Result<(), Error> {
        let number = number.to_string();
        let path = self.path(&["pullrequests", &number])?;
        self.api.send(Verb::PUT, &path, &[], &body).await.map(drop)
    }

    pub(crate) async fn close(&self, number: u64) -> Result<(), Error> {
        let number = number.to_string();
        let path = self.path(&["pullrequests", &number, "decline"])?;
        self.api.post(&path, &[], &json!({})).await.map(drop)
    }

    pub(crate) async fn comment(&self, number: u64, text: &str) -> Result<(), Error> {
        let number = number.to_string();
        let path = self.path(&["pullrequests", &number, "comments"])?;
        let body = json!({"content": {"raw": text}});
        self.api.post(&path, &[], &body).await.map(drop)
    }

    /// Bitbucket takes no commit with a merge, so the head is looked at just before.
    pub(crate) async fn merge(&self, number: u64, method: Method, commit: &str) -> Result<Merge, Error> {
        let way = match method {
            Method::Merge => "merge_commit",
            Method::Squash => "squash",
            Method::Rebase => "rebase_fast_forward",
        };
        let number = number.to_string();
        let found: Found = self.api.get(&self.path(&["pullrequests", &number])?, &[]).await?;
        let head = found.source.and_then(|source| source.commit?.hash);
        // Bitbucket shortens hashes.
        if !head.is_some_and(|head| head.len() >= 12 && commit.starts_with(&head)) {
            return Ok(Merge::NotYet("its branch has another commit".to_owned()));
        }
        let path = self.path(&["pullrequests", &number, "merge"])?;
        let body = json!({"type": "pullrequest", "merge_strategy": way, "close_source_branch": true});
        self.api.merge(Verb::POST, &path, &[], &body).await
    }

    pub(crate) async fn checks(&self, commit: &str) -> Result<Vec<Check>, Error> {
        let path = self.path(&["commit", commit, "statuses"])?;
        let found: Page<FoundStatus> = self.api.get(&path, &[("pagelen", "100")]).await?;
        Ok(found.values.into_iter().map(FoundStatus::check).collect())
    }

    /// The status with this key.
    pub async fn status(&self, commit: &str, key: &str) -> Result<Option<Check>, Error> {
        let path = self.path(&["commit", commit, "statuses", "build", key])?;
        let found: Option<FoundStatus> = self.api.find(&path, &[]).await?;
        Ok(found.map(FoundStatus::check))
    }

    /// Says something of a commit.
    pub async fn set_status(&self, status: Status<'_>, key: &str) -> Result<(), Error> {
        let state = match status.state {
            CheckState::Pending => "INPROGRESS",
            CheckState::Success => "SUCCESSFUL",
            CheckState::Failure => "FAILED",
        };
        let url = if status.url.is_empty() { LINK } else { status.url };
        let body = json!({
            "key": key,
            "state": state,
            "name": status.name,
            "url": url,
            "description": status.description,
        });
        let path = self.path(&["commit", status.commit, "statuses", "build"])?;
        self.api.post(&path, &[], &body).await.map(drop)
    }
}

impl FoundStatus {
    fn check(self) -> Check {
        Check {
            name: self.name.or(self.key).unwrap_or_default(),
            state: match self.state.as_deref() {
                Some("SUCCESSFUL") => CheckState::Success,
                Some("FAILED" | "STOPPED") => CheckState::Failure,
                _ => CheckState::Pending,
            },
            description: self.description.unwrap_or_default(),
        }
    }
}

impl Found {
    /// Returns None for one from a fork: its branch is not the branch of that name here.
    fn own(self) -> Option<PullRequest> {
        let (source, destination) = (self.source?, self.destination?);
        if source.repository?.full_name? != destination.repository?.full_name? {
            return None;
        }
        Some(PullRequest {
            number: self.id,
            url: page(self.links.and_then(|links| links.html?.href)),
            title: self.title.unwrap_or_default(),
            body: self.description.unwrap_or_default(),
            state: match self.state.as_deref() {
                Some("OPEN") => State::Open,
                Some("MERGED") => State::Merged,
                _ => State::Closed,
            },
            head: source.branch?.name?,
            base: destination.branch?.name?,
            commit: source.commit.and_then(|commit| commit.hash).unwrap_or_default(),
            opened: time(self.created_on),
        })
    }
}
