//! How token services and key services are asked: bounded, and through the proxy of whoever asks.

use std::time::Duration;

use cloud_identity::{Answer, Future, Http, Reach, Request, SendError};
use tokio::time::Instant;
use transport::http::{self, Clients, Settings};

/// As in Flux: a token service answers within this or is down.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Answers of token services are some kilobytes.
const MAX_ANSWER_BYTES: u64 = 1 << 20;

/// Asks services of clouds. It follows no redirects.
#[derive(Default)]
pub struct Exchange {
    /// The connections.
    pub clients: Clients,
    /// The proxy and the certificates to use; metadata servers and this machine are asked without a proxy.
    pub settings: Settings,
    /// When the time of the object is over that asks.
    pub deadline: Option<Instant>,
}

impl Exchange {
    async fn ask(&self, request: Request) -> Result<Answer, http::Error> {
        let longest = Instant::now() + TIMEOUT;
        let deadline = self.deadline.map_or(longest, |deadline| deadline.min(longest));
        let settings = match request.reach {
            Reach::Remote => {
                let host = request.url.host_str().unwrap_or_default();
                self.settings.clone().towards(host)
            }
            Reach::Local => Settings {
                direct: true,
                ..Settings::default()
            },
        };
        let builder = self
            .clients
            .get(&settings)?
            .request(request.method, request.url.clone())
            .headers(request.headers)
            .body(request.body);
        let response = http::within(deadline, &request.url, builder.send()).await?;
        Ok(Answer {
            status: response.status(),
            headers: response.headers().clone(),
            body: http::read(response, MAX_ANSWER_BYTES, deadline).await?,
        })
    }
}

impl Http for Exchange {
    fn send(&self, request: Request) -> Future<'_, Result<Answer, SendError>> {
        Box::pin(async move { self.ask(request).await.map_err(|error| SendError(words(error))) })
    }
}

/// Whoever asks says which service it was.
fn words(error: http::Error) -> String {
    match error {
        http::Error::Reach { cause, .. } => cause.to_string(),
        http::Error::Wait { .. } => "it did not answer in time".to_owned(),
        other => other.to_string(),
    }
}
