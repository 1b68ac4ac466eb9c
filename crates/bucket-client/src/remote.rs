//! The common interface of object stores: pages of a listing, objects by name, what is put and deleted, and error answers.

use bytes::Bytes;
use jiff::Timestamp;
use tokio::io::AsyncWriteExt as _;
use tokio::time::Instant;
use transport::http;

use super::azure::Azure;
use super::gcs::Gcs;
use super::s3::S3;
use crate::answer::{Opened, Page};
use crate::upload::Upload;

pub use crate::answer::Problem;

/// Why an object is not in a file.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The store refused, or is not there.
    #[error(transparent)]
    Remote(#[from] Problem),
    /// It has more bytes than it may.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// The disk failed.
    #[error("failed to write it to the disk")]
    Disk(#[from] std::io::Error),
}

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

/// An object of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub key: String,
    /// When it was put, if the store says so.
    pub modified: Option<Timestamp>,
}

impl Remote {
    /// All objects whose names begin so.
    ///
    /// # Errors
    /// When the store refuses or is not there.
    pub async fn names(&self, prefix: &str, deadline: Instant) -> Result<Vec<Listed>, Problem> {
        let mut all = Vec::new();
        let mut token = None;
        loop {
            let Page { objects, next } = self.list_below(prefix, token.as_deref(), deadline).await?;
            let listed = objects.into_iter().map(|object| Listed {
                key: object.key,
                modified: object.modified,
            });
            all.extend(listed);
            if next.is_none() {
                return Ok(all);
            }
            token = next;
        }
    }

    /// Puts an object, or replaces it.
    ///
    /// # Errors
    /// When the store refuses or is not there.
    pub async fn put(&self, key: &str, upload: Upload, deadline: Instant) -> Result<(), Problem> {
        match self {
            Self::S3(remote) => remote.put(key, upload, deadline).await,
            Self::Gcs(remote) => remote.put(key, upload, deadline).await,
            Self::Azure(remote) => remote.put(key, upload, deadline).await,
        }
    }

    /// Deletes an object. One that is not there is no failure.
    ///
    /// # Errors
    /// When the store refuses or is not there.
    pub async fn delete(&self, key: &str, deadline: Instant) -> Result<(), Problem> {
        let deleted = match self {
            Self::S3(remote) => remote.delete(key, deadline).await,
            Self::Gcs(remote) => remote.delete(key, deadline).await,
            Self::Azure(remote) => remote.delete(key, deadline).await,
        };
        match deleted {
            Err(problem) if problem.is_absent() => Ok(()),
            deleted => deleted,
        }
    }

    /// The content of an object, of at most so many bytes; None if it is not there.
    ///
    /// # Errors
    /// When the store refuses or is not there, or the object is larger.
    pub async fn read(&self, key: &str, limit: u64, deadline: Instant) -> Result<Option<Bytes>, Problem> {
        match self.open(key, deadline).await {
            Ok(opened) => Ok(Some(http::read(opened.response, limit, deadline).await?)),
            Err(problem) if problem.is_absent() => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    /// Writes the content of an object, of at most so many bytes, to a file; false if it is not there.
    ///
    /// # Errors
    /// When the store refuses or is not there, the object is larger, or the disk fails.
    pub async fn download(
        &self,
        key: &str,
        limit: u64,
        file: &mut tokio::fs::File,
        deadline: Instant,
    ) -> Result<bool, DownloadError> {
        let mut response = match self.open(key, deadline).await {
            Ok(opened) => opened.response,
            Err(problem) if problem.is_absent() => return Ok(false),
            Err(problem) => return Err(problem.into()),
        };
        let mut written = 0;
        while let Some(chunk) = http::next_chunk(&mut response, deadline)
            .await
            .map_err(Problem::from)?
        {
            written += chunk.len() as u64;
            if written > limit {
                return Err(DownloadError::TooLarge(limit));
            }
            file.write_all(&chunk).await?;
        }
        file.flush().await?;
        Ok(true)
    }

    /// A part of the listing: the first one, or the one that the last one pointed to.
    pub(super) async fn list(&self, token: Option<&str>, deadline: Instant) -> Result<Page, Problem> {
        let prefix = match self {
            Self::S3(remote) => remote.prefix(),
            Self::Gcs(remote) => remote.prefix(),
            Self::Azure(remote) => remote.prefix(),
        };
        self.list_below(prefix, token, deadline).await
    }

    async fn list_below(
        &self,
        prefix: &str,
        token: Option<&str>,
        deadline: Instant,
    ) -> Result<Page, Problem> {
        match self {
            Self::S3(remote) => remote.list(prefix, token, deadline).await,
            Self::Gcs(remote) => remote.list(prefix, token, deadline).await,
            Self::Azure(remote) => remote.list(prefix, token, deadline).await,
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
