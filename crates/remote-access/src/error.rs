//! Errors of reading the objects that a spec refers to.

use std::fmt::Debug;

/// A reference that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Another object.
    #[error("{problem}")]
    Object {
        /// Where.
        namespace: String,
        /// Which; empty for all of them.
        name: String,
        /// Error of the API server, which names the object.
        problem: String,
    },
    /// A Secret.
    #[error("failed to get secret '{namespace}/{name}': {problem}")]
    Secret {
        /// Where.
        namespace: String,
        /// Which.
        name: String,
        /// Error of the API server.
        problem: String,
    },
    /// A ServiceAccount.
    #[error("failed to get service account '{namespace}/{name}': {problem}")]
    ServiceAccount {
        /// Where.
        namespace: String,
        /// Which.
        name: String,
        /// Error of the API server.
        problem: String,
    },
}

/// A proxy Secret that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is no address in it.
    #[error("secret '{namespace}/{name}': key 'address' not found")]
    MissingAddress {
        /// Where.
        namespace: String,
        /// Which.
        name: String,
    },
}

/// An identity at a provider that an object may not have.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The controller's own identity, on a way that the object's owner chose: they could take the credentials there.
    #[error(
        "the controller's own identity at a cloud is not used together with {field} while references between namespaces \
         are locked (--no-cross-namespace-refs): leave {field} out, or use a ServiceAccount or a Secret"
    )]
    OwnIdentity {
        /// The field that leads elsewhere.
        field: &'static str,
    },
    /// A ServiceAccount may not be used at a provider.
    #[error(
        "to use spec.serviceAccountName for provider authentication please enable the ObjectLevelWorkloadIdentity \
         feature gate in the controller"
    )]
    FeatureGateDisabled,
}
