//! Release records in a cluster: Secrets of one namespace.

use kube::Client;

/// Where the records of releases are.
#[derive(Clone)]
pub struct Storage {
    client: Client,
    namespace: String,
}

impl Storage {
    /// Takes a namespace, read and written as `client`.
    pub fn new(client: Client, namespace: &str) -> Self {
        let namespace = namespace.to_owned();
        Self { client, namespace }
    }

    /// Returns the namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns as whom it is read and written.
    pub fn client(&self) -> &Client {
        &self.client
    }
}
