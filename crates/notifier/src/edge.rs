//! The one place where requests leave.
//!
//! Clients are kept by how connections are made. Redirects are followed only where the request stays the same and goes
//! to the same host: what is in it lets in whoever has it. How long it may take is the caller's to say.

mod clients;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cloud_identity::{Future, Identity, Session};
use futures::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use reqwest::Response;

use crate::error::{Error, Retry};
use crate::mask::Mask;
use crate::notification::Sent;
use crate::request::{Answer, Request};
use crate::retry_after;
use crate::target::Target;

/// More of a refusal is not looked at.
const MAX_REFUSAL_BYTES: usize = 4 << 10;
/// So long an answer that matters to no one is read.
const CLOSING_WORDS: Duration = Duration::from_secs(1);
/// More of a refusal is not told.
const MAX_QUOTED_BYTES: usize = 400;

/// Identities of this controller at cloud providers and GitHub.
pub trait Identities: Send + Sync {
    /// Returns the context of a token request.
    fn session(&self) -> Session<'_>;

    /// Identity of a Provider that names this ServiceAccount of its namespace; the controller's when it names
    /// none.
    fn identity_of<'a>(
        &'a self,
        namespace: &'a str,
        account: Option<&'a str>,
    ) -> Future<'a, Result<Identity, String>>;
}

/// Where requests leave: the clients of this process, and who it is elsewhere.
pub struct Edge {
    clients: clients::Clients,
    pub(crate) identities: Arc<dyn Identities>,
}

/// The edge as one target sees it.
#[derive(Clone, Copy)]
pub(crate) struct Http<'a> {
    pub(crate) edge: &'a Edge,
    pub(crate) target: &'a Target,
    pub(crate) mask: &'a Mask,
}

impl Edge {
    /// An edge without connections yet. The process must have installed its provider of cryptography.
    pub fn new(identities: Arc<dyn Identities>) -> Self {
        Self {
            clients: clients::Clients::default(),
            identities,
        }
    }
}

impl Http<'_> {
    /// Sends requests one after the other, as long as they succeed. What is kept of the answers is the last that there
    /// is.
    pub(crate) async fn send_all(&self, requests: Vec<Request>) -> Result<Sent, Error> {
        let mut said = Sent::default();
        for request in requests {
            let accept = request.accept;
            let is_gone = request.thread_is_gone;
            let answer = match accept {
                Some(_) => self.exchange(request).await?,
                None => self.hand_over(request).await?,
            };
            let outcome = self
                .success(answer.clone())
                .and_then(|answer| accept.map_or_else(|| Ok(Sent::default()), |accept| accept(&answer)));
            let sent = match outcome {
                Err(error) if is_gone(&answer) => return Err(error.thread_is_gone()),
                outcome => outcome?,
            };
            said.thread = sent.thread.or(said.thread);
        }
        Ok(said)
    }

    /// Sends a request, whatever the answer.
    pub(crate) async fn exchange(&self, request: Request) -> Result<Answer, Error> {
        let longest = request.longest;
        read(self.send(request).await?, longest).await
    }

    /// Sends a request of which only matters whether it was taken: what is said besides may be broken or never end, and
    /// the message must not be said again for that.
    async fn hand_over(&self, request: Request) -> Result<Answer, Error> {
        let longest = request.longest;
        let response = self.send(request).await?;
        if !response.status().is_success() {
            return read(response, longest).await;
        }
        let status = response.status();
        // Read for the sake of the connection, which can be used again then.
        let _ = tokio::time::timeout(CLOSING_WORDS, read(response, longest)).await;
        Ok(Answer {
            status,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            is_cut: true,
        })
    }

    async fn send(&self, request: Request) -> Result<Response, Error> {
        let client = self.edge.clients.get(self.target, &request.url)?;
        let sent = client
            .request(request.method, request.url)
            .headers(request.headers)
            .body(request.body)
            .send()
            .await;
        sent.map_err(|error| unreached(&error))
    }

    /// The answer if it is a success, or what the service says instead.
    pub(crate) fn success(&self, answer: Answer) -> Result<Answer, Error> {
        let status = answer.status;
        if status.is_success() {
            return Ok(answer);
        }
        let in_header = || forge::retry_after::pause(&answer.headers, Timestamp::now());
        let pause = || in_header().or_else(|| retry_after::pause_in(&answer.json()));
        let retry = match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                pause().map_or(Retry::Backoff, Retry::After)
            }
            StatusCode::REQUEST_TIMEOUT => Retry::Backoff,
            status if status.is_server_error() => Retry::Backoff,
            _ => Retry::Never,
        };
        let mut text = format!("request failed with status code {}", status.as_u16());
        if status.is_redirection() {
            text.push_str(": redirects are followed to the same host only");
        }
        let said = self.quote(&answer);
        if !said.is_empty() {
            text.push_str(": ");
            text.push_str(&said);
        }
        Err(Error::new(text, retry))
    }

    /// Quotes an answer for an error.
    pub(crate) fn quote(&self, answer: &Answer) -> String {
        let begin = &answer.body[..answer.body.len().min(MAX_REFUSAL_BYTES)];
        let goes_on = answer.is_cut || begin.len() < answer.body.len();
        let text = String::from_utf8_lossy(begin);
        let text = if goes_on {
            self.mask.begin(&text)
        } else {
            text.into_owned()
        };
        self.mask.line(&text, MAX_QUOTED_BYTES)
    }
}

impl forge::exchange::Exchange for Http<'_> {
    fn exchange(
        &self,
        request: forge::exchange::Request,
    ) -> BoxFuture<'_, Result<forge::exchange::Answer, forge::Error>> {
        let mut asked = Request::new(request.method, request.url, "", request.body);
        asked.headers = request.headers;
        asked.longest = request.longest;
        Box::pin(async move {
            let answer = Http::exchange(self, asked).await.map_err(Error::into_forge)?;
            Ok(forge::exchange::Answer {
                status: answer.status,
                headers: answer.headers,
                body: answer.body,
                is_cut: answer.is_cut,
            })
        })
    }
}

async fn read(mut response: Response, longest: usize) -> Result<Answer, Error> {
    let mut body = BytesMut::new();
    let mut is_cut = false;
    while let Some(chunk) = response.chunk().await.map_err(|error| unreached(&error))? {
        let room = longest - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        is_cut = chunk.len() > room;
        if is_cut {
            break;
        }
    }
    Ok(Answer {
        status: response.status(),
        headers: std::mem::take(response.headers_mut()),
        body: body.freeze(),
        is_cut,
    })
}

/// The service was not reached, or went away in the middle: the causes, without the URL, which may be a secret.
fn unreached(error: &reqwest::Error) -> Error {
    let mut texts = Vec::new();
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(error) = cause {
        texts.push(error.to_string());
        cause = error.source();
    }
    if texts.is_empty() {
        texts.push("the connection ended early".to_owned());
    }
    let text = format!("failed to execute request: {}", texts.join(": "));
    if error.is_builder() {
        Error::invalid(text)
    } else {
        Error::passing(text)
    }
}
