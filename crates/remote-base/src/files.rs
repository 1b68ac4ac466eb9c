//! Files behind URLs.

use kustomize_build::{FetchError, without_credentials};
use reqwest::header::HeaderMap;
use reqwest::{Method, Response};
use tokio::time::Instant;
use transport::auth::{self, Access, SecretData};
use transport::http;
use url::Url;

use crate::{Bases, failed};

/// No manifest is larger.
pub(crate) const MAX: u64 = 32 << 20;

/// Gets a file whole.
pub(crate) async fn get(
    bases: &Bases,
    url: &str,
    limit: u64,
    deadline: Instant,
) -> Result<Vec<u8>, FetchError> {
    let url = Url::parse(url)
        .map_err(|error| FetchError::Failed(format!("'{}': {error}", without_credentials(url))))?;
    let response = answer(bases, url, deadline).await?;
    let body = http::read(response, limit, deadline).await;
    body.map(Vec::from).map_err(|error| failed(&error))
}

/// Asks, and returns the answer unless it says that there is none.
pub(crate) async fn answer(bases: &Bases, mut url: Url, deadline: Instant) -> Result<Response, FetchError> {
    let access = access(&mut url)?;
    let request = http::Request {
        method: Method::GET,
        url: url.clone(),
        headers: HeaderMap::new(),
        authorization: access.authorization.as_ref(),
    };
    let sent = http::send(&bases.client(&access.settings, &url)?, request, deadline).await;
    let response = sent.map_err(|error| match error {
        http::Error::NotListed { .. } => unlisted(&error),
        error => failed(&error),
    })?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    Err(FetchError::Status {
        code: status.as_u16(),
        reason: status.canonical_reason().unwrap_or_default().to_owned(),
    })
}

/// A server that a controller may not ask.
pub(crate) fn unlisted(error: &http::Error) -> FetchError {
    FetchError::Refused(format!(
        "remote resources are not supported: {error} (--remote-hosts)"
    ))
}

/// Takes user and password out of a URL.
pub(crate) fn access(url: &mut Url) -> Result<Access, FetchError> {
    auth::access(url, &SecretData::default()).map_err(|error| failed(&error))
}
