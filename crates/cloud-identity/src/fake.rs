//! For tests: services that answer what they are told and remember what they were asked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use crate::cache::Cache;
use crate::environment::Environment;
use crate::exchange::{Answer, Future, Http, Reach, Request, SendError};
use crate::identity::{Identity, Issuer, ServiceAccount};
use crate::provider::Session;

/// A key that opens nothing, in both forms.
pub(crate) const RSA_PKCS1: &str = include_str!("fake/rsa_pkcs1.pem");
pub(crate) const RSA_PKCS8: &str = include_str!("fake/rsa_pkcs8.pem");
/// A certificate for it.
pub(crate) const CERTIFICATE: &str = include_str!("fake/certificate.pem");

/// Answers in order, each for the next request whatever it is.
#[derive(Default)]
pub(crate) struct Services {
    answers: Mutex<Vec<(u16, String)>>,
    requests: Mutex<Vec<String>>,
}

impl Services {
    pub(crate) fn answering(answers: &[(u16, &str)]) -> Self {
        Self {
            answers: Mutex::new(
                answers
                    .iter()
                    .rev()
                    .map(|(status, body)| (*status, (*body).to_owned()))
                    .collect(),
            ),
            requests: Mutex::default(),
        }
    }

    /// The requests so far: method, URL, then one line for each header and for the body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// The only request.
    pub(crate) fn request(&self) -> String {
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:#?}");
        requests[0].clone()
    }
}

impl Http for Services {
    fn send(&self, request: Request) -> Future<'_, Result<Answer, SendError>> {
        let near = if request.reach == Reach::Local {
            " (local)"
        } else {
            ""
        };
        let mut text = format!("{} {}{near}", request.method, request.url);
        let mut headers: Vec<_> = request
            .headers
            .iter()
            .map(|(name, value)| format!("\n{name}: {}", value.to_str().unwrap()))
            .collect();
        headers.sort();
        text.extend(headers);
        if !request.body.is_empty() {
            text.push('\n');
            text.push_str(std::str::from_utf8(&request.body).unwrap());
        }
        self.requests.lock().unwrap().push(text);
        let answer = self.answers.lock().unwrap().pop();
        Box::pin(async move {
            let (status, body) = answer.ok_or_else(|| SendError("connection refused".to_owned()))?;
            Ok(Answer {
                status: StatusCode::from_u16(status).unwrap(),
                headers: HeaderMap::new(),
                body: Bytes::from(body),
            })
        })
    }
}

/// Everything that a session needs.
pub(crate) struct World {
    pub(crate) services: Services,
    pub(crate) environment: Environment,
    pub(crate) cache: Cache,
}

impl World {
    /// No variables but these; the time is the one of Amazon's examples.
    pub(crate) fn new(variables: &[(&str, &str)], answers: &[(u16, &str)]) -> Self {
        Self {
            services: Services::answering(answers),
            environment: Environment::from_variables(variables).at("2013-05-24T00:00:00Z".parse().unwrap()),
            cache: Cache::new(10, Duration::from_secs(3600)),
        }
    }

    pub(crate) fn session(&self) -> Session<'_> {
        Session {
            http: &self.services,
            environment: &self.environment,
            cache: &self.cache,
        }
    }
}

struct FixedIssuer;

impl Issuer for FixedIssuer {
    fn issue(&self, audience: String) -> Future<'_, Result<String, String>> {
        Box::pin(async move { Ok(format!("token for {audience}")) })
    }
}

/// The ServiceAccount `apps/fetcher` with these annotations.
pub(crate) fn account(annotations: &[(&str, &str)]) -> Identity {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Identity::Account(ServiceAccount {
        namespace: "apps".to_owned(),
        name: "fetcher".to_owned(),
        annotations: annotations.iter().map(owned).collect(),
        issuer: Arc::new(FixedIssuer),
    })
}
