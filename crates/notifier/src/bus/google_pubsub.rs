//! `googlepubsub`: a message on a topic of Google Pub/Sub, over REST.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloud_identity::gcp::AccountKey;
use serde::Serialize;
use url::Url;

use crate::edge::Http;
use crate::error::Error;
use crate::forward;
use crate::identity;
use crate::notification::{Notification, Sent};
use crate::request::Request;
use crate::target::Target;
use forge::api::url;

const ROOT: &str = "https://pubsub.googleapis.com/";
/// Scope of a key's token.
const SCOPE: &str = "https://www.googleapis.com/auth/pubsub";
/// As in Google's libraries: where Pub/Sub is instead, without tokens.
const EMULATOR: &str = "PUBSUB_EMULATOR_HOST";

#[derive(Serialize)]
struct Publish<'a> {
    messages: [Message<'a>; 1],
}

#[derive(Serialize)]
struct Message<'a> {
    data: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    attributes: &'a BTreeMap<String, String>,
}

/// Checks a target.
pub(super) fn check(target: &Target) -> Result<(), Error> {
    if target.address.is_empty() {
        return Err(Error::invalid("GCP project ID cannot be empty"));
    }
    if target.channel.is_empty() {
        return Err(Error::invalid("GCP Pub/Sub topic ID cannot be empty"));
    }
    key(target).map(drop)
}

/// Publishes the event; the Secret's headers are attributes of the message.
pub(super) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let target = http.target;
    check(target)?;
    let emulator = http.edge.identities.session().environment.get(EMULATOR);
    let root = match emulator {
        Some(host) => Url::parse(&format!("http://{host}/")),
        None => Url::parse(ROOT),
    };
    let root = root.map_err(|error| Error::invalid(format!("invalid {EMULATOR}: {error}")))?;
    let mut request = render(&root, target, notification)?;
    if emulator.is_none() {
        let token = identity::google(http, key(target)?.as_ref(), SCOPE).await?;
        request = request.authorization("Bearer", &token)?;
    }
    let topic = format!("projects/{}/topics/{}", target.address, target.channel);
    let answer = http.exchange(request).await;
    let sent = answer.and_then(|answer| http.success(answer));
    sent.map_err(|error| error.within(&format!("error publishing to GCP Pub/Sub topic {topic}")))?;
    Ok(Sent::default())
}

fn render(root: &Url, target: &Target, notification: &Notification) -> Result<Request, Error> {
    let topic = format!("{}:publish", target.channel);
    let url = url(root, &["v1", "projects", &target.address, "topics", &topic])?;
    let publish = Publish {
        messages: [Message {
            data: STANDARD.encode(go_text::json::to_vec(&*forward::worded(notification))),
            attributes: &target.headers,
        }],
    };
    Ok(Request::json(url, &publish))
}

/// The key in the Secret; without one the identity of the workload is used.
fn key(target: &Target) -> Result<Option<AccountKey>, Error> {
    if target.token.is_empty() {
        return Ok(None);
    }
    let key = AccountKey::parse(target.token.as_bytes());
    key.map(Some).map_err(|error| Error::invalid(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification::AlertRef;
    use crate::provider_type::ProviderType;

    #[test]
    fn the_event_is_the_data_and_headers_are_attributes() {
        let mut target = Target::new(ProviderType::GooglePubSub, "my-project");
        target.channel = "my topic/x".to_owned();
        target.headers.insert("team".to_owned(), "apps".to_owned());
        let notification = Notification::new(event::Event::default(), AlertRef::default());
        let request = render(&Url::parse(ROOT).unwrap(), &target, &notification).unwrap();
        assert_eq!(
            request.url.as_str(),
            "https://pubsub.googleapis.com/v1/projects/my-project/topics/my%20topic%2Fx:publish"
        );
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        let message = &body["messages"][0];
        assert_eq!(message["attributes"]["team"], "apps");
        let data = STANDARD.decode(message["data"].as_str().unwrap()).unwrap();
        assert_eq!(
            serde_json::from_slice::<event::Event>(&data).unwrap(),
            event::Event::default()
        );
    }

    #[test]
    fn project_topic_and_kind_of_credential_are_checked() {
        let mut target = Target::new(ProviderType::GooglePubSub, "");
        let problem = |target: &Target| check(target).unwrap_err().to_string();
        assert_eq!(problem(&target), "GCP project ID cannot be empty");
        target.address = "p".to_owned();
        assert_eq!(problem(&target), "GCP Pub/Sub topic ID cannot be empty");
        target.channel = "t".to_owned();
        check(&target).unwrap();
        target.token = r#"{"type":"external_account","credential_source":{"file":"/etc/passwd"}}"#.to_owned();
        assert_eq!(
            problem(&target),
            "failed to create Google credentials from secret: only credentials of type service_account are supported"
        );
    }
}
