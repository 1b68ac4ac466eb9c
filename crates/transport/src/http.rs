//! HTTP as every remote needs it: pooled clients, redirects that leave credentials behind, bounded bodies.
//!
//! In: a URL, the TLS and proxy settings of an object, a deadline. Out: a response, or an [`Error`] that says what
//! went wrong in words for people and in a [`Kind`] for the controller. One client is kept for each distinct
//! [`Settings`], so that a hundred objects of one registry share connections and one set of root certificates;
//! clients never hold credentials, those go with each request. Nothing here knows Git or registries.

mod client;
mod error;
mod hosts;
mod refusal;
mod retry_after;

use bytes::{Bytes, BytesMut};
use reqwest::header::{HeaderMap, HeaderValue, LOCATION};
use reqwest::{Method, Response};
use tokio::time::Instant;
use url::Url;

pub use self::client::{Client, Clients, Proxy, Settings};
pub use self::error::{Error, Kind, Phase, TimedOut};
pub use self::hosts::{Host, Hosts, NoHost};
pub use self::refusal::{begins_a_page, checked, refuse_page};
pub use self::retry_after::RetryAfter;
use crate::received;

/// As Go's client, which Flux uses.
const MAX_REDIRECTS: usize = 10;

/// A request, without its body.
pub struct Request<'a> {
    /// Its method.
    pub method: Method,
    /// The requested URL.
    pub url: Url,
    /// Sent wherever a redirect leads.
    pub headers: HeaderMap,
    /// Sent to the origin of `url` only, never to where a redirect leads.
    pub authorization: Option<&'a HeaderValue>,
}

/// Sends a request and follows redirects, whatever the status at the end.
///
/// Credentials stay with the origin that was asked; a redirect from https to http is refused, and each request that leads to where the
/// client may not go.
pub async fn send(client: &Client, request: Request<'_>, deadline: Instant) -> Result<Response, Error> {
    send_body(client, request, None, deadline).await
}

/// Like [`send`], with a body. A redirect gets it again, whatever its status: nothing is turned into a GET.
pub async fn send_body(
    client: &Client,
    request: Request<'_>,
    body: Option<Bytes>,
    deadline: Instant,
) -> Result<Response, Error> {
    let mut url = request.url.clone();
    for _ in 0..=MAX_REDIRECTS {
        client.check(&url)?;
        let mut builder = client
            .request(request.method.clone(), url.clone())
            .headers(request.headers.clone());
        if let Some(authorization) = request.authorization.filter(|_| same_origin(&url, &request.url)) {
            builder = builder.header(reqwest::header::AUTHORIZATION, authorization);
        }
        if let Some(body) = &body {
            builder = builder.body(body.clone());
        }
        let response = within(deadline, &url, builder.send()).await?;
        match redirect_target(&url, &response)? {
            Some(target) => url = target,
            None => return Ok(response),
        }
    }
    Err(Error::Redirect {
        url: public(&request.url),
        problem: "it does not end; stopped after 10 redirects",
    })
}

/// Reads a body of at most `limit` bytes.
pub async fn read(mut response: Response, limit: u64, deadline: Instant) -> Result<Bytes, Error> {
    let mut body = BytesMut::new();
    while let Some(chunk) = next_chunk(&mut response, deadline).await? {
        if body.len() as u64 + chunk.len() as u64 > limit {
            return Err(Error::ReadAll {
                url: public(response.url()),
                limit,
            });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// The next piece of a body, or None at its end.
pub async fn next_chunk(response: &mut Response, deadline: Instant) -> Result<Option<Bytes>, Error> {
    let url = response.url().clone();
    let chunk = waited(deadline, &url, Phase::Body, response.chunk()).await?;
    received::add(chunk.as_ref().map_or(0, Bytes::len));
    Ok(chunk)
}

/// Waits for an answer until the deadline.
pub async fn within<T>(
    deadline: Instant,
    url: &Url,
    operation: impl Future<Output = Result<T, reqwest::Error>>,
) -> Result<T, Error> {
    waited(deadline, url, Phase::Answer, operation).await
}

async fn waited<T>(
    deadline: Instant,
    url: &Url,
    phase: Phase,
    operation: impl Future<Output = Result<T, reqwest::Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout_at(deadline, operation).await {
        Ok(result) => result.map_err(|error| Error::reach(url, error, phase)),
        Err(_) => Err(Error::wait(url, phase)),
    }
}

fn redirect_target(url: &Url, response: &Response) -> Result<Option<Url>, Error> {
    const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];
    if !REDIRECTS.contains(&response.status().as_u16()) {
        return Ok(None);
    }
    let refuse = |problem| Error::Redirect {
        url: public(url),
        problem,
    };
    let location = response
        .headers()
        .get(LOCATION)
        .and_then(|location| location.to_str().ok());
    let location = location.ok_or_else(|| refuse("it does not say where to"))?;
    let target = url.join(location).map_err(|_| refuse("it leads to no URL"))?;
    match (url.scheme(), target.scheme()) {
        ("https", "http") => Err(refuse("it leads from https to http")),
        (_, "http" | "https") => Ok(Some(target)),
        _ => Err(refuse("it leads to neither http nor https")),
    }
}

/// Returns whether both are served by the same server, so that what one may know the other may know.
pub fn same_origin(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme() && a.host() == b.host() && a.port_or_known_default() == b.port_or_known_default()
}

/// The URL as it may be shown: without user, password, query (signed URLs) and fragment.
pub fn public(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username(""); // fails only for URLs that can have none
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

#[cfg(test)]
mod tests;
