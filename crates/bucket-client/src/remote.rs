//! The common interface of object stores: pages of a listing, objects by name, and error answers.

use tokio::time::Instant;

use super::azure::Azure;
use super::gcs::Gcs;
use super::s3::S3;
use crate::answer::{Opened, Page};

pub use crate::answer::Problem;

/// An object store, with credentials.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each bucket that is read"
)]
pub enum Remote {
    /// Amazon S3, or a store that speaks as it does.
    S3(S3),
    /// Google Cloud Storage.
    Gcs(Gcs),
    /// Azure Blob Storage.
    Azure(Azure),
}

impl Remote {
    /// A part of the listing: the first one, or the one that the last one pointed to.
    pub(super) async fn list(&mut self, token: Option<&str>, deadline: Instant) -> Result<Page, Problem> {
        match self {
            Self::S3(remote) => remote.list(token, deadline).await,
            Self::Gcs(remote) => remote.list(token, deadline).await,
            Self::Azure(remote) => remote.list(token, deadline).await,
        }
    }

    /// Begins to read an object.
    pub(super) async fn open(&self, key: &str, deadline: Instant) -> Result<Opened, Problem> {
        match self {
            Self::S3(remote) => remote.open(key, deadline).await,
            Self::Gcs(remote) => remote.open(key, deadline).await,
            Self::Azure(remote) => remote.open(key, deadline).await,
        }
    }
}
