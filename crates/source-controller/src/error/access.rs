//! Errors of credentials and connections, whatever the kind.

use api::meta::condition_types::FETCH_FAILED;
use api::meta::reasons;
use api::source::OCIProvider;
use remote_access::error::IdentityError;
use transport::http;

use super::disposition::Disposition;
use crate::provider_name::provider_name;

/// Error of credentials and connections, whatever the kind.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccessError {
    /// Pull secrets, or the service account that names them.
    #[error("failed to get credential")]
    GetCredential(#[source] CredentialError),
    /// Credentials of a provider for its registry.
    #[error("failed to get credential from {}", provider_name(*provider))]
    ProviderCredential {
        /// Which.
        provider: OCIProvider,
        /// Why not.
        #[source]
        source: cloud_identity::Error,
    },
    /// The identity at a provider.
    #[error(transparent)]
    Identity(#[from] remote_access::error::IdentityError),
    /// `spec.proxySecretRef`.
    #[error("failed to configure proxy options")]
    ConfigureProxy(#[source] remote_access::error::ProxyError),
    /// TLS material of an object.
    #[error("failed to generate transport for '{url}'")]
    GenerateTransport {
        /// As in the spec, without credentials.
        url: String,
        /// The error.
        #[source]
        source: TransportError,
    },
}

impl AccessError {
    /// The condition that reports it besides Ready, and the reason of both.
    pub(super) fn condition(&self) -> (&'static str, &'static str) {
        let reason = match self {
            Self::Identity(IdentityError::FeatureGateDisabled) => reasons::FEATURE_GATE_DISABLED,
            _ => reasons::AUTHENTICATION_FAILED,
        };
        (FETCH_FAILED, reason)
    }

    /// When to try again; None as for any other error.
    pub(super) fn disposition(&self) -> Option<Disposition> {
        matches!(self, Self::Identity(IdentityError::FeatureGateDisabled)).then_some(Disposition::Stalled)
    }
}

/// Problem of pull secrets.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CredentialError {
    /// They cannot be read.
    #[error(transparent)]
    Read(#[from] remote_access::error::ReadError),
    /// Their data is wrong.
    #[error(transparent)]
    Data(#[from] oci_client::credentials::Error),
}

/// Problem of TLS material.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransportError {
    /// The Secret cannot be read.
    #[error(transparent)]
    Read(#[from] remote_access::error::ReadError),
    /// Its data is incomplete.
    #[error(transparent)]
    Data(#[from] transport::auth::Error),
    /// No client can be made of it.
    #[error(transparent)]
    Build(#[from] http::Error),
}
