//! A request to a service, rendered but not sent, and what comes back. Pure.

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use serde::Serialize;
use serde_json::Value;
use url::Url;

use crate::error::Error;
use crate::notification::Sent;

/// More of an answer is not read, unless a request says so.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Says whether an answer of success is one, and what it tells.
pub(crate) type Accept = fn(&Answer) -> Result<Sent, Error>;

/// One request to a service.
#[derive(Clone)]
pub(crate) struct Request {
    /// The method.
    pub(crate) method: Method,
    /// Where to; may hold secrets.
    pub(crate) url: Url,
    /// Its headers, which may hold secrets.
    pub(crate) headers: HeaderMap,
    /// Its body, which may hold secrets.
    pub(crate) body: Bytes,
    /// How many bytes of the answer are read.
    pub(crate) longest: usize,
    /// Accepted content of a successful answer; None for any.
    pub(crate) accept: Option<Accept>,
    /// Whether an answer of no success says that the thread is gone.
    pub(crate) thread_is_gone: fn(&Answer) -> bool,
}

/// Answer of a service.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: StatusCode,
    /// The headers.
    pub(crate) headers: HeaderMap,
    /// The begin of the body.
    pub(crate) body: Bytes,
    /// True if the body goes on.
    pub(crate) is_cut: bool,
}

impl Request {
    /// A request with a body of this type. Any answer of success will do.
    pub(crate) fn new(method: Method, url: Url, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(content_type))]),
            body: body.into(),
            longest: MAX_ANSWER_BYTES,
            accept: None,
            thread_is_gone: |_| false,
        }
    }

    /// A POST of JSON, written as Go writes it.
    pub(crate) fn json<T: Serialize + ?Sized>(url: Url, payload: &T) -> Self {
        Self::new(
            Method::POST,
            url,
            "application/json",
            go_text::json::to_vec(payload),
        )
    }

    /// With another method.
    pub(crate) fn with_method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// With a header whose name is known to be one; the value is secret.
    pub(crate) fn header(mut self, name: HeaderName, value: &str) -> Result<Self, Error> {
        let problem = |_| {
            Error::invalid(format!(
                "the value of header '{name}' holds characters that headers cannot"
            ))
        };
        let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(problem)?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// With a header whose name comes from elsewhere.
    pub(crate) fn named_header(self, name: &str, value: &str) -> Result<Self, Error> {
        // not quoted: who mixes up name and value has written a secret there
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| Error::invalid("the headers of the Secret have a name that is none"))?;
        self.header(name, value)
    }

    /// With `Authorization: SCHEME TOKEN`, unless there is no token.
    pub(crate) fn authorization(self, scheme: &str, token: &str) -> Result<Self, Error> {
        if token.is_empty() {
            return Ok(self);
        }
        self.header(AUTHORIZATION, &format!("{scheme} {token}"))
    }

    /// With basic authentication.
    pub(crate) fn basic(self, username: &str, password: &str) -> Result<Self, Error> {
        use base64::Engine;
        let both = format!("{username}:{password}");
        self.authorization("Basic", &base64::engine::general_purpose::STANDARD.encode(both))
    }

    /// With another way to read an answer of success.
    pub(crate) fn accepting(mut self, accept: Accept) -> Self {
        self.accept = Some(accept);
        self
    }

    /// With a way to tell that the thread is gone from an answer of no success.
    pub(crate) fn thread_is_gone_if(mut self, is_gone: fn(&Answer) -> bool) -> Self {
        self.thread_is_gone = is_gone;
        self
    }
}

impl Answer {
    /// The body as JSON; null if it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}
