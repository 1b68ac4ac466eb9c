//! Repositories and deploy keys at forges that no test can run, against answers in the shape of their documentation; tests/gitea.rs has the
//! real one.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::sync::{Arc, Mutex};

use forge::exchange::{Answer, Exchange, Request};
use forge::hosting::Draft;
use forge::{Error, Forge, Kind, Login};
use futures::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGV4YW1wbGU";
const DRAFT: Draft<'_> = Draft {
    description: "clusters",
    private: true,
    personal: false,
    default_branch: "main",
};

/// What a service answers to a method, a path with its query, and a body; None is 404.
type Service = fn(&str, &str, &Value) -> Option<(u16, Value)>;

#[derive(Clone)]
struct Scripted {
    service: Service,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Exchange for Scripted {
    fn exchange(&self, request: Request) -> BoxFuture<'_, Result<Answer, Error>> {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let place = &request.url[url::Position::BeforePath..];
        let place = percent_encoding::percent_decode_str(place)
            .decode_utf8_lossy()
            .into_owned();
        self.asked
            .lock()
            .unwrap()
            .push(format!("{} {place} {body}", request.method));
        let answer = (self.service)(request.method.as_str(), &place, &body);
        let (status, body) = answer.unwrap_or((404, json!({"message": "Not Found"})));
        Box::pin(async move {
            Ok(Answer {
                status: StatusCode::from_u16(status).unwrap(),
                headers: HeaderMap::new(),
                body: body.to_string().into(),
                is_cut: false,
            })
        })
    }
}

fn at(kind: Kind, address: &str, service: Service) -> (Forge<'static>, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::default();
    let scripted = Scripted {
        service,
        asked: Arc::clone(&asked),
    };
    let login = Login {
        username: String::new(),
        password: "hunter2".to_owned(),
    };
    (Forge::new(kind, address, &login, scripted).unwrap(), asked)
}

/// Lists, adds and removes the keys.
async fn keys(forge: &Forge<'_>) {
    assert!(forge.has_deploy_keys());
    let found = forge.deploy_keys().await.unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    let key = &found[0];
    assert_eq!(
        (
            key.id.as_str(),
            key.title.as_str(),
            key.key.as_str(),
            key.read_only
        ),
        ("1", "old", KEY, true)
    );
    forge.add_deploy_key("new", KEY, true).await.unwrap();
    forge.remove_deploy_key("1").await.unwrap();
    forge.remove_deploy_key("2").await.unwrap(); // it is gone already
}

#[tokio::test]
async fn github() {
    let (forge, asked) = at(
        Kind::GitHub,
        "https://github.com/org/fleet.git",
        |method, path, body| {
            Some(match (method, path) {
                ("POST", "/orgs/org/repos") if body["name"] == "fleet" && body["private"] == true => (
                    201,
                    json!({"ssh_url": "git@github.com:org/fleet.git", "default_branch": "main"}),
                ),
                ("GET", "/repos/org/fleet/keys?page=1&per_page=50") => (
                    200,
                    json!([{"id": 1, "title": "old", "key": KEY, "read_only": true}]),
                ),
                ("POST", "/repos/org/fleet/keys") if body["key"] == KEY && body["read_only"] == true => {
                    (201, json!({"id": 2}))
                }
                ("DELETE", "/repos/org/fleet/keys/1") => (204, Value::Null),
                _ => return None,
            })
        },
    );
    assert_eq!(forge.hosted().await.unwrap(), None);
    let made = forge.make(DRAFT).await.unwrap();
    assert_eq!(made.ssh, "git@github.com:org/fleet.git");
    keys(&forge).await;
    assert!(
        asked
            .lock()
            .unwrap()
            .iter()
            .any(|line| line.starts_with("DELETE "))
    );
    let personal = Draft {
        personal: true,
        ..DRAFT
    };
    let refused = forge.make(personal).await.unwrap_err().to_string();
    assert!(
        refused.contains("POST https://api.github.com/user/repos answered 404"),
        "{refused}"
    );
    assert!(!refused.contains("hunter2"));
}

#[tokio::test]
async fn gitlab() {
    let (forge, _) = at(
        Kind::GitLab,
        "https://gitlab.com/org/sub/fleet.git",
        |method, path, body| {
            Some(match (method, path) {
                ("GET", "/api/v4/namespaces/org/sub") => (200, json!({"id": 7})),
                ("POST", "/api/v4/projects")
                    if body["namespace_id"] == 7
                        && body["path"] == "fleet"
                        && body["visibility"] == "private" =>
                {
                    (
                        201,
                        json!({"ssh_url_to_repo": "git@gitlab.com:org/sub/fleet.git", "default_branch": "main"}),
                    )
                }
                ("GET", "/api/v4/projects/org/sub/fleet/deploy_keys?page=1&per_page=50") => (
                    200,
                    json!([{"id": 1, "title": "old", "key": format!("{KEY} me@here"), "can_push": false}]),
                ),
                ("POST", "/api/v4/projects/org/sub/fleet/deploy_keys") if body["can_push"] == false => {
                    (201, json!({"id": 2}))
                }
                ("DELETE", "/api/v4/projects/org/sub/fleet/deploy_keys/1") => (204, Value::Null),
                _ => return None,
            })
        },
    );
    assert_eq!(forge.hosted().await.unwrap(), None);
    let made = forge.make(DRAFT).await.unwrap();
    assert_eq!(
        (made.ssh.as_str(), made.default_branch.as_str()),
        ("git@gitlab.com:org/sub/fleet.git", "")
    );
    keys(&forge).await;
}

#[tokio::test]
async fn bitbucket_server() {
    let address = "https://bitbucket.example.com/scm/ops/fleet.git";
    let (forge, _) = at(Kind::BitbucketServer, address, |method, path, body| {
        let links = json!({"clone": [
            {"name": "http", "href": "https://bitbucket.example.com/scm/ops/fleet.git"},
            {"name": "ssh", "href": "ssh://git@bitbucket.example.com:7999/ops/fleet.git"},
        ]});
        let key = json!({"key": {"id": 1, "text": format!("{KEY} old"), "label": "old"}, "permission": "REPO_READ"});
        Some(match (method, path) {
            ("POST", "/rest/api/latest/projects/ops/repos") if body["public"] == false => {
                (201, json!({"links": links}))
            }
            ("GET", "/rest/keys/latest/projects/ops/repos/fleet/ssh?start=0&limit=50") => {
                (200, json!({"values": [key], "isLastPage": true}))
            }
            ("POST", "/rest/keys/latest/projects/ops/repos/fleet/ssh")
                if body["permission"] == "REPO_READ" && body["key"]["text"] == format!("{KEY} new") =>
            {
                (201, json!({}))
            }
            ("DELETE", "/rest/keys/latest/projects/ops/repos/fleet/ssh/1") => (204, Value::Null),
            _ => return None,
        })
    });
    assert_eq!(forge.hosted().await.unwrap(), None);
    assert_eq!(
        forge.make(DRAFT).await.unwrap().ssh,
        "ssh://git@bitbucket.example.com:7999/ops/fleet.git"
    );
    keys(&forge).await;
}

#[tokio::test]
async fn azure_devops() {
    let address = "https://dev.azure.com/org/project/_git/fleet";
    let (forge, _) = at(Kind::AzureDevOps, address, |method, path, body| {
        Some(match (method, path) {
            ("POST", "/org/project/_apis/git/repositories?api-version=6.0") if body["name"] == "fleet" => (
                201,
                json!({"sshUrl": "git@ssh.dev.azure.com:v3/org/project/fleet"}),
            ),
            _ => return None,
        })
    });
    assert_eq!(forge.hosted().await.unwrap(), None);
    assert_eq!(forge.make(DRAFT).await.unwrap().default_branch, "");
    assert!(!forge.has_deploy_keys());
    let refused = forge.deploy_keys().await.unwrap_err().to_string();
    assert!(refused.contains("use a token"), "{refused}");
}

#[tokio::test]
async fn bitbucket_cloud_is_not_asked() {
    let (forge, asked) = at(Kind::Bitbucket, "https://bitbucket.org/org/fleet", |_, _, _| None);
    assert!(
        forge
            .hosted()
            .await
            .unwrap_err()
            .to_string()
            .contains("make it there")
    );
    assert!(asked.lock().unwrap().is_empty());
}
