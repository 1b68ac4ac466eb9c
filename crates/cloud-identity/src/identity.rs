//! Identity that asks for a token.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::exchange::Future;

/// Identity that is shown to the provider.
#[derive(Debug, Clone, Default)]
pub enum Identity {
    /// The controller's own: what its pod or node is given.
    #[default]
    Controller,
    /// That of a ServiceAccount in the namespace of the object.
    Account(ServiceAccount),
}

/// A ServiceAccount that is known to the provider.
#[derive(Clone)]
pub struct ServiceAccount {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its annotations, which say who it is at the provider.
    pub annotations: BTreeMap<String, String>,
    /// Issuer of its tokens.
    pub issuer: Arc<dyn Issuer>,
}

/// Makes tokens of one ServiceAccount: TokenRequest at the API server.
pub trait Issuer: Send + Sync {
    /// A token for this audience, or what the API server said instead.
    fn issue(&self, audience: String) -> Future<'_, Result<String, String>>;
}

impl ServiceAccount {
    /// An annotation that is not empty.
    pub(crate) fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Namespace and name.
    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for ServiceAccount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ServiceAccount({})", self.full_name())
    }
}
