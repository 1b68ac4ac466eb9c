//! Tests of the controller's identity at Microsoft and Google, through the proxy of the Provider.

use serde_json::json;

use super::service::{self, Asked, COMMIT, Reply, failed, target};
use super::world::World;
use crate::provider::send;
use crate::provider_type::ProviderType as Type;

const HOSTS: [&str; 4] = [
    "dev.azure.com",
    "ns.servicebus.windows.net",
    "pubsub.googleapis.com",
    "api.github.com",
];
const RSA: &str = include_str!("../../../../cloud-identity/src/fake/rsa_pkcs8.pem");

/// Gives tokens at two places, and wants them at the others.
fn answer(asked: &Asked) -> Reply {
    let token = |name: &str| service::json(200, &json!({"access_token": name, "expires_in": 3600}));
    let wanted = |login: &str, status, body| match asked.header("authorization") == login {
        true => service::json(status, &body),
        false => service::json(401, &json!({"message": "who are you?"})),
    };
    match asked.path.as_str() {
        path if path.starts_with("http://login.test/tenant/") => token("aad-token"),
        path if path.starts_with("http://google.test/") => token("google-token"),
        path if path.starts_with("https://dev.azure.com/") => {
            wanted("Bearer aad-token", 200, json!({"value": []}))
        }
        path if path.starts_with("https://ns.servicebus.windows.net/") => {
            wanted("Bearer aad-token", 201, json!({}))
        }
        path if path.starts_with("https://pubsub.googleapis.com/") => {
            wanted("Bearer google-token", 200, json!({}))
        }
        path if path.starts_with("https://api.github.com/") => wanted("Bearer hunter2-token", 200, json!([])),
        _ => (404, vec![], String::new()),
    }
}

fn azure() -> crate::edge::Edge {
    service::edge(&[
        ("AZURE_AUTHORITY_HOST", "http://login.test/"),
        ("AZURE_TENANT_ID", "tenant"),
        ("AZURE_CLIENT_ID", "client"),
        ("AZURE_CLIENT_SECRET", "s3cret"),
    ])
}

fn body(asked: &Asked) -> String {
    String::from_utf8(asked.body.to_vec()).unwrap()
}

#[tokio::test]
async fn azure_devops_takes_the_identity_of_the_controller() {
    let world = World::start(&HOSTS, answer).await;
    let mut target = world.within(target(
        Type::AzureDevOps,
        "https://dev.azure.com/org/project/_git/repo",
    ));
    target.token.clear();
    send(&azure(), &target, &failed()).await.unwrap();
    let asked = world.take();
    assert!(body(&asked[0]).contains("scope=499b84ac-1321-427f-aa17-267ca6975798%2F.default"));
    assert_eq!(
        asked[2].path,
        format!(
            "https://dev.azure.com/org/project/_apis/git/repositories/repo/commits/{COMMIT}/statuses?api-version=6.0"
        )
    );
    assert_eq!(asked.len(), 3);
}

#[tokio::test]
async fn an_event_hub_takes_the_identity_of_the_controller() {
    let world = World::start(&HOSTS, answer).await;
    let mut target = world.within(target(Type::AzureEventHub, "hub"));
    target.token.clear();
    target.channel = "ns".to_owned();
    send(&azure(), &target, &failed()).await.unwrap();
    let asked = world.take();
    assert!(body(&asked[0]).contains("scope=https%3A%2F%2Feventhubs.azure.net%2F.default"));
    assert_eq!(
        asked[1].path,
        "https://ns.servicebus.windows.net/hub/messages?api-version=2014-01"
    );
}

#[tokio::test]
async fn the_identity_of_the_controller_goes_no_way_that_a_tenant_chose() {
    let world = World::start(&HOSTS, answer).await;
    let mut target = world.within(target(Type::AzureEventHub, "hub"));
    target.token.clear();
    target.channel = "ns".to_owned();
    target.locked = true;
    let refused = send(&azure(), &target, &failed()).await.unwrap_err().to_string();
    assert!(
        refused.contains("own identity at a cloud is not used together with a proxy"),
        "{refused}"
    );
    target.proxy = None;
    let refused = send(&azure(), &target, &failed()).await.unwrap_err().to_string();
    assert!(refused.contains("or certificates of the Provider"), "{refused}");
    assert!(world.take().is_empty(), "nobody was asked");
}

#[tokio::test]
async fn pubsub_takes_the_token_that_a_key_gets() {
    let world = World::start(&HOSTS, answer).await;
    let mut target = world.within(target(Type::GooglePubSub, "my-project"));
    target.channel = "flux".to_owned();
    target.token = json!({
        "type": "service_account",
        "client_email": "flux@my-project.iam.gserviceaccount.com",
        "private_key": RSA,
        "token_uri": "http://google.test/token",
    })
    .to_string();
    let edge = service::edge(&[]);
    for _ in 0..2 {
        send(&edge, &target, &failed()).await.unwrap();
    }
    let paths: Vec<String> = world.take().into_iter().map(|asked| asked.path).collect();
    let publish = "https://pubsub.googleapis.com/v1/projects/my-project/topics/flux:publish";
    assert_eq!(paths, ["http://google.test/token", publish, publish]); // the token is kept
}

#[tokio::test]
async fn github_in_the_cloud_has_its_api_elsewhere() {
    let world = World::start(&HOSTS, answer).await;
    let target = world.within(target(Type::GitHub, "git@github.com:foo/bar.git"));
    send(&service::edge(&[]), &target, &failed()).await.unwrap();
    let asked = world.take();
    assert_eq!(
        asked[1].path,
        format!("https://api.github.com/repos/foo/bar/statuses/{COMMIT}")
    );
}
