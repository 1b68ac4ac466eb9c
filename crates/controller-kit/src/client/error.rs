//! Errors of connecting.

/// Error of building a client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is neither a usable kubeconfig nor a service account.
    #[error("failed to find out how to reach the Kubernetes API")]
    Configure(#[source] Box<kube::config::InferConfigError>),
    /// The configuration cannot be used.
    #[error("failed to set up the client of the Kubernetes API")]
    Build(#[source] Box<kube::Error>),
    /// The configured name of the server is not one.
    #[error("failed to use {name:?} as the name of the Kubernetes API server")]
    ServerName {
        /// Server name in the kubeconfig.
        name: String,
        /// Why it is not a name.
        #[source]
        source: rustls::pki_types::InvalidDnsNameError,
    },
}
