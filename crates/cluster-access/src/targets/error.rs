//! Errors of reaching a target.

/// Why there is no target.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The Secret with the kubeconfig cannot be read.
    #[error("failed to read the KubeConfig secret '{namespace}/{name}': {problem}")]
    ReadSecret {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Why.
        problem: String,
        /// It does not exist.
        missing: bool,
    },
    /// It lacks the key.
    #[error("KubeConfig secret '{namespace}/{name}' does not contain a '{key}' key with a kubeconfig")]
    MissingKey {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The key.
        key: String,
    },
    /// The kubeconfig cannot be used.
    #[error("failed to use the KubeConfig secret '{namespace}/{name}': {problem}")]
    UseKubeconfig {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Why; nothing of its content.
        problem: String,
    },
    /// The ConfigMap that describes a cluster cannot be read.
    #[error("failed to get configmap {namespace}/{name}: {problem}")]
    ReadConfigMap {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Why.
        problem: String,
        /// It does not exist.
        missing: bool,
    },
    /// It describes no cluster that can be used.
    #[error("failed to use the KubeConfig configmap '{namespace}/{name}': {problem}")]
    UseConfigMap {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Why.
        problem: String,
    },
    /// The remote cluster does not answer.
    #[error("failed to reach the remote cluster {server}: {problem}")]
    Reach {
        /// Its address.
        server: String,
        /// Why.
        problem: String,
    },
    /// The name of the account is none.
    #[error("failed to impersonate '{0}': it is not the name of a service account")]
    Impersonate(String),
}

impl Error {
    /// Returns whether what describes the cluster does not exist, so that no one can say where the objects are.
    pub fn is_missing(&self) -> bool {
        matches!(
            self,
            Self::ReadSecret { missing: true, .. } | Self::ReadConfigMap { missing: true, .. }
        )
    }
}
