//! A service on this machine: answers as it is told, and remembers what it was asked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use cloud_identity::{Cache, Environment, Future, Identity, SendError, Session};
use http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::Value;

use crate::edge::{Edge, Identities};
use crate::error::Error;
use crate::notification::{AlertRef, Notification, Sent};
use crate::provider_type::ProviderType;
use crate::target::Target;

/// Recorded request to a service.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    /// Path and query, as they came.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Its answer: status, headers, body.
pub(crate) type Reply = (u16, Vec<(&'static str, String)>, String);

/// A service.
pub(crate) struct Service {
    /// Where it is: `http://127.0.0.1:PORT`.
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Asked {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("it is JSON")
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("it is text"))
    }

    /// Method and path without the query.
    pub(crate) fn what(&self) -> String {
        format!(
            "{} {}",
            self.method,
            self.path.split('?').next().unwrap_or_default()
        )
    }
}

impl Service {
    /// Starts one that answers like this until the test ends.
    pub(crate) async fn start(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let kept = asked.clone();
        let answer = Arc::new(answer);
        let handler = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            let asked = Asked {
                method,
                path: uri.to_string(),
                headers,
                body,
            };
            kept.lock().unwrap().push(asked.clone());
            let reply = answer(&asked);
            async move { response(reply) }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = axum::Router::new().fallback(handler);
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, asked }
    }

    /// Takes the requests since the last call.
    pub(crate) fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    /// The same as methods and paths.
    pub(crate) fn took(&self) -> Vec<String> {
        self.take().iter().map(Asked::what).collect()
    }
}

fn response((status, headers, body): Reply) -> Response {
    let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
    for (name, value) in headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

/// An answer of JSON.
pub(crate) fn json(status: u16, body: &Value) -> Reply {
    (
        status,
        vec![("content-type", "application/json".to_owned())],
        body.to_string(),
    )
}

/// Identities of a controller that is no one anywhere.
pub(crate) struct Nobody {
    pub(crate) environment: Environment,
    pub(crate) cache: Cache,
}

impl cloud_identity::Http for Nobody {
    fn send(&self, _: cloud_identity::Request) -> Future<'_, Result<cloud_identity::Answer, SendError>> {
        Box::pin(async { Err(SendError("connection refused".to_owned())) })
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

/// An edge in these surroundings.
pub(crate) fn edge(variables: &[(&str, &str)]) -> Edge {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Edge::new(Arc::new(Nobody {
        environment: Environment::from_variables(variables),
        cache: Cache::new(10, Duration::from_secs(3600)),
    }))
}

/// A target with a token.
pub(crate) fn target(type_: ProviderType, address: &str) -> Target {
    let mut target = Target::new(type_, address);
    target.token = "hunter2-token".to_owned();
    target.provider.uid = "0c9c2e41-d2f9-4f9b-9c41-bebc1984d67a".to_owned();
    target
}

pub(crate) const COMMIT: &str = "a1afe267b54f38b46b487f6e938a6fd508278c07";

/// An event of a Kustomization, with a commit and a pull request.
pub(crate) fn notification(severity: &str, reason: &str, message: &str) -> Notification {
    let event = event::Event {
        involved_object: event::InvolvedObject {
            kind: "Kustomization".to_owned(),
            namespace: "apps".to_owned(),
            name: "webapp".to_owned(),
            uid: "7d0cdc51-ddcf-4743-b223-83ca5c699632".to_owned(),
            api_version: "kustomize.toolkit.fluxcd.io/v1".to_owned(),
            ..event::InvolvedObject::default()
        },
        severity: severity.to_owned().into(),
        timestamp: Some("2022-10-28T07:26:19Z".parse().unwrap()),
        message: message.to_owned(),
        reason: reason.to_owned(),
        metadata: [
            ("revision".to_owned(), format!("main@sha1:{COMMIT}")),
            ("change_request".to_owned(), "7".to_owned()),
        ]
        .into(),
        reporting_controller: "kustomize-controller".to_owned(),
        reporting_instance: String::new(),
    };
    Notification {
        commit_status: Some("kustomization/webapp/0c9c2e41".to_owned()),
        ..Notification::new(
            event,
            AlertRef {
                name: "on-call".to_owned(),
                namespace: "apps".to_owned(),
                uid: "4f2f4dd9-6b0a-4ea9-8e44-6ab0d9f5e2a1".to_owned(),
            },
        )
    }
}

/// A failure.
pub(crate) fn failed() -> Notification {
    notification(
        "error",
        "HealthCheckFailed",
        "timeout waiting for: Deployment/apps/web",
    )
}

/// A success.
pub(crate) fn succeeded() -> Notification {
    notification("info", "ReconciliationSucceeded", "Reconciliation finished in 1s")
}

/// One attempt.
pub(crate) async fn send(target: &Target, notification: &Notification) -> Result<Sent, Error> {
    crate::provider::send(&edge(&[]), target, notification).await
}
