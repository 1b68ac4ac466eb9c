//! How the hub learns where the API server serves a kind.
//!
//! A trait, so that the process's one discovery cache (which belongs to the apply engine) can be plugged in.

use std::error::Error;

use futures::future::BoxFuture;
use kube::core::ApiResource;
use manifest::GroupVersionKind;

/// Why a kind could not be resolved; shown with its sources while an object waits.
pub type ResolveError = Box<dyn Error + Send + Sync>;

/// Where the API server serves a kind.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Group, version and the plural that makes the path.
    pub resource: ApiResource,
    /// True if its objects live in namespaces.
    pub namespaced: bool,
}

/// Finds the resource of a kind. Errors are retried until the wait ends: a CRD may be on its way.
pub trait Resolve: Send + Sync {
    /// Resolves one kind in one version.
    fn resolve<'a>(&'a self, gvk: &'a GroupVersionKind) -> BoxFuture<'a, Result<Resolved, ResolveError>>;
}
