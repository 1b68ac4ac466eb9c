//! Test notifications and a server that records them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::IntoResponse;
use cloud_identity::{Cache, Environment, Future, Identity, SendError, Session};
use event::{Event, InvolvedObject, Severity};
use serde_json::Value;

use crate::edge::{Edge, Http, Identities};
use crate::error::Error;
use crate::mask::Mask;
use crate::notification::{AlertRef, Notification, Sent};
use crate::provider;
use crate::provider_type::ProviderType as Type;
use crate::target::{ProviderRef, Target};

/// The chats, the incident services, and what passes events on.
pub(crate) const CHATS_AND_INCIDENTS: [Type; 20] = [
    Type::Generic,
    Type::GenericHmac,
    Type::Slack,
    Type::Discord,
    Type::MsTeams,
    Type::Rocket,
    Type::GoogleChat,
    Type::Webex,
    Type::Telegram,
    Type::Lark,
    Type::Matrix,
    Type::Zulip,
    Type::Zoom,
    Type::Opsgenie,
    Type::PagerDuty,
    Type::IncidentIo,
    Type::Sentry,
    Type::DataDog,
    Type::Grafana,
    Type::Alertmanager,
];

/// A failure of a Kustomization.
pub(crate) fn failure() -> Event {
    Event {
        involved_object: InvolvedObject {
            api_version: "kustomize.toolkit.fluxcd.io/v1".to_owned(),
            kind: "Kustomization".to_owned(),
            namespace: "apps".to_owned(),
            name: "webapp".to_owned(),
            uid: "7d0cdc51".to_owned(),
            ..InvolvedObject::default()
        },
        severity: Severity::Error,
        timestamp: Some("2022-10-28T07:26:19Z".parse().expect("it is a time")),
        message: "health check failed".to_owned(),
        reason: "HealthCheckFailed".to_owned(),
        metadata: BTreeMap::from([
            ("revision".to_owned(), "main@sha1:731f".to_owned()),
            ("summary".to_owned(), "blue".to_owned()),
            ("env".to_owned(), "prod".to_owned()),
        ]),
        reporting_controller: "kustomize-controller".to_owned(),
        reporting_instance: "pod-1".to_owned(),
    }
}

/// It succeeds again.
pub(crate) fn success() -> Event {
    Event {
        severity: Severity::Info,
        message: "Reconciliation finished".to_owned(),
        reason: "ReconciliationSucceeded".to_owned(),
        ..failure()
    }
}

pub(crate) fn notification(event: Event) -> Notification {
    let alert = AlertRef {
        name: "all".to_owned(),
        namespace: "apps".to_owned(),
        uid: "alert-uid".to_owned(),
    };
    Notification::new(event, alert)
}

/// A target of this type as its users configure it.
pub(crate) fn target(type_: Type) -> Target {
    let address = match type_ {
        Type::Slack => "https://slack.com/api/chat.postMessage",
        Type::Discord => "https://discord.com/api/webhooks/1234567890/webhook-token-1",
        Type::MsTeams => "https://prod.logic.azure.com/workflows/1?sig=signature-1234",
        Type::Webex => "https://webexapis.com/v1/messages",
        Type::Lark => "https://open.larksuite.com/open-apis/bot/v2/hook/hook-token-1",
        Type::Matrix => "https://matrix.org/",
        Type::Opsgenie => "https://api.opsgenie.com/v2/alerts",
        Type::Sentry => "https://public-key-1234@sentry.io/42",
        Type::DataDog => "https://api.datadoghq.com",
        Type::Grafana => "https://grafana.com/api/annotations",
        Type::Alertmanager => "https://alertmanager.org/api/v2/alerts/",
        Type::GoogleChat => {
            "https://chat.googleapis.com/v1/spaces/1/messages?key=key-12345&token=token-12345"
        }
        _ => "https://hook.example.org/services/hook-token-1",
    };
    Target {
        channel: match type_ {
            Type::Zulip => "ops/flux".to_owned(),
            Type::Telegram => "-123:7".to_owned(),
            Type::Matrix => "!room:example.org".to_owned(),
            _ => "general".to_owned(),
        },
        token: match type_ {
            Type::Alertmanager | Type::Zulip => String::new(),
            _ => "secret-token-1".to_owned(),
        },
        username: "flux-bot".to_owned(),
        password: "secret-password-1".to_owned(),
        provider: ProviderRef {
            name: "provider".to_owned(),
            namespace: "apps".to_owned(),
            uid: "provider-uid".to_owned(),
        },
        ..Target::new(type_, address)
    }
}

/// No one at no cloud.
pub(crate) struct Nobody {
    environment: Environment,
    cache: Cache,
}

impl Default for Nobody {
    fn default() -> Self {
        Self {
            environment: Environment::default(),
            cache: Cache::new(0, std::time::Duration::ZERO),
        }
    }
}

impl cloud_identity::Http for Nobody {
    fn send(&self, _: cloud_identity::Request) -> Future<'_, Result<cloud_identity::Answer, SendError>> {
        Box::pin(async { Err(SendError("nobody is there".to_owned())) })
    }
}

impl Identities for Nobody {
    fn session(&self) -> Session<'_> {
        Session {
            http: self,
            environment: &self.environment,
            cache: &self.cache,
        }
    }

    fn identity_of<'a>(&'a self, _: &'a str, _: Option<&'a str>) -> Future<'a, Result<Identity, String>> {
        Box::pin(async { Ok(Identity::Controller) })
    }
}

/// An edge that reaches everything but clouds.
pub(crate) fn edge() -> Edge {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Edge::new(Arc::new(Nobody::default()))
}

/// A request as a server sees it.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Heard {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

/// Answer of a test server.
pub(crate) type Reply = (StatusCode, HeaderMap, Vec<u8>);
type Answering = Arc<dyn Fn(&Heard) -> Reply + Send + Sync>;

/// A server on this machine, in the place of a service.
pub(crate) struct Server {
    pub(crate) url: String,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Server {
    /// Answers as this says.
    pub(crate) async fn start(answer: impl Fn(&Heard) -> Reply + Send + Sync + 'static) -> Self {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let answering: Answering = Arc::new(answer);
        let app = axum::Router::new()
            .fallback(answer_one)
            .with_state((heard.clone(), answering));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, heard }
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().expect("nobody panicked").clone()
    }
}

async fn answer_one(
    Shared((heard, answer)): Shared<(Arc<Mutex<Vec<Heard>>>, Answering)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> impl IntoResponse {
    let request = Heard {
        method,
        uri,
        headers,
        body,
    };
    let reply = answer(&request);
    heard.lock().expect("nobody panicked").push(request);
    reply
}

pub(crate) fn reply(status: u16, body: &str) -> Reply {
    let status = StatusCode::from_u16(status).expect("it is a status");
    (status, HeaderMap::new(), body.as_bytes().to_vec())
}

/// Says it to a server in the place of the service, whatever the address.
pub(crate) async fn say_to(
    server: &str,
    edge: &Edge,
    target: &Target,
    notification: &Notification,
) -> Result<Sent, Error> {
    let mask = &Mask::from_target(target);
    let mut requests = provider::render(target, notification)?;
    for request in &mut requests {
        let path = &request.url[url::Position::BeforePath..];
        request.url = format!("{server}{path}").parse().expect("it is a URL");
    }
    let said = Http { edge, target, mask }.send_all(requests).await;
    said.map_err(|error| error.masked(mask))
}
