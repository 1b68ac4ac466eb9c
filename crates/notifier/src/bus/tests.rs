//! Buses on this machine.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::error::Retry;
use crate::git::tests::service::{self, Service, failed, send, succeeded, target};
use crate::provider::send as send_from;
use crate::provider_type::ProviderType as Type;

#[tokio::test]
async fn pubsub_is_published_to_without_a_token_at_an_emulator() {
    let pubsub = Service::start(|asked| match asked.path.as_str() {
        "/v1/projects/my-project/topics/flux:publish" => service::json(200, &json!({"messageIds": ["1"]})),
        _ => service::json(404, &json!({"error": {"message": "Resource not found"}})),
    })
    .await;
    let host = pubsub.url.trim_start_matches("http://").to_owned();
    let edge = service::edge(&[("PUBSUB_EMULATOR_HOST", &host)]);
    let mut target = target(Type::GooglePubSub, "my-project");
    target.token.clear();
    target.channel = "flux".to_owned();
    target.headers.insert("team".to_owned(), "apps".to_owned());
    send_from(&edge, &target, &failed()).await.unwrap();
    let asked = pubsub.take();
    assert_eq!(asked[0].header("authorization"), "");
    let message = &asked[0].json()["messages"][0];
    assert_eq!(message["attributes"], json!({"team": "apps"}));
    let data = STANDARD.decode(message["data"].as_str().unwrap()).unwrap();
    assert_eq!(
        serde_json::from_slice::<event::Event>(&data).unwrap(),
        failed().event
    );

    target.channel = "other".to_owned();
    let error = send_from(&edge, &target, &failed()).await.unwrap_err();
    assert_eq!(error.retry, Retry::Never);
    let text = error.to_string();
    let begin = "error publishing to GCP Pub/Sub topic projects/my-project/topics/other: request failed with status code 404";
    assert!(text.starts_with(begin), "{text}");
}

#[tokio::test]
async fn pubsub_takes_a_token_of_the_key() {
    let key = include_str!("../../../cloud-identity/src/fake/rsa_pkcs8.pem");
    let google = Service::start(|asked| {
        let body = String::from_utf8_lossy(&asked.body);
        assert!(body.contains("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"));
        service::json(403, &json!({"error": "access_denied"}))
    })
    .await;
    let mut target = target(Type::GooglePubSub, "my-project");
    target.channel = "flux".to_owned();
    target.token = json!({
        "type": "service_account",
        "client_email": "flux@my-project.iam.gserviceaccount.com",
        "private_key": key,
        "token_uri": format!("{}/token", google.url),
    })
    .to_string();
    let error = send(&target, &failed()).await.unwrap_err();
    assert_eq!(google.took(), ["POST /token"]);
    assert!(error.to_string().contains("access_denied"), "{error}");
    assert_eq!(error.retry, Retry::Never);
}

#[tokio::test]
async fn an_event_hub_takes_a_signed_event() {
    let hub = Service::start(|asked| {
        let signature = asked.header("authorization");
        let is_signed = signature.starts_with("SharedAccessSignature sr=http%3A%2F%2F127.0.0.1")
            && signature.ends_with("&skn=Root")
            && asked.path == "/hub/messages?api-version=2014-01"
            && asked.header("content-type") == "application/atom+xml;type=entry;charset=utf-8";
        if is_signed {
            return (201, vec![], String::new());
        }
        (
            401,
            vec![],
            "<Error><Detail>bad key c2VjcmV0LWtleQ==</Detail></Error>".to_owned(),
        )
    })
    .await;
    let endpoint = hub.url.replace("http://", "sb://");
    let address = format!(
        "Endpoint={endpoint};SharedAccessKeyName=Root;SharedAccessKey=c2VjcmV0LWtleQ==;EntityPath=hub;UseDevelopmentEmulator=true"
    );
    let mut target = target(Type::AzureEventHub, &address);
    target.token.clear();
    send(&target, &succeeded()).await.unwrap();
    assert_eq!(
        hub.take()[0].json(),
        serde_json::to_value(succeeded().event).unwrap()
    );

    target.address = address.replace("EntityPath=hub", "EntityPath=other");
    let error = send(&target, &succeeded()).await.unwrap_err();
    assert_eq!(error.retry, Retry::Never);
    assert!(
        error
            .to_string()
            .starts_with("failed to send msg: request failed with status code 401"),
        "{error}"
    );
    assert!(!error.to_string().contains("c2VjcmV0"), "{error}");
}
