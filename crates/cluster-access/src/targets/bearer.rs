//! Tokens for a remote cluster, renewed before they end: each request gets the newest one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::{AUTHORIZATION, HeaderValue};
use http::{Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use tokio::sync::Mutex;
use workload_identity::Identities;

use super::described::Description;

/// For how long a token is used whose end no one told.
const UNKNOWN_LIFE: Duration = Duration::from_secs(60);

/// The tokens of one cluster.
pub(super) struct Tokens {
    description: Description,
    identities: Arc<Identities>,
    newest: Mutex<Option<Token>>,
}

#[derive(Clone)]
struct Token {
    header: HeaderValue,
    /// When a new one is asked for: after four fifths of its life, as the kubelet does.
    renewed_at: Instant,
    ends_at: Instant,
}

/// There is no token.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NoToken(String);

impl Tokens {
    pub(super) fn new(description: Description, identities: Arc<Identities>) -> Self {
        Self {
            description,
            identities,
            newest: Mutex::default(),
        }
    }

    /// Fails, with the ConfigMap, when there is no token: that is not for the cluster to answer.
    pub(super) async fn check(&self) -> Result<(), super::error::Error> {
        self.header().await.map(drop).map_err(|problem| {
            let (namespace, name) = self.description.found_in();
            super::error::Error::UseConfigMap {
                namespace,
                name,
                problem,
            }
        })
    }

    /// The newest token. Who asks while it is being renewed waits for the new one.
    async fn header(&self) -> Result<HeaderValue, String> {
        let mut newest = self.newest.lock().await;
        let now = Instant::now();
        if let Some(token) = newest.as_ref().filter(|token| now < token.renewed_at) {
            return Ok(token.header.clone());
        }
        match self.renewed(now).await {
            Ok(token) => Ok(newest.insert(token).header.clone()),
            // What is still good is used while there is no other.
            Err(problem) => match newest.as_ref().filter(|token| now < token.ends_at) {
                Some(token) => Ok(token.header.clone()),
                None => Err(problem),
            },
        }
    }

    async fn renewed(&self, now: Instant) -> Result<Token, String> {
        let (token, expires) = self.description.token(&self.identities).await?;
        let mut header = HeaderValue::from_str(&format!("Bearer {}", *token))
            .map_err(|_| "the token has characters that no header can carry".to_owned())?;
        header.set_sensitive(true);
        let left = expires.map(|expires| expires.duration_since(jiff::Timestamp::now()));
        let life = left.map_or(UNKNOWN_LIFE, |left| Duration::try_from(left).unwrap_or_default());
        Ok(Token {
            header,
            renewed_at: now + life / 5 * 4,
            ends_at: now + life,
        })
    }

    /// Forgets a token that the cluster does not take, if it still is the newest.
    async fn refused(&self, header: &HeaderValue) {
        let mut newest = self.newest.lock().await;
        if newest.as_ref().is_some_and(|token| token.header == *header) {
            *newest = None;
        }
    }
}

/// Makes a client that shows the newest token with each request, over the connections of `client`.
pub(super) fn with_tokens(client: &Client, tokens: Arc<Tokens>) -> Client {
    let (namespace, client) = (client.default_namespace().to_owned(), client.clone());
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let (client, tokens) = (client.clone(), Arc::clone(&tokens));
        async move {
            let header = tokens.header().await;
            let header = header.map_err(|problem| kube::Error::Service(Box::new(NoToken(problem))))?;
            request.headers_mut().insert(AUTHORIZATION, header.clone());
            let response: Result<Response<Body>, kube::Error> = client.send(request).await;
            if let Ok(response) = &response
                && response.status() == StatusCode::UNAUTHORIZED
            {
                tokens.refused(&header).await;
            }
            response
        }
    });
    Client::new(service, namespace)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;

    /// An API server that gives tokens 1, 2, 3 of so many seconds, and a cluster that says which one it was shown.
    fn tokens(seconds: i64) -> Tokens {
        let count = Arc::new(AtomicUsize::new(0));
        let api = tower::service_fn(move |request: Request<Body>| {
            let number = count.fetch_add(1, Ordering::Relaxed) + 1;
            assert_eq!(
                request.uri().path(),
                "/api/v1/namespaces/apps/serviceaccounts/remote/token"
            );
            let expires = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
            let status = json!({"token": number.to_string(), "expirationTimestamp": expires.to_string()});
            let answer = json!({
                "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []},
                "status": status,
            });
            async move { Ok::<_, kube::Error>(Response::new(Body::from(answer.to_string().into_bytes()))) }
        });
        let data = [
            ("provider", "generic"),
            ("address", "https://remote"),
            ("serviceAccountName", "remote"),
        ];
        let data: BTreeMap<String, String> = data
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let description = Description::new(
            "apps",
            "cluster",
            &data,
            crate::targets::described::Asker::default(),
        )
        .unwrap();
        let identities = Identities::without_clouds(Client::new(api, "default"));
        Tokens::new(description, Arc::new(identities))
    }

    async fn shown(tokens: &Tokens) -> String {
        tokens.header().await.unwrap().to_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_token_is_shown_until_it_is_due_or_refused() {
        let lasting = tokens(3600);
        assert_eq!(shown(&lasting).await, "Bearer 1");
        assert_eq!(shown(&lasting).await, "Bearer 1");
        lasting.refused(&HeaderValue::from_static("Bearer 0")).await;
        assert_eq!(shown(&lasting).await, "Bearer 1");
        lasting.refused(&HeaderValue::from_static("Bearer 1")).await;
        assert_eq!(shown(&lasting).await, "Bearer 2");
        assert!(!format!("{:?}", lasting.header().await).contains('2'));

        let over = tokens(0);
        assert_eq!(shown(&over).await, "Bearer 1");
        assert_eq!(shown(&over).await, "Bearer 2");
    }

    #[tokio::test]
    async fn a_token_that_the_cluster_does_not_take_is_replaced() {
        let remote = tower::service_fn(|request: Request<Body>| async move {
            let is_first = request.headers()[AUTHORIZATION] == "Bearer 1";
            let status = if is_first {
                StatusCode::UNAUTHORIZED
            } else {
                StatusCode::OK
            };
            let mut response = Response::new(Body::empty());
            *response.status_mut() = status;
            Ok::<_, kube::Error>(response)
        });
        let client = with_tokens(&Client::new(remote, "default"), Arc::new(tokens(3600)));
        let ask = async || {
            let request = Request::get("/version").body(Body::empty()).unwrap();
            client.send(request).await.unwrap().status()
        };
        assert_eq!(ask().await, StatusCode::UNAUTHORIZED);
        assert_eq!(ask().await, StatusCode::OK);
    }
}
