//! A Git repository as a GitRepository describes it: the Secrets, proxy and provider by which it is reached.

mod provider;
mod remote;

use api::source::GitRepository;
use cloud_identity::Identity;
use git_client::Algorithms;
use tokio::time::Instant;
use transport::auth::SecretData;
use transport::http;
use url::Url;

use crate::error::{IdentityError, ProxyError, ReadError};
use crate::identity::Identities;
use crate::reader::Reader;

pub use provider::refusal;
pub use remote::{Remotes, is_same_server};

/// Why a repository cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `spec.url`.
    #[error("failed to parse url '{url}'")]
    ParseUrl {
        /// As in the spec, without credentials.
        url: String,
        /// The error.
        #[source]
        source: url::ParseError,
    },
    /// `spec.proxySecretRef`.
    #[error("failed to configure proxy options")]
    ConfigureProxy(#[source] ProxyError),
    /// `spec.secretRef`, or a ServiceAccount.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The identity at the provider.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The data of `spec.secretRef`.
    #[error("failed to configure authentication options")]
    ConfigureAuthentication(#[source] transport::auth::Error),
    /// The private key of `spec.secretRef` needs a passphrase.
    #[error(
        "SSH identity key is encrypted but no 'password' field was provided in the secret '{namespace}/{name}'"
    )]
    MissingPassphrase {
        /// Namespace of the secret.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Credentials of a provider.
    #[error("failed to configure authentication options")]
    ConfigureProvider(#[source] cloud_identity::Error),
    /// A provider without what it takes.
    #[error("{problem}")]
    ProviderConfiguration {
        /// The problem.
        problem: String,
        /// True if only a change of the spec helps; a Secret may change by itself.
        is_final: bool,
    },
    /// No client can be made of the TLS material.
    #[error("failed to generate transport for '{url}'")]
    Build {
        /// Without credentials.
        url: String,
        /// The error.
        #[source]
        source: http::Error,
    },
    /// A repository over ssh in one over http.
    #[error("there is no ssh key for a repository over http")]
    NoKey,
}

/// What a GitRepository refers to, to be reached.
#[derive(Clone, Default)]
pub struct References {
    /// The data of `spec.secretRef`.
    pub secret: SecretData,
    /// `spec.proxySecretRef`.
    pub proxy: Option<http::Proxy>,
    /// Who the object is at its provider.
    pub identity: Identity,
}

/// What all repositories share on their way.
#[derive(Clone, Copy)]
pub struct Ways<'a> {
    /// HTTP clients.
    pub clients: &'a http::Clients,
    /// Identities at providers.
    pub identities: &'a Identities,
    /// Algorithms offered to ssh servers.
    pub ssh_algorithms: &'a Algorithms,
    /// When credentials must have been got.
    pub deadline: Instant,
}

/// Reads what the repository refers to.
///
/// # Errors
/// When a Secret or a ServiceAccount cannot be read, or may not be used.
pub async fn read(object: &GitRepository, reader: &Reader) -> Result<References, Error> {
    let proxy = match &object.spec.proxy_secret_ref {
        Some(reference) => Some(
            reader
                .proxy(&reference.name)
                .await
                .map_err(Error::ConfigureProxy)?,
        ),
        None => None,
    };
    let secret = match &object.spec.secret_ref {
        Some(reference) => reader.secret(&reference.name).await?,
        None => SecretData::new(),
    };
    let identity = provider::identity(object, reader).await?;
    Ok(References {
        secret,
        proxy,
        identity,
    })
}

/// The repository with its credentials, those of its provider included.
///
/// # Errors
/// When there are no credentials, or none that can be used.
pub async fn remotes(
    object: &GitRepository,
    references: &References,
    ways: Ways<'_>,
) -> Result<Remotes, Error> {
    let url = parsed_url(object)?;
    let references = provider::with_credentials(object, &url, references, ways).await?;
    Remotes::new(object, url, &references, ways)
}

/// The repository's address.
///
/// # Errors
/// When it is no URL.
pub fn parsed_url(object: &GitRepository) -> Result<Url, Error> {
    Url::parse(&object.spec.url).map_err(|source| Error::ParseUrl {
        url: without_userinfo(&object.spec.url),
        source,
    })
}

/// A text that is no URL may hold a password all the same.
fn without_userinfo(text: &str) -> String {
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        _ => text.to_owned(),
    }
}
