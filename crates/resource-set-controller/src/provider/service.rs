//! Inputs of a web service: the answer to one GET.
//!
//! The address is a tenant's: redirects are not followed, and what was answered is in no message.

use std::time::Duration;

use api::flux_operator::{AnyMap, ResourceSetInputProvider};
use bytes::BytesMut;
use resource_set::found::{MAX_BYTES, of_service};
use tokio::time::Instant;
use transport::{auth, http};
use url::Url;

use super::{Error as ProviderError, secrets};
use crate::context::Context;

/// Why the service has no inputs for us.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The address.
    #[error("spec.url is no address: {0}")]
    Url(#[from] url::ParseError),
    /// Credentials.
    #[error("failed to read the credentials of spec.secretRef")]
    Credentials(#[from] auth::Error),
    /// The request.
    #[error("failed to ask the service")]
    Http(#[from] http::Error),
    /// The status of its answer.
    #[error("{url} answered {status}")]
    Status {
        /// The address, without secrets.
        url: String,
        /// The status.
        status: ::http::StatusCode,
    },
    /// The length of its answer.
    #[error("the answer has more than {MAX_BYTES} bytes")]
    TooLarge,
}

/// Asks the service.
pub(super) async fn read(
    object: &ResourceSetInputProvider,
    timeout: Duration,
    context: &Context,
) -> Result<Vec<AnyMap>, ProviderError> {
    let (secret, settings) = secrets(object, context).await?;
    let answer = ask(object, &secret.unwrap_or_default(), settings, timeout, context).await?;
    let limit = object.spec.filter.clone().unwrap_or_default();
    Ok(of_service(&answer, &limit)?)
}

async fn ask(
    object: &ResourceSetInputProvider,
    secret: &auth::SecretData,
    settings: http::Settings,
    timeout: Duration,
    context: &Context,
) -> Result<BytesMut, Error> {
    let deadline = Instant::now() + timeout;
    let mut url = Url::parse(&object.spec.url)?;
    let access = auth::access(&mut url, secret)?;
    let client = context
        .clients
        .get(&settings.towards(url.host_str().unwrap_or_default()))?;
    let mut request = client.get(url.clone());
    if let Some(authorization) = access.authorization {
        request = request.header(::http::header::AUTHORIZATION, authorization);
    }
    let mut response = http::within(deadline, &url, request.send()).await?;
    if response.status() != ::http::StatusCode::OK {
        return Err(Error::Status {
            url: http::public(&url),
            status: response.status(),
        });
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = http::next_chunk(&mut response, deadline).await? {
        if body.len() + chunk.len() > MAX_BYTES {
            return Err(Error::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
