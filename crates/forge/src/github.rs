//! GitHub, in the cloud and on premises.

use http::header::{ACCEPT, AUTHORIZATION};
use http::{HeaderName, Method as Verb};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::address::Repository;
use crate::annotation::{self, Annotated};
use crate::api::{self, Api};
use crate::check::{Check, State as CheckState, Status};
use crate::comment::Places;
use crate::deployment::Deployment;
use crate::error::Error;
use crate::exchange::Exchange;
use crate::gitea::foreign;
use crate::incoming::Incoming;
use crate::log::{self, Commit};
use crate::markdown::code;
use crate::pull_request::{Draft, Merge, Method, PullRequest, State, page, time};
use crate::reference::{self, Reference};

/// As many as GitHub gives at once.
const PAGE_SIZE: usize = 100;
const PAGE: (&str, &str) = ("per_page", "100");
/// Pages of open pull requests that are looked through.
const MAX_PAGES: usize = 5;
/// A commit has a status for each object and Provider.
const MAX_STATUS_PAGES: usize = 3;

/// A repository at GitHub.
pub struct GitHub<'a> {
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
    merged_at: Option<String>,
    head: Option<Branch>,
    base: Option<Branch>,
    created_at: Option<String>,
    user: Option<Person>,
    #[serde(default)]
    labels: Vec<Label>,
}

#[derive(Deserialize)]
struct Person {
    login: Option<String>,
}

#[derive(Deserialize)]
struct Label {
    name: String,
}

#[derive(Deserialize)]
struct Branch {
    #[serde(rename = "ref")]
    name: Option<String>,
    sha: Option<String>,
    repo: Option<Id>,
}

#[derive(Deserialize)]
struct Id {
    id: Option<u64>,
}

#[derive(Deserialize)]
struct Combined {
    #[serde(default)]
    statuses: Vec<FoundStatus>,
}

#[derive(Deserialize)]
struct FoundStatus {
    state: Option<String>,
    context: Option<String>,
    description: Option<String>,
}

#[derive(Deserialize)]
struct Identified {
    id: u64,
}

#[derive(Deserialize)]
struct Runs {
    #[serde(default)]
    check_runs: Vec<Run>,
}

#[derive(Deserialize)]
struct Run {
    name: Option<String>,
    conclusion: Option<String>,
}

impl<'a> GitHub<'a> {
    /// The repository at this address, for who has this token.
    pub fn new(http: impl Exchange + 'a, address: &str, token: &str) -> Result<Self, Error> {
        let repository = Repository::parse(address)?;
        repository.owner_and_name()?;
        let api = Api::new(http, root(&repository)?)
            .header(ACCEPT, "application/vnd.github+json")
            .header(HeaderName::from_static("x-github-api-version"), "2022-11-28")
            .secret_unless_empty(AUTHORIZATION, "Bearer ", token)?;
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
        let found: log::Found = self.api.get(&path, &[("per_page", log::MOST)]).await?;
        Ok(found.own())
    }

    pub(crate) async fn find(&self, head: &str, base: &str) -> Result<Vec<PullRequest>, Error> {
        let (owner, _) = self.repository.owner_and_name()?;
        let branch = format!("{owner}:{head}");
        let query = [
            ("state", "all"),
            ("head", branch.as_str()),
            ("base", base),
            ("sort", "created"),
            ("direction", "desc"),
            PAGE,
        ];
        let found: Vec<Found> = self.api.get(&self.path(&["pulls"])?, &query).await?;
        let own = found.into_iter().filter_map(Found::own);
        // GitHub leaves out the filter if it cannot read it.
        Ok(own
            .filter(|request| request.head == head && request.base == base)
            .collect())
    }

    /// All open pull requests to `base`, the oldest first.
    pub(crate) async fn incoming(
        &self,
        base: Option<&str>,
        known: &mut Option<String>,
    ) -> Result<Option<Vec<Incoming>>, Error> {
        let path = self.path(&["pulls"])?;
        let mut all = Vec::new();
        for number in 1..=MAX_PAGES {
            let number = number.to_string();
            let mut query = vec![
                ("state", "open"),
                ("sort", "created"),
                ("direction", "asc"),
                PAGE,
                ("page", number.as_str()),
            ];
            query.splice(1..1, base.map(|base| ("base", base)));
            let found: Vec<Found> = match number.as_str() {
                "1" => match self.api.get_new(&path, &query, known).await? {
                    Some(found) => found,
                    None => return Ok(None),
                },
                _ => self.api.get(&path, &query).await?,
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
        reference::pages(&self.api, &self.path(&["branches"])?, &[PAGE], PAGE_SIZE).await
    }

    pub(crate) async fn tags(&self) -> Result<Vec<Reference>, Error> {
        reference::pages(&self.api, &self.path(&["tags"])?, &[PAGE], PAGE_SIZE).await
    }

    /// Where the comments of a pull request are.
    pub fn comments<'b>(&'b self, number: &'b str) -> Result<Places<'b>, Error> {
        Ok(Places {
            all: self.path(&["issues", number, "comments"])?,
            each: self.path(&["issues", "comments"])?,
            change: Verb::PATCH,
            query: &[],
            is_paged: true,
        })
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

    pub(crate) async fn label(&self, number: u64, labels: &[String]) -> Result<(), Error> {
        let number = number.to_string();
        let path = self.path(&["issues", &number, "labels"])?;
        self.api
            .post(&path, &[], &json!({"labels": labels}))
            .await
            .map(drop)
    }

    /// Asks people, and teams as `organisation/team`.
    pub(crate) async fn request_review(&self, number: u64, people: &[String]) -> Result<(), Error> {
        let number = number.to_string();
        let path = self.path(&["pulls", &number, "requested_reviewers"])?;
        let teams: Vec<&str> = people
            .iter()
            .filter_map(|name| Some(name.split_once('/')?.1))
            .collect();
        let people: Vec<&String> = people.iter().filter(|name| !name.contains('/')).collect();
        let body = json!({"reviewers": people, "team_reviewers": teams});
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
        let body = json!({"merge_method": way, "sha": commit});
        self.api.merge(Verb::PUT, &path, &[], &body).await
    }

    /// Statuses and check runs: GitHub has both.
    pub(crate) async fn checks(&self, commit: &str) -> Result<Vec<Check>, Error> {
        let path = self.path(&["commits", commit, "status"])?;
        let combined: Combined = self.api.get(&path, &[PAGE]).await?;
        let path = self.path(&["commits", commit, "check-runs"])?;
        let runs: Runs = self.api.get(&path, &[("filter", "latest"), PAGE]).await?;
        let statuses = combined.statuses.into_iter().map(FoundStatus::check);
        let runs = runs.check_runs.into_iter().map(|run| Check {
            name: run.name.unwrap_or_default(),
            state: match run.conclusion.as_deref() {
                Some("success" | "neutral" | "skipped") => CheckState::Success,
                Some(_) => CheckState::Failure,
                None => CheckState::Pending,
            },
            description: run.conclusion.unwrap_or_default(),
        });
        Ok(statuses.chain(runs).collect())
    }

    /// The latest status of this name; the latest come first.
    pub async fn status(&self, commit: &str, name: &str) -> Result<Option<Check>, Error> {
        let path = self.path(&["commits", commit, "statuses"])?;
        for page in 1..=MAX_STATUS_PAGES {
            let page = page.to_string();
            let found: Vec<FoundStatus> = self.api.get(&path, &[PAGE, ("page", &page)]).await?;
            let is_last = found.len() < PAGE_SIZE;
            let mine = found.into_iter().map(FoundStatus::check);
            let mine = mine.into_iter().find(|check| check.name == name);
            if mine.is_some() || is_last {
                return Ok(mine);
            }
        }
        Ok(None)
    }

    /// Says something of a commit.
    pub async fn set_status(&self, status: Status<'_>) -> Result<(), Error> {
        let state = match status.state {
            CheckState::Pending => "pending",
            CheckState::Success => "success",
            CheckState::Failure => "failure",
        };
        let mut body = json!({"state": state, "description": status.description, "context": status.name});
        if !status.url.is_empty() {
            body["target_url"] = status.url.into();
        }
        let path = self.path(&["statuses", status.commit])?;
        self.api.post(&path, &[], &body).await.map(drop)
    }

    /// Makes a check run, which takes the place of the one before of that name.
    pub(crate) async fn annotate(&self, check: Annotated<'_>) -> Result<(), Error> {
        let conclusion = match check.state {
            CheckState::Success => "success",
            CheckState::Failure => "failure",
            CheckState::Pending => "neutral",
        };
        let annotations = check.annotations.iter().take(annotation::MAX);
        let annotations = annotations.map(|one| {
            let level = if one.is_failure { "failure" } else { "warning" };
            json!({"path": one.file, "start_line": one.line, "end_line": one.line, "annotation_level": level,
                "title": one.title, "message": one.message})
        });
        let body = json!({
            "name": check.name, "head_sha": check.commit, "status": "completed", "conclusion": conclusion,
            "output": {
                "title": check.title, "summary": code(check.title),
                "annotations": annotations.collect::<Vec<_>>(),
            },
        });
        let path = self.path(&["check-runs"])?;
        self.api.post(&path, &[], &body).await.map(drop)
    }
}

impl FoundStatus {
    fn check(self) -> Check {
        Check {
            name: self.context.unwrap_or_default(),
            state: match self.state.as_deref() {
                Some("success") => CheckState::Success,
                Some("failure" | "error") => CheckState::Failure,
                _ => CheckState::Pending,
            },
            description: self.description.unwrap_or_default(),
        }
    }
}

impl GitHub<'_> {
    /// Reports that a commit is in an environment, or on its way there. The deployments of earlier commits become inactive.
    pub async fn deploy(&self, deployment: Deployment<'_>) -> Result<(), Error> {
        let deployed = self.report_deployment(deployment).await;
        deployed.map_err(|error| error.within("failed to report the deployment"))
    }

    async fn report_deployment(&self, deployment: Deployment<'_>) -> Result<(), Error> {
        let Deployment {
            commit,
            environment,
            description,
            ..
        } = deployment;
        let all = self.path(&["deployments"])?;
        let query = [("sha", commit), ("environment", environment), ("per_page", "1")];
        let mut known: Vec<Identified> = self.api.get(&all, &query).await?;
        let id = match known.pop() {
            Some(known) => known.id,
            None => {
                // Neither is anything merged, nor are checks waited for: it has happened.
                let body = json!({
                    "ref": commit, "environment": environment, "description": description, "auto_merge": false,
                    "required_contexts": [],
                });
                self.api.create::<Identified>(&all, &[], &body).await?.id
            }
        }
        .to_string();
        let state = match deployment.state {
            CheckState::Pending => "in_progress",
            CheckState::Success => "success",
            CheckState::Failure => "failure",
        };
        let path = self.path(&["deployments", &id, "statuses"])?;
        let newest: Vec<FoundStatus> = self.api.get(&path, &[("per_page", "1")]).await?;
        // What ended does not begin again, and nothing is said twice.
        let is_known = newest.first().is_some_and(|newest| {
            deployment.state == CheckState::Pending
                || (newest.state.as_deref(), newest.description.as_deref())
                    == (Some(state), Some(description))
        });
        if is_known {
            return Ok(());
        }
        let body = json!({"state": state, "description": description, "environment": environment, "auto_inactive": true});
        self.api.post(&path, &[], &body).await.map(drop)
    }
}

impl Found {
    /// Returns None for one from a fork: its branch is not the branch of that name here.
    fn own(self) -> Option<PullRequest> {
        (!self.is_fork()).then(|| self.request()).flatten()
    }

    fn is_fork(&self) -> bool {
        let id = |branch: &Option<Branch>| branch.as_ref()?.repo.as_ref()?.id;
        id(&self.head).is_none() || id(&self.head) != id(&self.base)
    }

    fn incoming(mut self) -> Option<Incoming> {
        let labels = std::mem::take(&mut self.labels);
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
            state: match (self.state.as_deref(), &self.merged_at) {
                (Some("open"), _) => State::Open,
                (_, Some(_)) => State::Merged,
                (_, None) => State::Closed,
            },
            head: head.name?,
            base: base.name?,
            commit: head.sha.unwrap_or_default(),
            opened: time(self.created_at),
        })
    }
}

/// GitHub Enterprise Server has its API below a path, unless the host is one for the API.
pub fn root(repository: &Repository) -> Result<Url, Error> {
    let host = repository.host();
    if host == "github.com" {
        return Ok(Url::parse("https://api.github.com/").expect("it is a constant"));
    }
    if host.starts_with("api.") || host.contains(".api.") {
        return Ok(repository.origin.clone());
    }
    api::url(&repository.origin, &["api", "v3"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_is_where_the_host_has_it() {
        for (address, expected) in [
            ("https://github.com/a/b", "https://api.github.com/"),
            ("git@github.com:a/b.git", "https://api.github.com/"),
            (
                "https://github.example.com/a/b",
                "https://github.example.com/api/v3",
            ),
            (
                "https://github.example.com:8443/a/b",
                "https://github.example.com:8443/api/v3",
            ),
            ("https://api.octo.ghe.com/a/b", "https://api.octo.ghe.com/"),
        ] {
            let repository = Repository::parse(address).unwrap();
            assert_eq!(root(&repository).unwrap().as_str(), expected);
        }
    }
}
