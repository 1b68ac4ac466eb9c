//! Statuses of commits at services that remember them.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::service::{self, Asked, COMMIT, Reply, Service, failed, notification, send, succeeded, target};
use crate::edge::Http;
use crate::error::Retry;
use crate::mask::Mask;
use crate::provider_type::ProviderType as Type;

/// Answers questions with what was said, the latest first, and remembers more.
fn remembering(check: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static) -> impl Fn(&Asked) -> Reply {
    let said: Mutex<Vec<Value>> = Mutex::default();
    move |asked| {
        if let Some(refusal) = check(asked) {
            return refusal;
        }
        let mut said = said.lock().unwrap();
        if asked.method == http::Method::GET {
            return service::json(200, &Value::from(said.clone()));
        }
        said.insert(0, asked.json());
        service::json(201, &asked.json())
    }
}

fn wants(asked: &Asked, header: &str, value: &str) -> Option<Reply> {
    let is_wanted = asked.header(header) == value && !asked.header("user-agent").is_empty();
    (!is_wanted).then(|| service::json(401, &json!({"message": "Bad credentials"})))
}

#[tokio::test]
async fn github_hears_what_is_news_and_nothing_twice() {
    let github = Service::start(remembering(|asked| {
        assert_eq!(asked.header("accept"), "application/vnd.github+json");
        wants(asked, "authorization", "Bearer hunter2-token")
    }))
    .await;
    let target = target(Type::GitHub, &format!("{}/foo/bar.git", github.url));
    let list = format!("GET /api/v3/repos/foo/bar/commits/{COMMIT}/statuses");
    let post = format!("POST /api/v3/repos/foo/bar/statuses/{COMMIT}");

    send(&target, &notification("info", "Progressing", ""))
        .await
        .unwrap();
    let asked = github.take();
    assert_eq!([asked[0].what(), asked[1].what()], [list.clone(), post.clone()]);
    assert_eq!(asked[1].json()["state"], "pending");

    for _ in 0..2 {
        send(&target, &failed()).await.unwrap();
    }
    let asked = github.take();
    assert_eq!(
        asked.iter().map(Asked::what).collect::<Vec<_>>(),
        [list.clone(), post.clone(), list.clone()]
    );
    assert_eq!(
        asked[1].json(),
        json!({
            "state": "failure",
            "description": "health check failed",
            "context": "kustomization/webapp/0c9c2e41",
        })
    );
    // a second attempt is on its way, what went wrong is rolled back: the commit stays red
    for reason in ["Progressing", "DependencyNotReady"] {
        send(&target, &notification("info", reason, "")).await.unwrap();
        assert_eq!(github.took(), std::slice::from_ref(&list));
    }
    send(&target, &notification("info", "RollbackSucceeded", ""))
        .await
        .unwrap();
    assert_eq!(github.took(), Vec::<String>::new());
    send(&target, &succeeded()).await.unwrap();
    assert_eq!(github.take()[1].json()["state"], "success");
}

#[tokio::test]
async fn an_unknown_commit_is_named() {
    for (status, message) in [(404, "Not Found"), (422, "No commit found for SHA: x")] {
        let answer = move |_: &Asked| service::json(status, &json!({"message": message}));
        let github = Service::start(answer).await;
        let target = target(Type::GitHub, &format!("{}/foo/bar", github.url));
        let error = send(&target, &failed()).await.unwrap_err();
        assert_eq!(error.retry, Retry::Never);
        let text = error.to_string();
        assert!(
            text.starts_with("could not list commit statuses: GET http://127.0.0.1"),
            "{text}"
        );
        assert!(
            text.contains(&format!("no commit {COMMIT} in repository foo/bar")),
            "{text}"
        );
    }
}

#[tokio::test]
async fn limits_and_outages_are_waited_for() {
    let reset = (jiff::Timestamp::now().as_second() + 90).to_string();
    let limit = vec![
        ("x-ratelimit-remaining", "0".to_owned()),
        ("x-ratelimit-reset", reset),
    ];
    let seconds = |retry| match retry {
        Retry::After(pause) => pause.as_secs(),
        _ => 0,
    };
    for (status, headers, expected) in [
        (403, limit.clone(), 80..=90),
        (429, vec![("retry-after", "7".to_owned())], 7..=7),
        (502, vec![], 0..=0),
    ] {
        let answer = move |_: &Asked| {
            (
                status,
                headers.clone(),
                r#"{"message":"no, hunter2-token"}"#.to_owned(),
            )
        };
        let github = Service::start(answer).await;
        let target = target(Type::GitHub, &format!("{}/foo/bar", github.url));
        let error = send(&target, &failed()).await.unwrap_err();
        assert_ne!(error.retry, Retry::Never);
        assert!(
            expected.contains(&seconds(error.retry)),
            "{status}: {:?}",
            error.retry
        );
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    let nobody = target(Type::GitHub, "http://127.0.0.1:1/foo/bar");
    assert_eq!(send(&nobody, &failed()).await.unwrap_err().retry, Retry::Backoff);
}

#[tokio::test]
async fn a_renamed_repository_is_found_at_the_same_service_only() {
    let elsewhere = Service::start(|_| service::json(200, &json!([]))).await;
    let there = elsewhere.url.clone();
    let github = Service::start(move |asked| match asked.path.as_str() {
        path if path.contains("/repos/old/") => {
            (301, vec![("location", path.replace("old", "new"))], String::new())
        }
        path if path.contains("/repos/away/") => (301, vec![("location", there.clone())], String::new()),
        _ => service::json(200, &json!([])),
    })
    .await;
    send(
        &target(Type::GitHub, &format!("{}/old/bar", github.url)),
        &succeeded(),
    )
    .await
    .unwrap_err(); // POST /repos/old is answered with 301 as well, which GitHub does not do
    let took = github.took();
    assert!(
        took[1].starts_with("GET /api/v3/repos/new/bar/commits/"),
        "{took:?}"
    );
    let away = target(Type::GitHub, &format!("{}/away/bar", github.url));
    assert!(send(&away, &succeeded()).await.is_err());
    assert_eq!(elsewhere.took(), Vec::<String>::new());
}

#[tokio::test]
async fn gitlab_has_projects_in_groups() {
    let gitlab = Service::start(remembering_by_status()).await;
    let target = target(Type::GitLab, &format!("{}/group/sub/project.git", gitlab.url));
    for _ in 0..2 {
        send(&target, &failed()).await.unwrap();
    }
    let asked = gitlab.take();
    for notification in [succeeded(), succeeded(), failed()] {
        send(&target, &notification).await.unwrap();
    }
    let posts = gitlab.took().into_iter().filter(|what| what.starts_with("POST"));
    assert_eq!(posts.count(), 2); // the second success stands already
    assert_eq!(
        asked.iter().map(Asked::what).collect::<Vec<_>>(),
        [
            format!("GET /api/v4/projects/group%2Fsub%2Fproject/repository/commits/{COMMIT}/statuses"),
            format!("POST /api/v4/projects/group%2Fsub%2Fproject/statuses/{COMMIT}"),
            format!("GET /api/v4/projects/group%2Fsub%2Fproject/repository/commits/{COMMIT}/statuses"),
        ]
    );
    assert!(asked[0].path.contains("?name=kustomization%2Fwebapp%2F0c9c2e41"));
    assert_eq!(
        asked[1].json(),
        json!({
            "state": "failed",
            "name": "kustomization/webapp/0c9c2e41",
            "description": "health check failed",
        })
    );
}

/// As GitLab: what is said as `state` is told as `status`.
fn remembering_by_status() -> impl Fn(&Asked) -> Reply {
    let said: Mutex<Vec<Value>> = Mutex::default();
    move |asked| {
        if let Some(refusal) = wants(asked, "private-token", "hunter2-token") {
            return refusal;
        }
        let mut said = said.lock().unwrap();
        if asked.method == http::Method::GET {
            return service::json(200, &Value::from(said.clone()));
        }
        let mut body = asked.json();
        body["status"] = body["state"].take();
        body["id"] = said.len().into();
        said.push(body.clone());
        service::json(201, &body)
    }
}

#[tokio::test]
async fn gitea_is_asked_page_by_page() {
    let mine = json!({"status": "failure", "context": "kustomization/webapp/0c9c2e41", "description": "health check failed"});
    let other = json!({"status": "success", "context": "other", "description": null});
    let gitea = Service::start(move |asked| {
        if let Some(refusal) = wants(asked, "authorization", "token hunter2-token") {
            return refusal;
        }
        match asked.path.contains("page=1&") {
            true => service::json(200, &Value::from(vec![other.clone(); 50])),
            false => service::json(200, &json!([other, mine])),
        }
    })
    .await;
    let target = target(Type::Gitea, &format!("{}/foo/bar", gitea.url));
    send(&target, &failed()).await.unwrap();
    let list = format!("GET /api/v1/repos/foo/bar/commits/{COMMIT}/statuses");
    assert_eq!(gitea.took(), [list.clone(), list.clone()]);
    send(&target, &succeeded()).await.unwrap();
    let asked = gitea.take();
    assert_eq!(
        asked[2].what(),
        format!("POST /api/v1/repos/foo/bar/statuses/{COMMIT}")
    );
    assert_eq!(asked[2].json()["state"], "success");
}

#[tokio::test]
async fn bitbucket_has_one_status_for_a_key() {
    let said: Mutex<Option<Value>> = Mutex::default();
    let bitbucket = Service::start(move |asked| {
        if let Some(refusal) = wants(asked, "authorization", "Basic dXNlcjpodW50ZXIy") {
            return refusal;
        }
        let mut said = said.lock().unwrap();
        match (&asked.method, said.as_ref()) {
            (&http::Method::GET, None) => service::json(404, &json!({"error": {"message": "no build"}})),
            (&http::Method::GET, Some(said)) => service::json(200, said),
            _ => {
                *said = Some(asked.json());
                service::json(201, &asked.json())
            }
        }
    })
    .await;
    let mut target = target(Type::Bitbucket, "https://bitbucket.org/foo/bar.git");
    target.token = "user:hunter2".to_owned();
    let (edge, mask) = (service::edge(&[]), Mask::from_target(&target));
    let http = Http {
        edge: &edge,
        target: &target,
        mask: &mask,
    };
    let root = url::Url::parse(&format!("{}/2.0/", bitbucket.url)).unwrap();
    for _ in 0..2 {
        crate::git::bitbucket::send_to(root.clone(), http, &failed())
            .await
            .unwrap();
    }
    let asked = bitbucket.take();
    let build = format!("/2.0/repositories/foo/bar/commit/{COMMIT}/statuses/build");
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[1].what(), format!("POST {build}"));
    let body = asked[1].json();
    assert_eq!(
        asked[0].what(),
        format!("GET {build}/{}", body["key"].as_str().unwrap())
    );
    assert_eq!(
        (&body["state"], &body["name"], &body["description"], &body["url"]),
        (
            &json!("FAILED"),
            &json!("kustomization/webapp"),
            &json!("health check failed"),
            &json!("https://bitbucket.org")
        )
    );
}

#[tokio::test]
async fn bitbucket_server_shows_the_name() {
    let server = Service::start(|asked| {
        assert_eq!(asked.header("x-atlassian-token"), "no-check");
        match asked.method {
            http::Method::GET => service::json(404, &json!({"errors": [{"message": "no build"}]})),
            _ => wants(asked, "authorization", "Bearer hunter2-token")
                .unwrap_or_else(|| (204, vec![], String::new())),
        }
    })
    .await;
    let address = format!("{}/context/scm/foo/bar.git", server.url);
    let target = target(Type::BitbucketServer, &address);
    send(&target, &failed()).await.unwrap();
    let asked = server.take();
    let builds = format!("/context/rest/api/latest/projects/foo/repos/bar/commits/{COMMIT}/builds");
    assert_eq!(asked[1].what(), format!("POST {builds}"));
    assert!(asked[0].path.starts_with(&format!("{builds}?key=")));
    let body = asked[1].json();
    assert_eq!(body["name"], "kustomization/webapp [health check failed]");
    assert_eq!(body["url"], address);
}

#[tokio::test]
async fn azure_devops_says_no_by_a_page_to_log_in_at() {
    let azure = Service::start(|asked| {
        if asked.header("authorization") != "Basic Omh1bnRlcjItdG9rZW4=" {
            return (203, vec![], "<html>Sign In</html>".to_owned());
        }
        match asked.method {
            http::Method::GET => service::json(200, &json!({"count": 1, "value": [
                {"state": "error", "description": "health check failed", "context": {"name": "kustomization/webapp/0c9c2e41", "genre": "other"}},
            ]})),
            _ => service::json(201, &asked.json()),
        }
    })
    .await;
    let mut target = target(
        Type::AzureDevOps,
        &format!("{}/org/my%20project/_git/repo", azure.url),
    );
    let mut notification = failed();
    notification
        .event
        .metadata
        .insert("summary".to_owned(), "blue".to_owned());
    send(&target, &notification).await.unwrap();
    let asked = azure.take();
    let path = format!("/org/my%20project/_apis/git/repositories/repo/commits/{COMMIT}/statuses");
    assert_eq!(asked[1].what(), format!("POST {path}"));
    assert!(asked.iter().all(|asked| asked.path.contains("api-version=6.0")));
    assert_eq!(
        asked[1].json(),
        json!({
            "state": "error",
            "description": "health check failed",
            "context": {"genre": "fluxcd:blue", "name": "kustomization/webapp/0c9c2e41"},
        })
    );
    target.token = "wrong".to_owned();
    let error = send(&target, &notification).await.unwrap_err();
    assert_eq!(error.retry, Retry::Never);
    assert!(error.to_string().contains("answered 203"), "{error}");
    target.token = String::new();
    let error = send(&target, &notification).await.unwrap_err().to_string();
    assert!(error.contains("shown only to https://dev.azure.com"), "{error}");
}

#[tokio::test]
async fn a_service_that_floods_is_left() {
    let flood = format!("[{}]", " ".repeat(9 << 20));
    let github = Service::start(move |_| (200, vec![], flood.clone())).await;
    let target = target(Type::GitHub, &format!("{}/foo/bar", github.url));
    let notification = failed();
    let attempt = tokio::time::timeout(Duration::from_secs(20), send(&target, &notification));
    let error = attempt.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("is too large"), "{error}");
}

/// A promotion of a pipeline, in an environment.
fn promoted(severity: &str, reason: &str, message: &str) -> crate::notification::Notification {
    let mut notification = notification(severity, reason, message);
    notification.deployments = true;
    notification.event.involved_object.kind = "Pipeline".to_owned();
    let metadata = &mut notification.event.metadata;
    metadata.insert("environment".to_owned(), "production".to_owned());
    notification
}

/// What a service keeps of deployments: each has an ID and statuses, the newest first.
fn deploying(asked: &Asked, kept: &Mutex<Vec<Value>>) -> Reply {
    let mut kept = kept.lock().unwrap();
    let what = asked.what();
    let (path, _) = what.split_once('?').unwrap_or((&what, ""));
    let list = Value::from(kept.clone());
    match path.rsplit('/').next().unwrap_or_default() {
        "deployments" if path.starts_with("GET") => service::json(200, &list),
        "deployments" => {
            let mut made = asked.json();
            made["id"] = json!(17);
            made["statuses"] = json!([]);
            kept.insert(0, made.clone());
            service::json(201, &made)
        }
        "17" => {
            kept[0]["status"] = asked.json()["status"].clone();
            service::json(200, &kept[0])
        }
        "statuses" if path.contains("/deployments/17/") && path.starts_with("GET") => {
            service::json(200, &kept[0]["statuses"])
        }
        "statuses" if path.contains("/deployments/17/") => {
            kept[0]["statuses"]
                .as_array_mut()
                .unwrap()
                .insert(0, asked.json());
            service::json(201, &json!({}))
        }
        // Statuses of commits are not what this is about.
        _ if path.starts_with("GET") => service::json(200, &json!([])),
        _ => service::json(201, &json!({})),
    }
}

fn about_deployments(asked: &[Asked]) -> Vec<(String, Value)> {
    let asked = asked.iter().filter(|asked| asked.what().contains("/deployments"));
    let said = asked.filter(|asked| asked.method != http::Method::GET);
    said.map(|asked| (asked.what(), asked.json())).collect()
}

#[tokio::test]
async fn a_promotion_is_a_deployment_at_github_where_the_alert_wants_that() {
    let kept = Mutex::default();
    let github = Service::start(move |asked| deploying(asked, &kept)).await;
    let target = target(Type::GitHub, &format!("{}/foo/bar.git", github.url));
    let mut unwanted = promoted("info", "PromotionSucceeded", "release 2 is healthy");
    unwanted.deployments = false;
    let mut other = promoted("info", "ReconciliationSucceeded", "applied");
    other.event.involved_object.kind = "Kustomization".to_owned();
    for notification in [unwanted, other] {
        send(&target, &notification).await.unwrap();
        assert_eq!(about_deployments(&github.take()), []);
    }

    let all = "POST /api/v3/repos/foo/bar/deployments".to_owned();
    let one = "POST /api/v3/repos/foo/bar/deployments/17/statuses".to_owned();
    let status = |state: &str, description: &str| json!({"state": state, "description": description, "environment": "production", "auto_inactive": true});
    send(&target, &promoted("info", "Promote", "release 2 goes"))
        .await
        .unwrap();
    let asked = github.take();
    let pending = asked
        .iter()
        .find(|asked| asked.what().contains("/bar/statuses/"))
        .unwrap();
    assert_eq!(
        pending.json()["state"],
        "pending",
        "a commit is not green before it is healthy"
    );
    let made = json!({
        "ref": COMMIT, "environment": "production", "description": "release 2 goes", "auto_merge": false,
        "required_contexts": [],
    });
    assert_eq!(
        about_deployments(&asked),
        [
            (all, made),
            (one.clone(), status("in_progress", "release 2 goes"))
        ]
    );
    send(
        &target,
        &promoted("info", "PromotionSucceeded", "release 2 is healthy"),
    )
    .await
    .unwrap();
    assert_eq!(
        about_deployments(&github.take()),
        [(one.clone(), status("success", "release 2 is healthy"))]
    );
    // Neither twice, nor back to the beginning.
    for reason in ["PromotionSucceeded", "Promote"] {
        send(&target, &promoted("info", reason, "release 2 is healthy"))
            .await
            .unwrap();
        assert_eq!(about_deployments(&github.take()), []);
    }
    send(&target, &promoted("error", "PromotionFailed", "it crashed"))
        .await
        .unwrap();
    assert_eq!(
        about_deployments(&github.take()),
        [(one, status("failure", "it crashed"))]
    );
}

#[tokio::test]
async fn a_promotion_is_a_deployment_at_gitlab_where_the_alert_wants_that() {
    let kept = Mutex::default();
    let gitlab = Service::start(move |asked| deploying(asked, &kept)).await;
    let target = target(Type::GitLab, &format!("{}/foo/bar.git", gitlab.url));
    send(&target, &promoted("info", "Promote", "release 2 goes"))
        .await
        .unwrap();
    let project = "/api/v4/projects/foo%2Fbar/deployments";
    let made =
        json!({"environment": "production", "sha": COMMIT, "ref": COMMIT, "tag": false, "status": "running"});
    assert_eq!(
        about_deployments(&gitlab.take()),
        [(format!("POST {project}"), made)]
    );
    send(&target, &promoted("info", "PromotionSucceeded", "healthy"))
        .await
        .unwrap();
    let succeeded = json!({"status": "success"});
    assert_eq!(
        about_deployments(&gitlab.take()),
        [(format!("PUT {project}/17"), succeeded)]
    );
    for reason in ["PromotionSucceeded", "Promote"] {
        send(&target, &promoted("info", reason, "healthy")).await.unwrap();
        assert_eq!(about_deployments(&gitlab.take()), []);
    }
}
