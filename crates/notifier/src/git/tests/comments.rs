//! Comments at services that remember them, and the dispatch.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::service::{self, Asked, Reply, Service, failed, send, succeeded, target};
use crate::provider_type::ProviderType as Type;

const KEY: &str = "githubAppPrivateKey";
const RSA: &str = include_str!("../../../../cloud-identity/src/fake/rsa_pkcs8.pem");

/// The comments of one change request, and who asks.
struct Forge {
    comments: Arc<Mutex<Vec<Value>>>,
    person: Value,
    author: &'static str,
}

impl Forge {
    /// People are under `login` or `username`, authors under `user` or `author`.
    fn new(person: Value, author: &'static str) -> (Self, Arc<Mutex<Vec<Value>>>) {
        let comments: Arc<Mutex<Vec<Value>>> = Arc::default();
        let forge = Self {
            comments: comments.clone(),
            person,
            author,
        };
        (forge, comments)
    }

    fn answer(&self, asked: &Asked) -> Reply {
        let mut comments = self.comments.lock().unwrap();
        let path = asked.path.split('?').next().unwrap();
        if path.ends_with("/user") {
            return service::json(200, &self.person);
        }
        match asked.method {
            http::Method::GET => service::json(200, &Value::from(page(&comments, &asked.path))),
            http::Method::POST => {
                let comment =
                    json!({"id": comments.len() + 1, "body": asked.json()["body"], self.author: self.person});
                comments.push(comment.clone());
                service::json(201, &comment)
            }
            _ => {
                let id: u64 = path.rsplit('/').next().unwrap().parse().unwrap();
                match comments.iter_mut().find(|comment| comment["id"] == id) {
                    None => service::json(404, &json!({"message": "Not Found"})),
                    Some(comment) => {
                        comment["body"] = asked.json()["body"].clone();
                        service::json(200, comment)
                    }
                }
            }
        }
    }
}

fn page(comments: &[Value], path: &str) -> Vec<Value> {
    let number = path
        .split("&page=")
        .nth(1)
        .map_or(1, |number| number.parse().unwrap());
    comments.chunks(100).nth(number - 1).unwrap_or_default().to_vec()
}

/// Makes a comment, changes it, and finds it behind others; a stranger's copy of it is left alone.
async fn one_comment(type_: Type, person: Value, author: &'static str, places: [&str; 2], change: &str) {
    let (forge, comments) = Forge::new(person.clone(), author);
    let service = Service::start(move |asked| forge.answer(asked)).await;
    let target = target(type_, &format!("{}/foo/bar", service.url));
    let prefix = if type_ == Type::GitLabMergeRequestComment {
        "flux-mr"
    } else {
        "flux-pr"
    };
    let marker =
        format!("{prefix}-comment-key:0c9c2e41-d2f9-4f9b-9c41-bebc1984d67a/Kustomization/apps/webapp -->");
    let stranger = json!({"id": 900, "body": format!("<!-- {marker}"), author: {"login": "mallory", "username": "mallory"}});
    let quote = json!({"id": 901, "body": format!("> <!-- {marker}"), author: person});
    comments.lock().unwrap().extend([stranger.clone(), quote.clone()]);

    send(&target, &failed()).await.unwrap();
    assert_eq!(service.took().last(), Some(&format!("POST {}", places[0])));
    send(&target, &succeeded()).await.unwrap();
    assert_eq!(service.took().last(), Some(&format!("{change} {}/3", places[1])));
    let kept = comments.lock().unwrap().clone();
    assert_eq!(kept.len(), 3);
    assert_eq!(kept[..2], [stranger, quote]);
    assert!(
        kept[2]["body"]
            .as_str()
            .unwrap()
            .contains("Reconciliation finished in 1s")
    );
}

#[tokio::test]
async fn github_has_one_comment_for_each_object() {
    let places = [
        "/api/v3/repos/foo/bar/issues/7/comments",
        "/api/v3/repos/foo/bar/issues/comments",
    ];
    one_comment(
        Type::GitHubPullRequestComment,
        json!({"login": "flux"}),
        "user",
        places,
        "PATCH",
    )
    .await;
}

#[tokio::test]
async fn gitlab_has_one_note_for_each_object() {
    let notes = "/api/v4/projects/foo%2Fbar/merge_requests/7/notes";
    one_comment(
        Type::GitLabMergeRequestComment,
        json!({"username": "flux"}),
        "author",
        [notes, notes],
        "PUT",
    )
    .await;
}

#[tokio::test]
async fn gitea_has_one_comment_for_each_object() {
    let places = [
        "/api/v1/repos/foo/bar/issues/7/comments",
        "/api/v1/repos/foo/bar/issues/comments",
    ];
    let person = json!({"login": "flux", "username": "flux"});
    one_comment(Type::GiteaPullRequestComment, person, "user", places, "PATCH").await;
}

#[tokio::test]
async fn a_comment_is_found_behind_a_hundred_others() {
    let (forge, comments) = Forge::new(json!({"login": "flux"}), "user");
    let service = Service::start(move |asked| forge.answer(asked)).await;
    let target = target(
        Type::GitHubPullRequestComment,
        &format!("{}/foo/bar", service.url),
    );
    let other = |id: u64| json!({"id": 1000 + id, "body": "nice", "user": {"login": "alice"}});
    comments.lock().unwrap().extend((0..150).map(other));
    for notification in [failed(), succeeded()] {
        send(&target, &notification).await.unwrap();
    }
    assert_eq!(comments.lock().unwrap().len(), 151);
}

#[tokio::test]
async fn a_comment_that_is_known_is_changed_without_a_search() {
    let (forge, comments) = Forge::new(json!({"login": "flux"}), "user");
    let service = Service::start(move |asked| forge.answer(asked)).await;
    let target = target(
        Type::GitHubPullRequestComment,
        &format!("{}/foo/bar", service.url),
    );
    let mut notification = failed();
    notification.threaded = true;
    let sent = send(&target, &notification).await.unwrap();
    notification.thread = sent.thread;
    service.take();
    send(&target, &notification).await.unwrap();
    assert_eq!(service.took(), ["PATCH /api/v3/repos/foo/bar/issues/comments/1"]);

    // on another pull request it is another comment
    notification
        .event
        .metadata
        .insert("change_request".to_owned(), "8".to_owned());
    comments.lock().unwrap().clear();
    let sent = send(&target, &notification).await.unwrap();
    assert_eq!(
        service.took().last().unwrap(),
        "POST /api/v3/repos/foo/bar/issues/8/comments"
    );

    // someone deleted it
    notification.thread = sent.thread;
    comments.lock().unwrap().clear();
    send(&target, &notification).await.unwrap();
    assert_eq!(comments.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_github_app_comments_as_a_robot() {
    let (forge, comments) = Forge::new(json!({"login": "windlass[bot]"}), "user");
    let service = Service::start(move |asked| match asked.path.as_str() {
        "/app" => service::json(200, &json!({"slug": "windlass"})),
        "/app/installations/2/access_tokens" => service::json(
            201,
            &json!({"token": "ghs_1", "expires_at": "2099-01-01T00:00:00Z"}),
        ),
        path if path.ends_with("/user") => service::json(403, &json!({"message": "not for Apps"})),
        _ => {
            assert_eq!(asked.header("authorization"), "Bearer ghs_1");
            forge.answer(asked)
        }
    })
    .await;
    let mut target = target(
        Type::GitHubPullRequestComment,
        &format!("{}/foo/bar", service.url),
    );
    target.token.clear();
    for (key, value) in [
        ("githubAppID", "1"),
        ("githubAppInstallationID", "2"),
        ("githubAppBaseURL", service.url.as_str()),
        (KEY, RSA),
    ] {
        target.secret.insert(key.to_owned(), value.as_bytes().to_vec());
    }
    for notification in [failed(), succeeded()] {
        send(&target, &notification).await.unwrap();
    }
    assert_eq!(comments.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_dispatch_has_the_event() {
    let service = Service::start(|_| (204, vec![], String::new())).await;
    let target = target(Type::GitHubDispatch, &format!("{}/foo/bar", service.url));
    let mut notification = failed();
    send(&target, &notification).await.unwrap();
    let asked = service.take();
    assert_eq!(asked[0].what(), "POST /api/v3/repos/foo/bar/dispatches");
    let body = asked[0].json();
    assert_eq!(body["event_type"], "Kustomization/webapp.apps");
    assert_eq!(
        body["client_payload"],
        serde_json::to_value(&notification.event).unwrap()
    );
    notification.event.involved_object.name = "n".repeat(200);
    send(&target, &notification).await.unwrap();
    assert_eq!(
        service.take()[0].json()["event_type"]
            .as_str()
            .unwrap()
            .chars()
            .count(),
        100
    );
}
