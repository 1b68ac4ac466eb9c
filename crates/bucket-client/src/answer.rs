//! Answers of object stores: pages, objects and errors.

use jiff::Timestamp;
use reqwest::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use tokio::time::Instant;
use transport::http;
use url::Url;

use crate::upload::Upload;
use crate::xml;

/// Objects for each page that is asked for; more than this no store gives.
pub(super) const PAGE: usize = 1000;

/// A thousand names of the greatest length, encoded, with all that stands around them.
pub(super) const MAX_PAGE_BYTES: u64 = 16 << 20;

pub(super) const MAX_REFUSAL_BYTES: u64 = 16 << 10;

pub(super) const MAX_QUOTED: usize = 300;

/// An object as a listing has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) key: String,
    pub(super) etag: String,
    /// When it was put, if the store says so.
    pub(super) modified: Option<Timestamp>,
}

/// A part of a listing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) objects: Vec<Object>,
    /// Token for the next page; None at the end.
    pub(super) next: Option<String>,
}

/// An object's content, which is still to be read, and its etag.
pub(super) struct Opened {
    pub(super) response: Response,
    pub(super) etag: String,
}

/// Error answer of a store. Holds no credentials.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It could not be reached, or broke off.
    #[error(transparent)]
    Http(#[from] http::Error),
    /// It refused, and said why.
    #[error("{message} ({code}, HTTP status {})", status.as_u16())]
    Refused {
        /// The status.
        status: StatusCode,
        /// Its word for the reason, such as `AccessDenied`.
        code: String,
        /// Its sentence.
        message: String,
        /// When it wants to be asked again, if it said so.
        #[source]
        retry_after: Option<http::RetryAfter>,
    },
    /// The answer is no listing.
    #[error(
        "the answer of '{url}' is no listing of a bucket; is spec.endpoint the address of an object store?"
    )]
    Listing {
        /// Where from.
        url: String,
    },
    /// Credentials with characters that cannot be sent.
    #[error("the credentials hold characters that cannot be sent")]
    Unsendable,
    /// An invalid URL.
    #[error("failed to make a URL for the object")]
    Url,
}

impl Problem {
    /// Returns whether what was asked for is not there.
    pub(super) fn is_absent(&self) -> bool {
        match self {
            Self::Http(http::Error::Status { status, .. }) | Self::Refused { status, .. } => {
                *status == StatusCode::NOT_FOUND
            }
            _ => false,
        }
    }
}

/// Sends a GET. Redirects are not followed: a signature is for one host, a token is for one owner.
pub(super) async fn get(
    client: &reqwest::Client,
    url: &Url,
    headers: HeaderMap,
    deadline: Instant,
) -> Result<Response, http::Error> {
    let builder = client.request(Method::GET, url.clone()).headers(headers);
    http::within(deadline, url, builder.send()).await
}

/// Sends a request that changes something, with what is to be put. Neither is it redirected.
pub(super) async fn change(
    client: &reqwest::Client,
    method: Method,
    url: &Url,
    mut headers: HeaderMap,
    upload: Option<Upload>,
    deadline: Instant,
) -> Result<(), Problem> {
    let size = upload.as_ref().map_or(0, Upload::size);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(size));
    let mut builder = client.request(method, url.clone()).headers(headers);
    if let Some(upload) = upload {
        builder = builder.body(upload.into_body());
    }
    let response = http::within(deadline, url, builder.send()).await?;
    checked(response, deadline).await.map(drop)
}

/// Turns anything but a success into a problem, in the words of the store.
pub(super) async fn checked(response: Response, deadline: Instant) -> Result<Response, Problem> {
    let (status, url) = (response.status(), response.url().clone());
    if status.is_success() {
        return Ok(response);
    }
    let retry_after = http::RetryAfter::new(status, response.headers(), Timestamp::now());
    let body = http::read(response, MAX_REFUSAL_BYTES, deadline)
        .await
        .unwrap_or_default();
    Err(match reason(&body) {
        Some((code, message)) => Problem::Refused {
            status,
            code: shown(&code),
            message: shown(&message),
            retry_after,
        },
        None => Problem::Http(http::Error::Status {
            url: http::public(&url),
            status,
            detail: Box::default(),
            retry_after,
        }),
    })
}

/// `Code` and `Message` of S3 and Azure, the same of Google.
pub(super) fn reason(body: &[u8]) -> Option<(String, String)> {
    if let Some(document) = xml::read(body, "Error", &["Code", "Message"]) {
        let fields = document.records.into_iter().next().unwrap_or(document.fields);
        let code = fields.get("Code")?;
        return Some((code.clone(), fields.get("Message").unwrap_or(code).clone()));
    }
    let value: serde_json::Value = serde_json::from_slice(body).ok()?;
    let message = value.pointer("/error/message")?.as_str()?;
    let reason = value
        .pointer("/error/errors/0/reason")
        .and_then(|reason| reason.as_str());
    Some((reason.unwrap_or("error").to_owned(), message.to_owned()))
}

pub(super) fn shown(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars()
        .filter(|c| !c.is_control())
        .take(MAX_QUOTED)
        .collect()
}

/// The etag of a response; empty if it has none.
pub(super) fn etag(headers: &HeaderMap) -> String {
    let etag = headers.get(reqwest::header::ETAG);
    etag.map(|etag| String::from_utf8_lossy(etag.as_bytes()).into_owned())
        .unwrap_or_default()
}
