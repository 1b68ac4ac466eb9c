//! What a comparison may use besides its reader.

use futures::future::BoxFuture;
use kube::Client;
use serde_json::Value;

/// As whom the API server is asked, and of which cluster.
pub trait Accounts: Send + Sync {
    /// Who asks what would come of the objects of a Kustomization or HelmRelease, which is given as the cluster has it; None is the reader.
    fn client<'a>(&'a self, live: &'a Value) -> BoxFuture<'a, Result<Option<Client>, String>>;
}

/// Has artifacts fetched that the cluster does not have yet.
pub trait Fetcher: Send + Sync {
    /// Fetches the artifact of a source, which is given as it would be. Returns one with a status.
    fn fetch<'a>(&'a self, source: &'a Value) -> BoxFuture<'a, Result<Value, String>>;
}
