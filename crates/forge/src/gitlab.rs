//! GitLab, in the cloud and on premises. Its pull requests are called merge requests.

use http::{HeaderName, Method as Verb};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::address::Repository;
use crate::api::{self, Api};
use crate::check::{Check, State as CheckState, Status};
use crate::comment::Places;
use crate::deployment::Deployment;
use crate::error::Error;
use crate::exchange::Exchange;
use crate::gitea::foreign;
use crate::incoming::Incoming;
use crate::log::{self, Commit};
use crate::pull_request::{Draft, Merge, Method, PullRequest, State, page, time};
use crate::reference::{self, Reference};

/// As many as GitLab gives at once.
const PAGE_SIZE: usize = 100;
const PAGE: (&str, &str) = ("per_page", "100");
/// Pages of open merge requests that are looked through.
const MAX_PAGES: usize = 5;

/// A project at GitLab, by its path or its number.
pub struct GitLab<'a> {
    /// Its API.
    pub api: Api<'a>,
    /// The project.
    pub project: String,
}

#[derive(Deserialize)]
struct Found {
    iid: u64,
    web_url: Option<String>,
    title: Option<String>,
    description: Option<String>,
    state: Option<String>,
    source_branch: Option<String>,
    target_branch: Option<String>,
    source_project_id: Option<u64>,
    target_project_id: Option<u64>,
    sha: Option<String>,
    created_at: Option<String>,
    author: Option<Author>,
    #[serde(default)]
    labels: Vec<String>,
}

#[derive(Deserialize)]
struct Author {
    username: Option<String>,
}

#[derive(Deserialize)]
struct Person {
    id: u64,
}

#[derive(Deserialize)]
struct FoundDeployment {
    id: u64,
    sha: Option<String>,
    status: Option<String>,
}

#[derive(Deserialize)]
struct FoundStatus {
    #[serde(default)]
    id: u64,
    name: Option<String>,
    status: Option<String>,
    description: Option<String>,
    #[serde(default)]
    allow_failure: bool,
}

impl<'a> GitLab<'a> {
    /// The project at this address, for who has this token.
    pub fn new(http: impl Exchange + 'a, address: &str, token: &str) -> Result<Self, Error> {
        let repository = Repository::parse(address)?;
        let root = api::url(&repository.origin, &["api", "v4"])?;
        let header = HeaderName::from_static("private-token");
        Ok(Self {
            api: Api::new(http, root).secret_unless_empty(header, "", token)?,
            project: repository.id,
        })
    }

    pub(crate) fn path<'b>(&'b self, rest: &[&'b str]) -> Vec<&'b str> {
        [&["projects", &self.project], rest].concat()
    }

    /// The commits of `new` that `old` lacks.
    pub(crate) async fn commits(&self, old: &str, new: &str) -> Result<Vec<Commit>, Error> {
        let path = self.path(&["repository", "compare"]);
        let found: log::Found = self.api.get(&path, &[("from", old), ("to", new)]).await?;
        Ok(found.own())
    }

    pub(crate) async fn find(&self, head: &str, base: &str) -> Result<Vec<PullRequest>, Error> {
        let query = [
            ("source_branch", head),
            ("target_branch", base),
            ("state", "all"),
            ("order_by", "created_at"),
            ("sort", "desc"),
            PAGE,
        ];
        let found: Vec<Found> = self.api.get(&self.path(&["merge_requests"]), &query).await?;
        let own = found.into_iter().filter_map(Found::own);
        Ok(own
            .filter(|request| request.head == head && request.base == base)
            .collect())
    }

    /// All open merge requests to `base`, the oldest first.
    pub(crate) async fn incoming(
        &self,
        base: Option<&str>,
        known: &mut Option<String>,
    ) -> Result<Option<Vec<Incoming>>, Error> {
        let mut all = Vec::new();
        for number in 1..=MAX_PAGES {
            let number = number.to_string();
            let mut query = vec![
                ("state", "opened"),
                ("order_by", "created_at"),
                ("sort", "asc"),
                PAGE,
                ("page", number.as_str()),
            ];
            query.splice(0..0, base.map(|base| ("target_branch", base)));
            let found: Vec<Found> = match number.as_str() {
                "1" => match self
                    .api
                    .get_new(&self.path(&["merge_requests"]), &query, known)
                    .await?
                {
                    Some(found) => found,
                    None => return Ok(None),
                },
                _ => self.api.get(&self.path(&["merge_requests"]), &query).await?,
            };
            let is_last = found.len() < PAGE_SIZE;
            all.extend(found.into_iter().filter_map(Found::incoming));
            if is_last {
                break;
            }
        }
        if all.len() >= PAGE_SIZE {
            *known = None; // the tag is that of the first page
        }
        all.retain(|incoming| incoming.is_to(base));
        Ok(Some(all))
    }

    pub(crate) async fn branches(&self) -> Result<Vec<Reference>, Error> {
        reference::pages(
            &self.api,
            &self.path(&["repository", "branches"]),
            &[PAGE],
            PAGE_SIZE,
        )
        .await
    }

    pub(crate) async fn tags(&self) -> Result<Vec<Reference>, Error> {
        reference::pages(&self.api, &self.path(&["repository", "tags"]), &[PAGE], PAGE_SIZE).await
    }

    /// Where the notes of a merge request are.
    pub fn comments<'b>(&'b self, number: &'b str) -> Places<'b> {
        let notes = self.path(&["merge_requests", number, "notes"]);
        Places {
            all: notes.clone(),
            each: notes,
            change: Verb::PUT,
            query: &[("sort", "asc"), ("order_by", "created_at")],
            is_paged: true,
        }
    }

    pub(crate) async fn open(&self, draft: Draft<'_>) -> Result<PullRequest, Error> {
        let body = json!({
            "source_branch": draft.head,
            "target_branch": draft.base,
            "title": draft.title,
            "description": draft.body,
            "remove_source_branch": true,
        });
        let found: Found = self
            .api
            .create(&self.path(&["merge_requests"]), &[], &body)
            .await?;
        found.own().ok_or_else(foreign)
    }

    pub(crate) async fn edit(&self, number: u64, title: &str, body: &str) -> Result<(), Error> {
        self.put(number, json!({"title": title, "description": body}))
            .await
    }

    pub(crate) async fn close(&self, number: u64) -> Result<(), Error> {
        self.put(number, json!({"state_event": "close"})).await
    }

    pub(crate) async fn label(&self, number: u64, labels: &[String]) -> Result<(), Error> {
        self.put(number, json!({"add_labels": labels.join(",")})).await
    }

    /// Asks people by their names, which GitLab wants as numbers.
    pub(crate) async fn request_review(&self, number: u64, people: &[String]) -> Result<(), Error> {
        let mut ids = Vec::new();
        for name in people {
            let found: Vec<Person> = self.api.get(&["users"], &[("username", name)]).await?;
            let person = found.first();
            let person = person.ok_or_else(|| Error::invalid(format!("GitLab knows no user '{name}'")))?;
            ids.push(person.id);
        }
        self.put(number, json!({"reviewer_ids": ids})).await
    }

    async fn put(&self, number: u64, body: Value) -> Result<(), Error> {
        let number = number.to_string();
        let path = self.path(&["merge_requests", &number]);
        self.api.send(Verb::PUT, &path, &[], &body).await.map(drop)
    }

    pub(crate) async fn comment(&self, number: u64, text: &str) -> Result<(), Error> {
        let number = number.to_string();
        let path = self.path(&["merge_requests", &number, "notes"]);
        self.api.post(&path, &[], &json!({"body": text})).await.map(drop)
    }

    /// Merges as the project is set up; a squash can be asked for, a rebase cannot.
    pub(crate) async fn merge(&self, number: u64, method: Method, commit: &str) -> Result<Merge, Error> {
        let number = number.to_string();
        let path = self.path(&["merge_requests", &number, "merge"]);
        let body = json!({
            "sha": commit,
            "squash": method == Method::Squash,
            "should_remove_source_branch": true,
        });
        self.api.merge(Verb::PUT, &path, &[], &body).await
    }

    /// Statuses, and the jobs of pipelines, which GitLab lists among them.
    pub(crate) async fn checks(&self, commit: &str) -> Result<Vec<Check>, Error> {
        let path = self.path(&["repository", "commits", commit, "statuses"]);
        let mut found: Vec<FoundStatus> = self.api.get(&path, &[PAGE]).await?;
        // Those of other branches come besides; the newest counts.
        found.sort_by_key(|status| std::cmp::Reverse(status.id));
        let mut checks: Vec<Check> = Vec::new();
        for status in found {
            let name = status.name.clone().unwrap_or_default();
            if checks.iter().all(|check| check.name != name) {
                checks.push(status.check(name));
            }
        }
        Ok(checks)
    }

    /// The latest status of this name. GitLab leaves out those that a later one replaced, yet not those of other branches.
    pub async fn status(&self, commit: &str, name: &str) -> Result<Option<Check>, Error> {
        let path = self.path(&["repository", "commits", commit, "statuses"]);
        let query = [("name", name), ("order_by", "id"), ("sort", "desc")];
        let found: Vec<FoundStatus> = self.api.get(&path, &query).await?;
        let mine = found
            .into_iter()
            .filter(|found| found.name.as_deref() == Some(name));
        let mine = mine.max_by_key(|found| found.id);
        Ok(mine.map(|mine| mine.check(name.to_owned())))
    }

    /// Says something of a commit.
    pub async fn set_status(&self, status: Status<'_>) -> Result<(), Error> {
        let state = match status.state {
            CheckState::Pending => "pending",
            CheckState::Success => "success",
            CheckState::Failure => "failed",
        };
        let mut body = json!({"state": state, "name": status.name, "description": status.description});
        if !status.url.is_empty() {
            body["target_url"] = status.url.into();
        }
        let path = self.path(&["statuses", status.commit]);
        self.api.post(&path, &[], &body).await.map(drop)
    }
}

impl GitLab<'_> {
    /// Reports that a commit is in an environment, or on its way there.
    pub async fn deploy(&self, deployment: Deployment<'_>) -> Result<(), Error> {
        let deployed = self.report_deployment(deployment).await;
        deployed.map_err(|error| error.within("failed to report the deployment"))
    }

    async fn report_deployment(&self, deployment: Deployment<'_>) -> Result<(), Error> {
        let Deployment {
            commit, environment, ..
        } = deployment;
        let state = match deployment.state {
            CheckState::Pending => "running",
            CheckState::Success => "success",
            CheckState::Failure => "failed",
        };
        let query = [
            ("environment", environment),
            ("order_by", "id"),
            ("sort", "desc"),
            PAGE,
        ];
        let known: Vec<FoundDeployment> = self.api.get(&self.path(&["deployments"]), &query).await?;
        let known = known
            .into_iter()
            .find(|known| known.sha.as_deref() == Some(commit));
        match known {
            None => {
                // A branch is asked for, and a commit is taken.
                let body = json!({
                    "environment": environment, "sha": commit, "ref": commit, "tag": false, "status": state,
                });
                self.api
                    .post(&self.path(&["deployments"]), &[], &body)
                    .await
                    .map(drop)
            }
            // What ended does not begin again, and nothing is said twice.
            Some(known)
                if deployment.state == CheckState::Pending || known.status.as_deref() == Some(state) =>
            {
                Ok(())
            }
            Some(known) => {
                let id = known.id.to_string();
                let path = self.path(&["deployments", &id]);
                self.api
                    .send(Verb::PUT, &path, &[], &json!({"status": state}))
                    .await
                    .map(drop)
            }
        }
    }
}

impl FoundStatus {
    fn check(self, name: String) -> Check {
        Check {
            name,
            state: match self.status.as_deref() {
                Some("success" | "skipped") => CheckState::Success,
                Some("failed" | "canceled" | "manual") if self.allow_failure => CheckState::Success,
                Some("failed" | "canceled") => CheckState::Failure,
                _ => CheckState::Pending,
            },
            description: self.description.unwrap_or_default(),
        }
    }
}

impl Found {
    /// Returns None for one from a fork: its branch is not the branch of that name here.
    fn own(self) -> Option<PullRequest> {
        (!self.is_fork()).then(|| self.request()).flatten()
    }

    fn is_fork(&self) -> bool {
        self.source_project_id.is_none() || self.source_project_id != self.target_project_id
    }

    fn incoming(mut self) -> Option<Incoming> {
        let labels = std::mem::take(&mut self.labels);
        Some(Incoming {
            is_fork: self.is_fork(),
            author: self
                .author
                .take()
                .and_then(|author| author.username)
                .unwrap_or_default(),
            labels,
            request: self.request()?,
        })
    }

    fn request(self) -> Option<PullRequest> {
        Some(PullRequest {
            number: self.iid,
            url: page(self.web_url),
            title: self.title.unwrap_or_default(),
            body: self.description.unwrap_or_default(),
            state: match self.state.as_deref() {
                Some("opened") => State::Open,
                Some("merged") => State::Merged,
                // "locked" is a merge under way.
                Some("locked") => State::Open,
                _ => State::Closed,
            },
            head: self.source_branch?,
            base: self.target_branch?,
            commit: self.sha.unwrap_or_default(),
            opened: time(self.created_at),
        })
    }
}
