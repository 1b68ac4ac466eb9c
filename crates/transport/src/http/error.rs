//! Errors of a request, each with what to do about it.

use reqwest::StatusCode;
use url::Url;

use super::{RetryAfter, public};
use crate::cause::Cause;

/// Class of a failure: what a person must do, and what the controller does meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Credentials are missing or refused.
    Unauthorized,
    /// The requested object does not exist.
    NotFound,
    /// The remote did not answer in time.
    Timeout,
    /// The remote cannot be reached, or broke off.
    Unreachable,
    /// The remote answered with something that is refused: too large, a bad redirect, nonsense.
    Refused,
}

/// A request that failed. No variant carries credentials: URLs lose user, password and query first.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The TLS or proxy settings cannot be used.
    #[error("failed to configure TLS and proxy: {0}")]
    Configure(String),
    /// The connection failed, or broke.
    #[error("failed to reach '{url}': {cause}")]
    Reach {
        /// Where to.
        url: String,
        /// Why not.
        cause: Cause,
    },
    /// The deadline passed.
    #[error("{} '{url}' in time", phase.words())]
    Wait {
        /// Where from.
        url: String,
        /// The phase that timed out.
        phase: Phase,
        /// At the end of the chain, whatever wraps this.
        #[source]
        over: TimedOut,
    },
    /// The server refused.
    #[error("'{url}' answered {status}{detail}{}", advice(*status))]
    Status {
        /// Where from.
        url: String,
        /// The HTTP status.
        status: StatusCode,
        /// The server's words, with a leading colon; may be empty.
        detail: Box<str>,
        /// When the server wants to be asked again, if it said so.
        #[source]
        retry_after: Option<RetryAfter>,
    },
    /// The answer is larger than what is read of it.
    #[error("failed to read the answer of '{url}': larger than {limit} bytes")]
    ReadAll {
        /// Where from.
        url: String,
        /// The limit.
        limit: u64,
    },
    /// A redirect leads to where it must not.
    #[error("failed to follow the redirect of '{url}': {problem}")]
    Redirect {
        /// Where from.
        url: String,
        /// Why it is not followed.
        problem: &'static str,
    },
    /// The server is none of those that may be asked.
    #[error("'{url}' is not asked: its server is not in the list of those that may be")]
    NotListed {
        /// Where to.
        url: String,
    },
    /// Something for the eyes of people.
    #[error(
        "'{url}' answered with a web page instead of {expected}; is the URL that of a page in a browser, or does the server \
         ask people to sign in there?"
    )]
    WebPage {
        /// Where from.
        url: String,
        /// The expected content.
        expected: &'static str,
    },
}

/// The time of an object is over. It stands at the end of the chain of the error that says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, thiserror::Error)]
#[error("context deadline exceeded")]
pub struct TimedOut;

/// Phase that timed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// A connection.
    Connect,
    /// The first byte of an answer; perhaps the connection as well.
    Answer,
    /// More of an answer that had begun.
    Body,
}

impl Phase {
    fn words(self) -> &'static str {
        match self {
            Self::Connect => "failed to connect to",
            Self::Answer => "failed to get an answer from",
            Self::Body => "failed to read the whole answer of",
        }
    }
}

impl Error {
    /// Class of the failure.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Wait { .. } => Kind::Timeout,
            Self::Reach { .. } => Kind::Unreachable,
            Self::Status { status, .. } => match *status {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Kind::Unauthorized,
                StatusCode::NOT_FOUND | StatusCode::GONE => Kind::NotFound,
                StatusCode::TOO_MANY_REQUESTS => Kind::Unreachable,
                status if status.is_server_error() => Kind::Unreachable,
                _ => Kind::Refused,
            },
            Self::ReadAll { .. }
            | Self::Redirect { .. }
            | Self::NotListed { .. }
            | Self::Configure(_)
            | Self::WebPage { .. } => Kind::Refused,
        }
    }

    /// A connection that failed, or an answer that broke off.
    pub fn reach(url: &Url, error: reqwest::Error, phase: Phase) -> Self {
        if error.is_timeout() {
            let phase = if error.is_connect() { Phase::Connect } else { phase };
            return Self::wait(url, phase);
        }
        Self::Reach {
            url: public(url),
            cause: Cause::from_error(&error.without_url()),
        }
    }

    /// The time is over.
    pub fn wait(url: &Url, phase: Phase) -> Self {
        Self::Wait {
            url: public(url),
            phase,
            over: TimedOut,
        }
    }
}

/// Advice about a status, after a semicolon.
fn advice(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "; the credentials are missing or wrong, see spec.secretRef",
        403 => "; the credentials do not allow it",
        404 | 410 => "; check the address, and whether the credentials may see it",
        407 => "; the proxy wants other credentials, see spec.proxySecretRef",
        429 => "; it had too many requests, so a longer spec.interval may help",
        500..=599 => "; the server is in trouble, it is asked again later",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_classified() {
        let cases = [
            (401, Kind::Unauthorized),
            (403, Kind::Unauthorized),
            (404, Kind::NotFound),
            (429, Kind::Unreachable),
            (503, Kind::Unreachable),
            (418, Kind::Refused),
        ];
        for (status, kind) in cases {
            let status = StatusCode::from_u16(status).unwrap();
            let error = Error::Status {
                url: String::new(),
                status,
                detail: Box::default(),
                retry_after: None,
            };
            assert_eq!(error.kind(), kind, "{status}");
        }
    }
}
