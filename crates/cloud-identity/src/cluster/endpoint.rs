//! Endpoint of a cluster.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::exchange::Error;

/// Where an API server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its address.
    pub address: String,
    /// PEM of its certificate authority.
    pub authority: Vec<u8>,
}

/// Reads server and authority out of a kubeconfig, which is what Azure answers with; None if it has none.
pub type ReadKubeconfig = fn(&[u8]) -> Option<Endpoint>;

pub(super) fn no_token(error: Error) -> Error {
    Error::ClusterToken(error.into())
}

pub(super) fn authority(encoded: &str, kind: &str) -> Result<Vec<u8>, Error> {
    STANDARD
        .decode(encoded)
        .map_err(|_| Error::Configuration(format!("failed to decode {kind} CA certificate")))
}
