//! A request to a forge and its answer, as data; whoever uses this crate sends them.

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::HeaderMap;
use http::{Method, StatusCode};
use url::Url;

use crate::error::Error;

/// A request to a forge.
#[derive(Clone)]
pub struct Request {
    /// Its method.
    pub method: Method,
    /// The requested URL.
    pub url: Url,
    /// Its headers, which hold the credentials.
    pub headers: HeaderMap,
    /// JSON, or nothing.
    pub body: Bytes,
    /// Bytes of the answer that are read.
    pub longest: usize,
}

/// The answer of a forge.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// The beginning of its body.
    pub body: Bytes,
    /// True if the body goes on.
    pub is_cut: bool,
}

/// Sends requests. Redirects are not followed, or only such as keep method, body and host.
pub trait Exchange: Send + Sync {
    /// Sends one, whatever the status of the answer.
    fn exchange(&self, request: Request) -> BoxFuture<'_, Result<Answer, Error>>;
}
