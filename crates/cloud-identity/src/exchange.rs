//! Asking a token service: the HTTP client as this crate sees it, and what can go wrong.
//!
//! The client is given, so that time-outs, proxies, certificates and limits are those of its owner.

use std::pin::Pin;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{HeaderName, Method, StatusCode};
use serde::de::DeserializeOwned;
use url::Url;

/// A future that may be sent to another thread.
pub type Future<'a, T> = Pin<Box<dyn std::future::Future<Output = T> + Send + 'a>>;

/// Bytes of a server's refusal that are quoted.
const MAX_QUOTED: usize = 300;

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Somewhere: through the proxy if there is one.
    Remote,
    /// On this machine or beside it (metadata servers): never through a proxy, and soon or not at all.
    Local,
}

/// A request to a token service.
#[derive(Clone)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// Where to.
    pub url: Url,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, which may hold secrets.
    pub body: Vec<u8>,
    /// How to get there.
    pub reach: Reach,
}

/// Answer of the service.
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, of bounded size.
    pub body: Bytes,
}

/// The service could not be asked. Holds no secrets.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct SendError(pub String);

/// An HTTP client. It follows no redirects, waits no longer than its owner wants, and reads bounded bodies.
pub trait Http: Send + Sync {
    /// Sends a request and reads the whole answer, whatever its status.
    fn send(&self, request: Request) -> Future<'_, Result<Answer, SendError>>;
}

/// Why there is no token. Holds no secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// For the controller.
    #[error("failed to create provider access token for the controller")]
    ControllerToken(#[source] Box<Error>),
    /// For a ServiceAccount, at the provider.
    #[error("failed to create provider access token for service account '{account}'")]
    AccountToken {
        /// Namespace and name.
        account: String,
        /// Why.
        #[source]
        source: Box<Error>,
    },
    /// For a ServiceAccount, at the API server.
    #[error("failed to create kubernetes token for service account '{account}': {problem}")]
    IssueToken {
        /// Namespace and name.
        account: String,
        /// Error of the API server.
        problem: String,
    },
    /// Which audience the token of a ServiceAccount is for.
    #[error("failed to get provider audience")]
    Audience(#[source] Box<Error>),
    /// Credentials of a registry, made from an access token.
    #[error("failed to create artifact registry credentials")]
    RegistryCredentials(#[source] Box<Error>),
    /// The access token for them.
    #[error("failed to get access token for artifact registry")]
    RegistryToken(#[source] Box<Error>),
    /// The access token for a Git server.
    #[error("failed to get access token for Git repository")]
    GitToken(#[source] Box<Error>),
    /// The access token for a cluster.
    #[error("failed to get access token for cluster")]
    ClusterToken(#[source] Box<Error>),
    /// Where a cluster is.
    #[error("failed to describe {kind} cluster '{cluster}'")]
    DescribeCluster {
        /// EKS, AKS or GKE.
        kind: &'static str,
        /// Its name at the provider.
        cluster: String,
        /// Why.
        #[source]
        source: Box<Error>,
    },
    /// A service could not be reached.
    #[error("failed to reach {url}: {source}")]
    Reach {
        /// Scheme, host and path.
        url: String,
        /// Why.
        source: SendError,
    },
    /// A service refused.
    #[error("{url} answered {status}{detail}")]
    Refused {
        /// Scheme, host and path.
        url: String,
        /// The status.
        status: StatusCode,
        /// Message of the answer, with a leading colon; may be empty.
        detail: String,
    },
    /// A service answered with something else than the protocol has.
    #[error("failed to read the answer of {url}: {problem}")]
    Answer {
        /// Scheme, host and path.
        url: String,
        /// The problem; quotes nothing.
        problem: String,
    },
    /// A file that the environment names.
    #[error("failed to read {path}: {problem}")]
    ReadFile {
        /// The file.
        path: String,
        /// Why.
        problem: String,
    },
    /// The configuration does not do: what and why, in words for people.
    #[error("{0}")]
    Configuration(String),
}

impl Error {
    pub(crate) fn configuration(text: impl Into<String>) -> Self {
        Self::Configuration(text.into())
    }

    fn answer(url: &Url, problem: impl Into<String>) -> Self {
        Self::Answer {
            url: public(url),
            problem: problem.into(),
        }
    }
}

impl Request {
    /// A request without headers and body.
    pub(crate) fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: Vec::new(),
            reach: Reach::Remote,
        }
    }

    /// A POST of form fields.
    pub(crate) fn form(url: Url, fields: &[(&str, &str)]) -> Self {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        Self {
            body: body.into_bytes(),
            ..Self::new(Method::POST, url)
        }
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
    }

    /// A request to a metadata server.
    pub(crate) fn local(method: Method, url: Url) -> Self {
        Self {
            reach: Reach::Local,
            ..Self::new(method, url)
        }
    }

    /// Adds a header whose value is known to be one.
    pub(crate) fn header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.insert(name, HeaderValue::from_static(value));
        self
    }

    /// Adds a header whose value comes from elsewhere.
    pub(crate) fn secret_header(mut self, name: HeaderName, value: &str) -> Result<Self, Error> {
        let problem = |_| Error::configuration(format!("the value of header '{name}' cannot be sent"));
        let mut value = HeaderValue::from_str(value).map_err(problem)?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }
}

/// Sends a request whose answer must be a success.
pub(crate) async fn ask(http: &dyn Http, request: Request) -> Result<Answer, Error> {
    let url = request.url.clone();
    let answer = http.send(request).await.map_err(|source| Error::Reach {
        url: public(&url),
        source,
    })?;
    if answer.status.is_success() {
        return Ok(answer);
    }
    Err(Error::Refused {
        url: public(&url),
        status: answer.status,
        detail: refusal(&answer.body),
    })
}

/// [`ask`], and the answer is JSON.
pub(crate) async fn ask_json<T: DeserializeOwned>(http: &dyn Http, request: Request) -> Result<T, Error> {
    let url = request.url.clone();
    let answer = ask(http, request).await?;
    // serde_json quotes values in its messages; which field is wrong is not worth a secret.
    serde_json::from_slice(&answer.body)
        .map_err(|_| Error::answer(&url, "it is not the JSON that was expected"))
}

/// [`ask`], and the answer is XML that has all these elements.
pub(crate) async fn ask_xml<const N: usize>(
    http: &dyn Http,
    request: Request,
    elements: [&str; N],
) -> Result<[String; N], Error> {
    let url = request.url.clone();
    let answer = ask(http, request).await?;
    crate::xml::texts(&answer.body, elements)
        .ok_or_else(|| Error::answer(&url, "it is not the XML that was expected"))
}

/// Parses a URL that is not secret.
pub(crate) fn parse_url(text: &str) -> Result<Url, Error> {
    Url::parse(text).map_err(|error| Error::configuration(format!("invalid URL '{text}': {error}")))
}

fn public(url: &Url) -> String {
    format!("'{}{}'", url.origin().ascii_serialization(), url.path())
}

/// The reason in the answer of an OAuth server, of Amazon (JSON, XML), Google or GitHub.
fn refusal(body: &[u8]) -> String {
    let reason = refusal_in_json(body).or_else(|| {
        let [code, message] = crate::xml::texts(body, ["Code", "Message"])?;
        Some(format!("{code}: {message}"))
    });
    match reason {
        Some(reason) => {
            let line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
            let line: String = line
                .chars()
                .filter(|c| !c.is_control())
                .take(MAX_QUOTED)
                .collect();
            format!(": {line}")
        }
        None => String::new(),
    }
}

fn refusal_in_json(body: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(body).ok()?;
    let texts = [
        "/error_description",
        "/error/message",
        "/message",
        "/Message",
        "/errors/0/message",
        "/error",
    ];
    texts
        .iter()
        .find_map(|pointer| value.pointer(pointer)?.as_str())
        .map(str::to_owned)
}
