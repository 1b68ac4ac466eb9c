//! Gitea and Forgejo.

use http::Method as Verb;
use http::header::AUTHORIZATION;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::address::Repository;
use crate::api::{self, Api};
use crate::check::{Check, State as CheckState, Status};
use crate::comment::Places;
use crate::error::Error;
use crate::exchange::Exchange;
use crate::incoming::Incoming;
use crate::log::{self, Commit};
use crate::pull_request::{Draft, Merge, Method, PullRequest, State, page, time};
use crate::reference::{self, Reference};

/// More is not given at once, unless the administrator says so.
const PAGE: usize = 50;
/// Pages of statuses that are looked through.
const MAX_STATUS_PAGES: usize = 4;
/// Pages of open pull requests for one base that are looked through.
const MAX_PAGES: usize = 10;

/// A repository at Gitea.
pub struct Gitea<'a> {
    /// Its API.
    pub api: Api<'a>,
    /// The repository.
    pub repository: Repository,
}

#[derive(Deserialize)]
struct Found {
    number: u64,
    html_url: Option<String>,
    title: Option<String>,
    body: Option<String>,
    state: Option<String>,
    #[serde(default)]
    merged: bool,
    head: Option<Branch>,
    base: Option<Branch>,
    created_at: Option<String>,
    user: Option<Person>,
    #[serde(default)]
    labels: Option<Vec<Label>>,
}

#[derive(Deserialize)]
struct Person {
    login: Option<String>,
}

#[derive(Deserialize)]
struct Branch {
    /// The branch, also when it is deleted.
    label: Option<String>,
    sha: Option<String>,
    repo_id: Option<u64>,
}

#[derive(Deserialize)]
struct Label {
    id: u64,
    name: String,
}

#[derive(Deserialize)]
struct FoundStatus {
    #[serde(default)]
    id: u64,
    status: Option<String>,
    context: Option<String>,
    description: Option<String>,
}

impl<'a> Gitea<'a> {
    /// The repository at this address, for who has this token.
    pub fn new(http: impl Exchange + 'a, address: &str, token: &str) -> Result<Self, Error> {
        let repository = Repository::parse(address)?;
        repository.owner_and_name()?;
        let root = api::url(&repository.origin, &["api", "v1"])?;
        let api = Api::new(http, root).secret_unless_empty(AUTHORIZATION, "token ", token)?;
        Ok(Self { api, repository })
    }

    /// The path to something of the repository.
    pub fn path<'b>(&'b self, rest: &[&'b str]) -> Result<Vec<&'b str>, Error> {
        let (owner, name) = self.repository.owner_and_name()?;
        Ok([&["repos", owner, name], rest].concat())
    }

    /// The commits of `new` that `old` lacks.
    pub(crate) async fn commits(&self, old: &str, new: &str) -> Result<Vec<Commit>, Error> {
        let between = format!("{old}...{new}");
        let path = self.path(&["compare", &between])?;
        let found: log::Found = self.api.get(&path, &[]).await?;
        Ok(found.own())
    }

    /// Open pull requests from `head` to `base`, and the ones that were closed lately.
    pub(crate) async fn find(&self, head: &str, base: &str) -> Result<Vec<PullRequest>, Error> {
        let mut found = self.list("open", Some(base), "oldest", MAX_PAGES).await?;
        found.extend(self.list("closed", Some(base), "recentclose", 1).await?);
        let own = found.into_iter().filter_map(Found::own);
        Ok(own
            .filter(|request| request.head == head && request.base == base)
            .collect())
    }

    /// All open pull requests to `base`.
    pub(crate) async fn incoming(&self, base: Option<&str>) -> Result<Vec<Incoming>, Error> {
        let found = self.list("open", base, "oldest", MAX_PAGES).await?;
        let all = found.into_iter().filter_map(Found::incoming);
        Ok(all.filter(|incoming| incoming.is_to(base)).collect())
    }

    pub(crate) async fn branches(&self) -> Result<Vec<Reference>, Error> {
        self.references("branches").await
    }

    pub(crate) async fn tags(&self) -> Result<Vec<Reference>, Error> {
        self.references("tags").await
    }

    async fn references(&self, what: &str) -> Result<Vec<Reference>, Error> {
        let (path, limit) = (self.path(&[what])?, PAGE.to_string());
        reference::pages(&self.api, &path, &[("limit", limit.as_str())], PAGE).await
    }

    /// Where the comments of a pull request are.
    pub fn comments<'b>(&'b self, number: &'b str) -> Result<Places<'b>, Error> {
        Ok(Places {
            all: self.path(&["issues", number, "comments"])?,
            each: self.path(&["issues", "comments"])?,
            change: Verb::PATCH,
            query: &[],
            // Gitea gives all comments at once, whatever page it is asked for.
            is_paged: false,
        })
    }

    async fn list(
        &self,
        state: &str,
        base: Option<&str>,
        sort: &str,
        pages: usize,
    ) -> Result<Vec<Found>, Error> {
        let path = self.path(&["pulls"])?;
        let limit = PAGE.to_string();
        let mut all = Vec::new();
        for number in 1..=pages {
            let number = number.to_string();
            let mut query = vec![
                ("state", state),
                ("sort", sort),
                ("page", &number),
                ("limit", &limit),
            ];
            query.splice(1..1, base.map(|base| ("base_branch", base)));
            let found: Vec<Found> = self.api.get(&path, &query).await?;
            let is_last = found.len() < PAGE;
            all.extend(found);
            if is_last {
                break;
            }
        }
        Ok(all)
    }

    pub(crate) async fn open(&self, draft: Draft<'_>) -> Result<PullRequest, Error> {
        let body = json!({"head": draft.head, "base": draft.base, "title": draft.title, "body": draft.body});
        let found: Found = self.api.create(&self.path(&["pulls"])?, &[], &body).await?;
        found.own().ok_or_else(foreign)
    }

    pub(crate) async fn edit(&self, number: u64, title: &str, body: &str) -> Result<(), Error> {
        self.patch(number, json!({"title": title, "body": body})).await
    }

    pub(crate) async fn close(&self, number: u64) -> Result<(), Error> {
        self.patch(number, json!({"state": "closed"})).await
    }

    async fn patch(&self, number: u64, body: Value) -> Result<(), Error> {
        let number = number.to_string();
        let path = self.path(&["pulls", &number])?;
        self.api.send(Verb::PATCH, &path, &[], &body).await.map(drop)
    }

    /// Labels by their numbers: a label that the repository lacks is made.
    pub(crate) async fn label(&self, number: u64, labels: &[String]) -> Result<(), Error> {
        let path = self.path(&["labels"])?;
        let limit = PAGE.to_string();
        let known: Vec<Label> = self.api.get(&path, &[("limit", &limit)]).await?;
        let mut ids = Vec::new();
        for label in labels {
            match known.iter().find(|known| known.name == *label) {
                Some(known) => ids.push(known.id),
                None => {
                    let body = json!({"name": label, "color": "#5a7fa8"});
                    let made: Label = self.api.create(&path, &[], &body).await?;
                    ids.push(made.id);
                }
            }
        }
        let number = number.to_string();
        let path = self.path(&["issues", &number, "labels"])?;
        self.api.post(&path, &[], &json!({"labels": ids})).await.map(drop)
    }

    pub(crate) async fn request_review(&self, number: u64, people: &[String]) -> Result<(), Error> {
        let number = number.to_string();
        let path = self.path(&["pulls", &number, "requested_reviewers"])?;
        let body = json!({"reviewers": people});
        self.api.post(&path, &[], &body).await.map(drop)
    }

    pub(crate) async fn comment(&self, number: u64, text: &str) -> Result<(), Error> {
        let number = number.to_string();
        let path = self.path(&["issues", &number, "comments"])?;
        self.api.post(&path, &[], &json!({"body": text})).await.map(drop)
    }

    pub(crate) async fn merge(&self, number: u64, method: Method, commit: &str) -> Result<Merge, Error> {
        let way = match method {
            Method::Merge => "merge",
            Method::Squash => "squash",
            Method::Rebase => "rebase",
        };
        let number = number.to_string();
        let path = self.path(&["pulls", &number, "merge"])?;
        let body = json!({"Do": way, "head_commit_id": commit, "delete_branch_after_merge": true});
        self.api.merge(Verb::POST, &path, &[], &body).await
    }

    /// What others say of a commit.
    pub(crate) async fn checks(&self, commit: &str) -> Result<Vec<Check>, Error> {
        let mut newest: Vec<FoundStatus> = Vec::new();
        for number in 1..=MAX_STATUS_PAGES {
            let (page, is_last) = self.statuses(commit, number).await?;
            for status in page {
                match newest.iter_mut().find(|known| known.context == status.context) {
                    Some(known) if known.id < status.id => *known = status,
                    Some(_) => {}
                    None => newest.push(status),
                }
            }
            if is_last {
                break;
            }
        }
        Ok(newest.into_iter().map(FoundStatus::check).collect())
    }

    /// The latest status of this name.
    pub async fn status(&self, commit: &str, name: &str) -> Result<Option<Check>, Error> {
        for number in 1..=MAX_STATUS_PAGES {
            let (page, is_last) = self.statuses(commit, number).await?;
            let mine = page
                .into_iter()
                .filter(|status| status.context.as_deref() == Some(name));
            let mine = mine.max_by_key(|status| status.id);
            if mine.is_some() || is_last {
                return Ok(mine.map(FoundStatus::check));
            }
        }
        Ok(None)
    }

    /// A page of statuses, the newest pages first. Within a second their order is open, so their numbers decide: the
    /// orders by number have their names swapped in some versions.
    async fn statuses(&self, commit: &str, page: usize) -> Result<(Vec<FoundStatus>, bool), Error> {
        let path = self.path(&["commits", commit, "statuses"])?;
        let (page, limit) = (page.to_string(), PAGE.to_string());
        let query = [
            ("page", page.as_str()),
            ("limit", &limit),
            ("sort", "recentupdate"),
        ];
        let found: Vec<FoundStatus> = self.api.get(&path, &query).await?;
        let is_last = found.len() < PAGE;
        Ok((found, is_last))
    }

    /// Says something of a commit.
    pub async fn set_status(&self, status: Status<'_>) -> Result<(), Error> {
        let state = match status.state {
            CheckState::Pending => "pending",
            CheckState::Success => "success",
            CheckState::Failure => "failure",
        };
        let body = json!({
            "state": state,
            "target_url": status.url,
            "description": status.description,
            "context": status.name,
        });
        let path = self.path(&["statuses", status.commit])?;
        self.api.post(&path, &[], &body).await.map(drop)
    }
}

impl FoundStatus {
    fn check(self) -> Check {
        Check {
            name: self.context.unwrap_or_default(),
            state: match self.status.as_deref() {
                Some("success" | "warning" | "skipped") => CheckState::Success,
                Some("failure" | "error") => CheckState::Failure,
                _ => CheckState::Pending,
            },
            description: self.description.unwrap_or_default(),
        }
    }
}

impl Found {
    /// Returns None for one from another repository: its branch is not the branch of that name here.
    fn own(self) -> Option<PullRequest> {
        (!self.is_fork()).then(|| self.request()).flatten()
    }

    fn is_fork(&self) -> bool {
        let id = |branch: &Option<Branch>| branch.as_ref().and_then(|branch| branch.repo_id);
        id(&self.head).is_none() || id(&self.head) != id(&self.base)
    }

    fn incoming(mut self) -> Option<Incoming> {
        let labels = self.labels.take().unwrap_or_default();
        Some(Incoming {
            is_fork: self.is_fork(),
            author: self.user.take().and_then(|user| user.login).unwrap_or_default(),
            labels: labels.into_iter().map(|label| label.name).collect(),
            request: self.request()?,
        })
    }

    fn request(self) -> Option<PullRequest> {
        let (head, base) = (self.head?, self.base?);
        Some(PullRequest {
            number: self.number,
            url: page(self.html_url),
            title: self.title.unwrap_or_default(),
            body: self.body.unwrap_or_default(),
            state: match self.state.as_deref() {
                Some("open") => State::Open,
                _ if self.merged => State::Merged,
                _ => State::Closed,
            },
            head: head.label?,
            base: base.label?,
            commit: head.sha.unwrap_or_default(),
            opened: time(self.created_at),
        })
    }
}

pub(crate) fn foreign() -> Error {
    Error::passing("the forge answered with a pull request of another repository")
}
