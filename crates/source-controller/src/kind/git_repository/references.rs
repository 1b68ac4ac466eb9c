//! Objects that a GitRepository refers to.

use cloud_identity::Identity;
use transport::auth::SecretData;
use transport::http;

use super::include::Inclusion;
use super::verify::Keys;

/// Objects that a GitRepository refers to.
#[derive(Clone, Default)]
pub(crate) struct References {
    pub(super) secret: SecretData,
    pub(super) proxy: Option<http::Proxy>,
    /// Public keys, or why there are none. That matters only when there is something to verify.
    pub(super) keys: Option<Result<Keys, String>>,
    pub(super) inclusions: Vec<Inclusion>,
    pub(super) identity: Identity,
}
