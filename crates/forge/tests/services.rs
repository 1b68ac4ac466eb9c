//! What is asked of forges that no test can run, against answers in the shape of their published descriptions.
//!
//! Each service takes a request only with what its documentation demands: method, path, query, required fields. All else is
//! an error, as there.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "services/description.rs"]
mod description;

use std::sync::{Arc, Mutex};

use forge::annotation::{Annotated, Annotation};
use forge::check::{State as CheckState, Status};
use forge::comment::Comment;
use forge::exchange::{Answer, Exchange, Request};
use forge::pull_request::{Draft, Merge, Method, State};
use forge::{Error, Forge, Kind, Login};
use futures::future::BoxFuture;
use http::header::ETAG;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};

use description::Description;

const COMMIT: &str = "6dcb09b5b57875f334f61aebed695e2e4193db5e";

/// What a service answers: method, path with query, body; None is 404.
type Service = fn(&str, &str, &Value) -> Option<(u16, Value)>;

#[derive(Clone)]
struct Scripted {
    service: Service,
    asked: Arc<Mutex<Vec<String>>>,
    description: Option<Arc<Description>>,
}

impl Exchange for Scripted {
    fn exchange(&self, request: Request) -> BoxFuture<'_, Result<Answer, Error>> {
        let url = percent_encoding::percent_decode_str(request.url.as_str())
            .decode_utf8_lossy()
            .into_owned();
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let text = format!("{} {url}", request.method);
        self.asked.lock().unwrap().push(text.clone());
        let asked = body.clone();
        let is_known = request
            .headers
            .get("if-none-match")
            .is_some_and(|tag| tag == "\"tag\"");
        let (status, body) = (self.service)(request.method.as_str(), &url, &body)
            .unwrap_or_else(|| (404, json!({"message": format!("no such thing: {text} {body}")})));
        if let Some(description) = &self.description {
            let path = url.strip_prefix("https://api.github.com/repos/o/r/").unwrap();
            description.check(request.method.as_str(), path, &asked, (status, &body));
        }
        Box::pin(async move {
            Ok(Answer {
                status: match is_known {
                    true => StatusCode::NOT_MODIFIED,
                    false => StatusCode::from_u16(status).unwrap(),
                },
                headers: HeaderMap::from_iter([(ETAG, HeaderValue::from_static("\"tag\""))]),
                body: body.to_string().into(),
                is_cut: false,
            })
        })
    }
}

/// What the service publishes of itself, where it can be had.
fn description(kind: Kind) -> Option<Arc<Description>> {
    (kind == Kind::GitHub).then(|| Arc::new(Description::of_github()))
}

/// Has fields that must be there.
fn has(body: &Value, fields: &[&str]) -> bool {
    fields.iter().all(|field| {
        body.pointer(field)
            .is_some_and(|value| !value.is_null() && value != "")
    })
}

async fn play(kind: Kind, address: &str, username: &str, reviewer: &str, service: Service) -> Vec<String> {
    let scripted = Scripted {
        service,
        asked: Arc::default(),
        description: description(kind),
    };
    let login = Login {
        username: username.to_owned(),
        password: "hunter2-token".to_owned(),
    };
    let forge = Forge::new(kind, address, &login, scripted.clone()).unwrap();
    let found = forge.find("updates", "main").await.unwrap();
    assert_eq!(found.len(), 1, "{kind}: one is open, one is of a fork: {found:?}");
    assert_eq!((found[0].number, found[0].state), (7, State::Open), "{kind}");
    assert!(found[0].url.starts_with("https://"), "{kind}: {}", found[0].url);
    assert_eq!(found[0].commit, COMMIT, "{kind}");
    assert!(found[0].opened.is_some(), "{kind}");
    let draft = Draft {
        head: "updates",
        base: "main",
        title: "Update",
        body: "text",
    };
    let opened = forge.open(draft).await.unwrap();
    assert_eq!((opened.number, opened.head.as_str()), (7, "updates"), "{kind}");
    forge.edit(7, "Other", "text").await.unwrap();
    forge
        .label(7, &["images".to_owned(), "robot".to_owned()])
        .await
        .unwrap();
    forge
        .request_review(&opened, &[reviewer.to_owned()])
        .await
        .unwrap();
    forge.comment(7, "hello").await.unwrap();
    let mut checks = forge.checks(COMMIT).await.unwrap();
    checks.sort_by(|a, b| a.name.cmp(&b.name));
    let states: Vec<_> = checks.iter().map(|check| check.state).collect();
    assert_eq!(
        states,
        [CheckState::Success, CheckState::Failure, CheckState::Pending],
        "{kind}: {checks:?}"
    );
    let status = Status {
        commit: COMMIT,
        name: "windlass",
        state: CheckState::Success,
        description: "fine",
        url: "",
    };
    forge.set_status(status, "key").await.unwrap();
    let other = "0000000000000000000000000000000000000000";
    let refused = forge.merge(7, Method::Squash, other).await.unwrap();
    assert!(matches!(refused, Merge::NotYet(_)), "{kind}: {refused:?}");
    let merged = forge.merge(7, Method::Squash, COMMIT).await.unwrap();
    assert_eq!(merged, Merge::Done, "{kind}");
    forge.close(7).await.unwrap();
    let asked = scripted.asked.lock().unwrap().clone();
    for line in &asked {
        assert!(!line.contains("hunter2"), "{line}");
    }
    asked
}

/// Lists pull requests, those from forks too, and keeps a comment among those of others.
async fn preview(kind: Kind, address: &str, service: Service) -> Vec<String> {
    let scripted = Scripted {
        service,
        asked: Arc::default(),
        description: None,
    };
    let login = Login {
        username: String::new(),
        password: "hunter2-token".to_owned(),
    };
    let forge = Forge::new(kind, address, &login, scripted.clone()).unwrap();
    let mut known = None;
    let incoming = forge.incoming(Some("main"), &mut known).await.unwrap().unwrap();
    assert_eq!(known.as_deref(), Some("\"tag\""));
    assert!(
        forge.incoming(Some("main"), &mut known).await.unwrap().is_none(),
        "{kind}"
    );
    let seen: Vec<_> = incoming
        .iter()
        .map(|one| {
            (
                one.request.number,
                one.author.as_str(),
                one.is_fork,
                one.labels.len(),
            )
        })
        .collect();
    assert_eq!(seen, [(7, "ana", false, 1), (8, "eve", true, 0)], "{kind}");
    let comment = Comment {
        marker: "<!-- m -->",
        body: "<!-- m --> new",
    };
    // Only the one of the token's owner, 6, can be changed here.
    forge.keep_comment(7, comment).await.unwrap();
    scripted.asked.lock().unwrap().clone()
}

/// Lists what can be an input of a ResourceSet, without a login where that can be: pull requests to any branch, branches, tags.
async fn inputs(kind: Kind, address: &str, service: Service) {
    let login = Login {
        username: String::new(),
        password: "hunter2-token".to_owned(),
    };
    let scripted = Scripted {
        service,
        asked: Arc::default(),
        description: None,
    };
    let forge = match kind {
        Kind::AzureDevOps => Forge::new(kind, address, &login, scripted.clone()),
        _ => Forge::public(kind, address, scripted.clone()),
    };
    let forge = forge.unwrap();
    let incoming = forge.incoming(None, &mut None).await.unwrap().unwrap();
    let bases: Vec<_> = incoming.iter().map(|one| one.request.base.as_str()).collect();
    assert_eq!(bases, ["main", "stable"], "{kind}");
    let branches = forge.branches().await.unwrap();
    assert_eq!(
        (branches.len(), branches[100].name.as_str()),
        (101, "last"),
        "{kind}"
    );
    let tags = forge.tags().await.unwrap();
    assert_eq!(
        (tags[0].name.as_str(), tags[0].commit.as_str()),
        ("v1", COMMIT),
        "{kind}"
    );
}

/// A page of branches, with the commit under this name.
fn branches(path: &str, commit: &str) -> Value {
    let branch = |name: String| json!({"name": name, "commit": {commit: COMMIT, "short_id": "6dcb09b5"}});
    if path.contains("&page=1") {
        return (0..100).map(|number| branch(format!("b{number}"))).collect();
    }
    json!([branch("last".to_owned())])
}

#[tokio::test]
async fn inputs_from_github() {
    fn request(number: u64, base: &str) -> Value {
        json!({
            "number": number, "html_url": "https://github.com/o/r/pull/7", "title": "t", "state": "open",
            "head": {"ref": "updates", "sha": COMMIT, "repo": {"id": 1}},
            "base": {"ref": base, "sha": "b", "repo": {"id": 1}}, "user": {"login": "ana"}, "labels": [],
        })
    }
    let service: Service = |_, url, _| {
        let path = url.strip_prefix("https://api.github.com/repos/o/r/")?;
        Some(match path {
            list if list.starts_with("pulls?state=open&sort=") => {
                (200, json!([request(7, "main"), request(8, "stable")]))
            }
            list if list.starts_with("branches?per_page=100&page=") => (200, branches(list, "sha")),
            "tags?per_page=100&page=1" => (
                200,
                json!([{"name": "v1", "commit": {"sha": COMMIT, "url": "https://api.github.com/x"}, "node_id": "n"}]),
            ),
            _ => return None,
        })
    };
    inputs(Kind::GitHub, "https://github.com/o/r", service).await;
}

#[tokio::test]
async fn inputs_from_gitlab() {
    fn request(number: u64, base: &str) -> Value {
        json!({
            "iid": number, "web_url": "https://gitlab.com/g/r/-/merge_requests/7", "title": "t", "state": "opened",
            "source_branch": "updates", "target_branch": base, "sha": COMMIT, "source_project_id": 1,
            "target_project_id": 1, "author": {"username": "ana"}, "labels": [],
        })
    }
    let service: Service = |_, url, _| {
        let path = url.strip_prefix("https://gitlab.com/api/v4/projects/g/r/")?;
        Some(match path {
            list if list.starts_with("merge_requests?state=opened") => {
                (200, json!([request(7, "main"), request(8, "stable")]))
            }
            list if list.starts_with("repository/branches?per_page=100&page=") => (200, branches(list, "id")),
            "repository/tags?per_page=100&page=1" => (
                200,
                json!([{"name": "v1", "target": "0000", "commit": {"id": COMMIT, "short_id": "6dcb09b5"}}]),
            ),
            _ => return None,
        })
    };
    inputs(Kind::GitLab, "https://gitlab.com/g/r.git", service).await;
}

#[tokio::test]
async fn inputs_from_azure_devops() {
    fn request(number: u64, base: &str) -> Value {
        json!({
            "pullRequestId": number, "title": "t", "status": "active", "forkSource": null,
            "sourceRefName": "refs/heads/updates", "targetRefName": format!("refs/heads/{base}"),
            "lastMergeSourceCommit": {"commitId": COMMIT}, "createdBy": {"uniqueName": "ana@example.com"},
            "labels": [{"name": "deploy", "active": true}, {"name": "old", "active": false}],
        })
    }
    let service: Service = |_, url, _| {
        let path = url.strip_prefix("https://dev.azure.com/o/p/_apis/git/repositories/r/")?;
        let list = |names: Vec<String>| {
            let all = names.into_iter();
            let all = all.map(|name| json!({"name": format!("refs/heads/{name}"), "objectId": COMMIT}));
            json!({"value": all.collect::<Vec<_>>()})
        };
        Some(match path {
            // The newest come first.
            "pullrequests?api-version=6.0&searchCriteria.status=active&$top=100&$skip=0" => {
                (200, json!({"value": [request(8, "stable"), request(7, "main")]}))
            }
            "refs?api-version=6.0&filter=heads/" => {
                let names = (0..100).map(|number| format!("b{number}"));
                (200, list(names.chain(["last".to_owned()]).collect()))
            }
            "refs?api-version=6.0&filter=tags/&peelTags=true" => (
                200,
                json!({"value": [{"name": "refs/tags/v1", "objectId": "0000", "peeledObjectId": COMMIT}]}),
            ),
            _ => return None,
        })
    };
    inputs(Kind::AzureDevOps, "https://dev.azure.com/o/p/_git/r", service).await;
}

#[tokio::test]
async fn previews_at_github() {
    fn request(number: u64, author: &str, repository: u64, labels: Value) -> Value {
        json!({
            "number": number, "html_url": "https://github.com/o/r/pull/7", "title": "t", "state": "open",
            "head": {"ref": "updates", "sha": COMMIT, "repo": {"id": repository}},
            "base": {"ref": "main", "sha": "b", "repo": {"id": 1}}, "user": {"login": author}, "labels": labels,
        })
    }
    let service: Service = |method, url, body| {
        let path = url.strip_prefix("https://api.github.com/repos/o/r/")?;
        Some(match (method, path) {
            ("GET", list) if list.starts_with("pulls?state=open&base=main") => (
                200,
                json!([
                    request(7, "ana", 1, json!([{"name": "preview"}])),
                    request(8, "eve", 2, json!([]))
                ]),
            ),
            // Who signs in as an App may not ask who that is: the comment is known by being a robot's.
            ("GET", list) if list.starts_with("issues/7/comments?") => (
                200,
                json!([
                    {"id": 4, "body": "> <!-- m -->", "user": {"login": "app[bot]", "type": "Bot"}},
                    {"id": 5, "body": "<!-- m -->", "user": {"login": "mallory", "type": "User"}},
                    {"id": 6, "body": "<!-- m --> old", "user": {"login": "app[bot]", "type": "Bot"}},
                ]),
            ),
            ("PATCH", "issues/comments/6") if body["body"] == "<!-- m --> new" => (200, json!({"id": 6})),
            _ => return None,
        })
    };
    let asked = preview(Kind::GitHub, "https://github.com/o/r", service).await;
    assert!(asked.iter().all(|line| !line.starts_with("POST")), "{asked:?}");
}

#[tokio::test]
async fn findings_beside_lines_at_github() {
    let service: Service = |method, url, body| {
        let path = url.strip_prefix("https://api.github.com/repos/o/r/")?;
        let first = &body["output"]["annotations"][0];
        let is_it = body["head_sha"] == COMMIT
            && body["conclusion"] == "failure"
            && body["output"]["title"] == "60 errors"
            && body["output"]["annotations"].as_array()?.len() == 50
            && *first
                == json!({"path": "web/a.yaml", "start_line": 1, "end_line": 1, "annotation_level": "failure",
                    "title": "schema", "message": "no"});
        ((method, path) == ("POST", "check-runs") && is_it).then(|| (201, json!({"id": 4})))
    };
    let scripted = Scripted {
        service,
        asked: Arc::default(),
        description: description(Kind::GitHub),
    };
    let login = Login {
        username: String::new(),
        password: "hunter2-token".to_owned(),
    };
    let annotations: Vec<_> = (1..=60)
        .map(|line| Annotation {
            file: "web/a.yaml".to_owned(),
            line,
            is_failure: true,
            title: "schema".to_owned(),
            message: "no".to_owned(),
        })
        .collect();
    let check = Annotated {
        commit: COMMIT,
        name: "windlass/checks/a/b",
        state: CheckState::Failure,
        title: "60 errors",
        annotations: &annotations,
    };
    let forge = Forge::new(Kind::GitHub, "https://github.com/o/r", &login, scripted.clone()).unwrap();
    forge.annotate(check).await.unwrap();
    let forge = Forge::new(Kind::Gitea, "https://gitea.example.com/o/r", &login, scripted).unwrap();
    let refused = forge.annotate(check).await.unwrap_err().to_string();
    assert!(refused.contains("GitHub only"), "{refused}");
}

#[tokio::test]
async fn previews_at_gitlab() {
    fn request(number: u64, author: &str, project: u64, labels: Value) -> Value {
        json!({
            "iid": number, "web_url": "https://gitlab.com/g/r/-/merge_requests/7", "title": "t", "state": "opened",
            "source_branch": "updates", "target_branch": "main", "sha": COMMIT, "source_project_id": project,
            "target_project_id": 1, "author": {"username": author}, "labels": labels,
        })
    }
    let service: Service = |method, url, body| {
        if url == "https://gitlab.com/api/v4/user" {
            return Some((200, json!({"username": "bot"})));
        }
        let path = url.strip_prefix("https://gitlab.com/api/v4/projects/g/r/")?;
        Some(match (method, path) {
            ("GET", list) if list.starts_with("merge_requests?target_branch=main&state=opened") => (
                200,
                json!([
                    request(7, "ana", 1, json!(["preview"])),
                    request(8, "eve", 2, json!([]))
                ]),
            ),
            ("GET", list) if list.starts_with("merge_requests/7/notes?") => (
                200,
                json!([
                    {"id": 5, "body": "<!-- m -->", "author": {"username": "mallory"}},
                    {"id": 6, "body": "<!-- m --> old", "author": {"username": "bot"}},
                ]),
            ),
            ("PUT", "merge_requests/7/notes/6") if body["body"] == "<!-- m --> new" => {
                (200, json!({"id": 6}))
            }
            _ => return None,
        })
    };
    let asked = preview(Kind::GitLab, "https://gitlab.com/g/r.git", service).await;
    assert!(asked.iter().all(|line| !line.starts_with("POST")), "{asked:?}");
}

#[tokio::test]
async fn github() {
    fn request(fork: bool) -> Value {
        let head = if fork { 2 } else { 1 };
        json!({
            "number": if fork { 8 } else { 7 },
            "html_url": "https://github.com/o/r/pull/7",
            "title": "t", "body": null, "state": "open", "merged_at": null,
            "created_at": "2026-11-24T08:00:00Z",
            "head": {"ref": "updates", "sha": COMMIT, "repo": {"id": head}},
            "base": {"ref": "main", "sha": "b", "repo": {"id": 1}},
        })
    }
    let service: Service = |method, url, body| {
        let path = url.strip_prefix("https://api.github.com/repos/o/r/")?;
        Some(match (method, path) {
            ("GET", list) if list.starts_with("pulls?") && list.contains("head=o:updates") => {
                (200, json!([request(true), request(false)]))
            }
            ("POST", "pulls") if has(body, &["/head", "/base", "/title"]) => (201, request(false)),
            ("PATCH", "pulls/7") => (200, request(false)),
            ("POST", "issues/7/labels") if body["labels"] == json!(["images", "robot"]) => (200, json!([])),
            ("POST", "pulls/7/requested_reviewers")
                if *body == json!({"reviewers": [], "team_reviewers": ["core"]}) =>
            {
                (201, request(false))
            }
            ("POST", "issues/7/comments") if has(body, &["/body"]) => (201, json!({"id": 1})),
            ("GET", list) if list.starts_with(&format!("commits/{COMMIT}/status?")) => (
                200,
                json!({"state": "failure", "statuses": [
                    {"context": "a", "state": "success", "description": null},
                    {"context": "b", "state": "error", "description": "x"},
                ]}),
            ),
            ("GET", list) if list.starts_with(&format!("commits/{COMMIT}/check-runs?")) => (
                200,
                json!({"total_count": 1, "check_runs": [{"name": "c", "status": "in_progress", "conclusion": null}]}),
            ),
            ("POST", path) if path == format!("statuses/{COMMIT}") && body.get("target_url").is_none() => {
                (201, json!({"id": 1}))
            }
            ("PUT", "pulls/7/merge") if body["merge_method"] == "squash" => match body["sha"] == COMMIT {
                true => (200, json!({"merged": true})),
                false => (
                    409,
                    json!({"message": "Head branch was modified. Review and try the merge again."}),
                ),
            },
            _ => return None,
        })
    };
    play(Kind::GitHub, "git@github.com:o/r.git", "", "o/core", service).await;
}

#[tokio::test]
async fn gitlab() {
    fn request(fork: bool) -> Value {
        json!({
            "iid": if fork { 8 } else { 7 },
            "web_url": "https://gitlab.com/g/s/r/-/merge_requests/7",
            "title": "t", "description": null, "state": "opened",
            "source_branch": "updates", "target_branch": "main",
            "source_project_id": if fork { 2 } else { 1 }, "target_project_id": 1,
            "sha": COMMIT, "created_at": "2026-11-24T08:00:00.123Z",
        })
    }
    let service: Service = |method, url, body| {
        if url == "https://gitlab.com/api/v4/users?username=ana" {
            return Some((200, json!([{"id": 42, "username": "ana"}])));
        }
        let path = url.strip_prefix("https://gitlab.com/api/v4/projects/g/s/r/")?;
        let commit = format!("repository/commits/{COMMIT}/statuses?");
        Some(match (method, path) {
            ("GET", list) if list.starts_with("merge_requests?source_branch=updates&target_branch=main") => {
                (200, json!([request(true), request(false)]))
            }
            ("POST", "merge_requests") if has(body, &["/source_branch", "/target_branch", "/title"]) => {
                (201, request(false))
            }
            ("PUT", "merge_requests/7")
                if has(body, &["/title"])
                    || body["add_labels"] == "images,robot"
                    || body["reviewer_ids"] == json!([42])
                    || body["state_event"] == "close" =>
            {
                (200, request(false))
            }
            ("POST", "merge_requests/7/notes") if has(body, &["/body"]) => (201, json!({"id": 1})),
            ("GET", list) if list.starts_with(&commit) => (
                200,
                json!([
                    {"id": 1, "name": "b", "status": "success"},
                    {"id": 2, "name": "a", "status": "failed", "allow_failure": true},
                    {"id": 3, "name": "b", "status": "failed", "allow_failure": false},
                    {"id": 4, "name": "c", "status": "running"},
                ]),
            ),
            ("POST", path) if path == format!("statuses/{COMMIT}") && body["state"] == "success" => {
                (201, json!({"id": 1}))
            }
            ("PUT", "merge_requests/7/merge") if body["squash"] == true => match body["sha"] == COMMIT {
                true => (200, request(false)),
                false => (
                    409,
                    json!({"message": "SHA does not match HEAD of source branch"}),
                ),
            },
            _ => return None,
        })
    };
    play(Kind::GitLab, "https://gitlab.com/g/s/r.git", "", "ana", service).await;
}

#[tokio::test]
async fn bitbucket() {
    fn request(fork: bool) -> Value {
        let name = if fork { "eve/r" } else { "o/r" };
        json!({
            "id": if fork { 8 } else { 7 }, "title": "t", "description": "", "state": "OPEN",
            "source": {"branch": {"name": "updates"}, "commit": {"hash": COMMIT}, "repository": {"full_name": name}},
            "destination": {"branch": {"name": "main"}, "commit": {"hash": "b"}, "repository": {"full_name": "o/r"}},
            "created_on": "2026-11-24T08:00:00.000000+00:00",
            "links": {"html": {"href": "https://bitbucket.org/o/r/pull-requests/7"}},
        })
    }
    let service: Service = |method, url, body| {
        let path = url.strip_prefix("https://api.bitbucket.org/2.0/repositories/o/r/")?;
        Some(match (method, path) {
            ("GET", list)
                if list.contains("source.branch.name=\"updates\"+AND+destination.branch.name=\"main\"") =>
            {
                (200, json!({"values": [request(true), request(false)]}))
            }
            ("GET", "pullrequests/7") => (200, request(false)),
            ("POST", "pullrequests") if has(body, &["/title", "/source/branch/name"]) => {
                (201, request(false))
            }
            ("PUT", "pullrequests/7") if has(body, &["/title"]) => (200, request(false)),
            ("POST", "pullrequests/7/comments") if has(body, &["/content/raw"]) => (201, json!({"id": 1})),
            ("POST", "pullrequests/7/decline") => (200, request(false)),
            ("POST", "pullrequests/7/merge") if body["merge_strategy"] == "squash" => (200, request(false)),
            ("GET", list) if list.starts_with(&format!("commit/{COMMIT}/statuses?")) => (
                200,
                json!({"values": [
                    {"key": "1", "name": "a", "state": "SUCCESSFUL"},
                    {"key": "2", "name": "b", "state": "STOPPED"},
                    {"key": "c", "name": null, "state": "INPROGRESS"},
                ]}),
            ),
            ("POST", path)
                if path == format!("commit/{COMMIT}/statuses/build")
                    && has(body, &["/key", "/state", "/url"]) =>
            {
                (201, json!({}))
            }
            _ => return None,
        })
    };
    play(
        Kind::Bitbucket,
        "https://bitbucket.org/o/r",
        "bot",
        "557058:1",
        service,
    )
    .await;
}

#[tokio::test]
async fn bitbucket_server() {
    fn request(fork: bool) -> Value {
        let from = if fork { 2 } else { 1 };
        json!({
            "id": if fork { 8 } else { 7 }, "version": 3, "title": "t", "description": "", "state": "OPEN",
            "fromRef": {"id": "refs/heads/updates", "displayId": "updates", "latestCommit": COMMIT, "repository": {"id": from}},
            "toRef": {"id": "refs/heads/main", "displayId": "main", "latestCommit": "b", "repository": {"id": 1}},
            "createdDate": 1_795_000_000_000_u64,
            "links": {"self": [{"href": "https://git.example.com/projects/P/repos/r/pull-requests/7"}]},
        })
    }
    let service: Service = |method, url, body| {
        let rest = url.strip_prefix("https://git.example.com/rest/")?;
        if rest == format!("build-status/1.0/commits/{COMMIT}?limit=100") {
            let checks = json!({"values": [
                {"key": "a", "name": "a", "state": "SUCCESSFUL"},
                {"key": "b", "name": "b", "state": "CANCELLED"},
                {"key": "c", "name": "c", "state": "UNKNOWN"},
            ]});
            return Some((200, checks));
        }
        let path = rest.strip_prefix("api/latest/projects/P/repos/r/")?;
        Some(match (method, path) {
            ("GET", list)
                if list.starts_with("pull-requests?direction=OUTGOING&at=refs/heads/updates&state=ALL") =>
            {
                (200, json!({"values": [request(true), request(false)]}))
            }
            ("GET", "pull-requests/7") => (200, request(false)),
            ("POST", "pull-requests")
                if has(
                    body,
                    &[
                        "/title",
                        "/fromRef/id",
                        "/toRef/id",
                        "/fromRef/repository/project/key",
                    ],
                ) =>
            {
                (201, request(false))
            }
            ("PUT", "pull-requests/7") if body["version"] == 3 && has(body, &["/title"]) => {
                (200, request(false))
            }
            ("POST", "pull-requests/7/comments") if has(body, &["/text"]) => (201, json!({"id": 1})),
            ("POST", "pull-requests/7/decline?version=3") => (200, request(false)),
            ("POST", "pull-requests/7/merge?version=3") if body["strategyId"] == "squash" => {
                (200, request(false))
            }
            ("POST", path)
                if path == format!("commits/{COMMIT}/builds") && has(body, &["/key", "/state", "/url"]) =>
            {
                (204, json!({}))
            }
            _ => return None,
        })
    };
    let address = "https://git.example.com/scm/P/r.git";
    play(Kind::BitbucketServer, address, "bot", "ana", service).await;
}

#[tokio::test]
async fn azure_devops() {
    fn request(fork: bool) -> Value {
        let mut request = json!({
            "pullRequestId": if fork { 8 } else { 7 }, "title": "t", "description": "", "status": "active",
            "sourceRefName": "refs/heads/updates", "targetRefName": "refs/heads/main",
            "lastMergeSourceCommit": {"commitId": COMMIT}, "creationDate": "2026-11-24T08:00:00.1234567Z",
        });
        if fork {
            request["forkSource"] = json!({"repository": {"id": "x"}});
        }
        request
    }
    let service: Service = |method, url, body| {
        let path = url.strip_prefix("https://dev.azure.com/org/my project/_apis/git/repositories/r/")?;
        let (path, query) = path.split_once('?')?;
        if !query.starts_with("api-version=") {
            return None;
        }
        Some(match (method, path) {
            ("GET", "pullrequests") if query.contains("searchCriteria.sourceRefName=refs/heads/updates") => {
                (200, json!({"value": [request(true), request(false)]}))
            }
            ("POST", "pullrequests") if has(body, &["/sourceRefName", "/targetRefName", "/title"]) => {
                (201, request(false))
            }
            ("PATCH", "pullrequests/7") if body["status"] == "completed" => {
                match body["lastMergeSourceCommit"]["commitId"] == COMMIT {
                    true => (200, request(false)),
                    false => (409, json!({"message": "TF401192: it has been modified"})),
                }
            }
            ("PATCH", "pullrequests/7") if has(body, &["/title"]) || body["status"] == "abandoned" => {
                (200, request(false))
            }
            ("POST", "pullrequests/7/labels") if has(body, &["/name"]) => (200, json!({})),
            ("PUT", "pullrequests/7/reviewers/6f1a") => (200, json!({})),
            ("POST", "pullrequests/7/threads") if has(body, &["/comments/0/content"]) => (200, json!({})),
            ("GET", path) if path == format!("commits/{COMMIT}/statuses") => (
                200,
                json!({"value": [
                    {"state": "succeeded", "context": {"name": "a", "genre": "ci"}},
                    {"state": "failed", "context": {"name": "b", "genre": "ci"}},
                    {"state": "notSet", "context": {"name": "c", "genre": "ci"}},
                ]}),
            ),
            ("POST", path)
                if path == format!("commits/{COMMIT}/statuses") && has(body, &["/context/name"]) =>
            {
                (201, json!({}))
            }
            _ => return None,
        })
    };
    let address = "https://dev.azure.com/org/my%20project/_git/r";
    play(Kind::AzureDevOps, address, "", "6f1a", service).await;
}

#[tokio::test]
async fn a_token_does_not_follow_a_redirect_to_another_host() {
    struct Redirecting(Arc<Mutex<Vec<String>>>);
    impl Exchange for Redirecting {
        fn exchange(&self, request: Request) -> BoxFuture<'_, Result<Answer, Error>> {
            self.0.lock().unwrap().push(request.url.to_string());
            let mut headers = HeaderMap::new();
            headers.insert("location", "https://evil.example.com/".parse().unwrap());
            Box::pin(async move {
                Ok(Answer {
                    status: StatusCode::FOUND,
                    headers,
                    body: "hunter2-token".into(),
                    is_cut: false,
                })
            })
        }
    }
    let asked = Arc::default();
    let login = Login {
        username: String::new(),
        password: "hunter2-token".to_owned(),
    };
    let http = Redirecting(Arc::clone(&asked));
    let forge = Forge::new(Kind::GitLab, "https://gitlab.com/g/r", &login, http).unwrap();
    let error = forge.find("a", "main").await.unwrap_err().to_string();
    assert!(error.contains("302") && !error.contains("hunter2"), "{error}");
    let asked = asked.lock().unwrap();
    assert!(
        asked.iter().all(|url| url.starts_with("https://gitlab.com/")),
        "{asked:?}"
    );
}

#[tokio::test]
async fn commits_between_two_are_listed() {
    const OLD: &str = "aaaaaaaaaa";
    const NEW: &str = "bbbbbbbbbb";
    let service: Service = |method, url, _| {
        let values = |key: &str| json!({"values": [{key: NEW, "message": "Fix it\n\nLong.\n"}]});
        let sha = json!({"sha": NEW, "commit": {"message": "Fix it\n\nLong.\n"}});
        let answer = match url {
            "https://api.github.com/repos/o/r/compare/aaaaaaaaaa...bbbbbbbbbb?per_page=50"
            | "https://gitea.example/api/v1/repos/o/r/compare/aaaaaaaaaa...bbbbbbbbbb" => {
                json!({"total_commits": 1, "commits": [sha]})
            }
            "https://gitlab.com/api/v4/projects/g/s/r/repository/compare?from=aaaaaaaaaa&to=bbbbbbbbbb" => {
                json!({"commits": [{"id": NEW, "short_id": "bbbbbbbb", "title": "Fix it",
                    "message": "Fix it\n\nLong.\n"}]})
            }
            "https://api.bitbucket.org/2.0/repositories/o/r/commits?include=bbbbbbbbbb&exclude=aaaaaaaaaa&pagelen=50" => {
                values("hash")
            }
            url if url.starts_with("https://bitbucket.example/rest/api/latest/projects/P/repos/r/commits?since=aaaaaaaaaa&until=bbbbbbbbbb") => {
                values("id")
            }
            "https://dev.azure.com/o/p/_apis/git/repositories/r/diffs/commits?api-version=6.0&baseVersion=aaaaaaaaaa&baseVersionType=commit&targetVersion=bbbbbbbbbb&targetVersionType=commit&$top=1" => {
                json!({"commonCommit": OLD, "aheadCount": 1, "behindCount": 0, "changes": []})
            }
            "https://dev.azure.com/o/p/_apis/git/repositories/r/commits?api-version=6.0&searchCriteria.itemVersion.version=bbbbbbbbbb&searchCriteria.itemVersion.versionType=commit&searchCriteria.$top=50" => {
                json!({"count": 2, "value": [
                    {"commitId": NEW, "comment": "Fix it\n\nLong.\n"}, {"commitId": OLD, "comment": "Before"},
                ]})
            }
            _ => return None,
        };
        (method == "GET").then_some((200, answer))
    };
    for (kind, address) in [
        (Kind::GitHub, "https://github.com/o/r"),
        (Kind::Gitea, "https://gitea.example/o/r"),
        (Kind::GitLab, "https://gitlab.com/g/s/r"),
        (Kind::Bitbucket, "https://bitbucket.org/o/r"),
        (Kind::BitbucketServer, "https://bitbucket.example/scm/P/r.git"),
        (Kind::AzureDevOps, "https://dev.azure.com/o/p/_git/r"),
    ] {
        let scripted = Scripted {
            service,
            asked: Arc::default(),
            description: description(kind),
        };
        let login = Login {
            username: "bot".to_owned(),
            password: "hunter2-token".to_owned(),
        };
        let forge = Forge::new(kind, address, &login, scripted).unwrap();
        let commits = forge.commits(OLD, NEW).await.unwrap();
        assert_eq!(commits.len(), 1, "{kind}: {commits:?}");
        assert!(
            commits
                .iter()
                .all(|one| one.hash == NEW && one.subject == "Fix it"),
            "{kind}: {commits:?}"
        );
    }
}
