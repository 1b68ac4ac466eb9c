//! Getting the objects that changed: several at once, each streamed to a file, all of them bounded.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use artifact::archive::Limits;
use futures::{StreamExt as _, TryStreamExt as _};
use reqwest::Response;
use tokio::io::AsyncWriteExt as _;
use tokio::time::Instant;
use transport::http;

use super::remote::Remote;
use crate::answer::{Opened, Problem};
use crate::error::Error;

/// Flux has a hundred; with files on one disk and one network more than this gain little, and buffers are memory.
const AT_ONCE: usize = 32;

/// An object that is on the disk now.
pub(super) struct Downloaded {
    pub(super) key: String,
    /// That of what was received, which may be newer than the listing.
    pub(super) etag: String,
    pub(super) file: PathBuf,
}

/// Gets the objects into files of the folder. Those that are gone meanwhile are left out.
pub(super) async fn download(
    remote: &Remote,
    bucket: &str,
    keys: Vec<String>,
    folder: &Path,
    deadline: Instant,
) -> Result<Vec<Downloaded>, Error> {
    let budget = AtomicU64::new(Limits::default().max_total_bytes);
    let budget = &budget;
    let one = |(number, key): (usize, String)| async move {
        let file = folder.join(number.to_string());
        match fetch(remote, &key, &file, budget, deadline).await {
            Ok(etag) => Ok(Some(Downloaded { key, etag, file })),
            Err(Failure::Remote(problem)) if problem.is_absent() => {
                tracing::info!("indexed object '{key}' disappeared from '{bucket}' bucket");
                Ok(None)
            }
            Err(failure) => Err(failure.about(bucket, key)),
        }
    };
    let downloaded: Vec<Option<Downloaded>> = futures::stream::iter(keys.into_iter().enumerate())
        .map(one)
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    Ok(downloaded.into_iter().flatten().collect())
}

/// Gets a small object into memory; None when it is not there.
pub(super) async fn small(
    remote: &Remote,
    key: &str,
    limit: u64,
    deadline: Instant,
) -> Result<Option<(Vec<u8>, String)>, Problem> {
    match remote.open(key, deadline).await {
        Ok(Opened { response, etag }) => {
            let body = http::read(response, limit, deadline).await?;
            Ok(Some((body.to_vec(), etag)))
        }
        Err(problem) if problem.is_absent() => Ok(None),
        Err(problem) => Err(problem),
    }
}

enum Failure {
    Remote(Problem),
    Disk(std::io::Error),
    TooLarge(&'static str, u64),
}

impl Failure {
    fn about(self, bucket: &str, key: String) -> Error {
        let bucket = bucket.to_owned();
        match self {
            Self::Remote(source) => Error::Get { bucket, key, source },
            Self::Disk(source) => Error::Disk(source),
            Self::TooLarge(what, limit) => Error::TooLarge {
                bucket,
                key,
                what,
                limit,
            },
        }
    }
}

async fn fetch(
    remote: &Remote,
    key: &str,
    file: &Path,
    budget: &AtomicU64,
    deadline: Instant,
) -> Result<String, Failure> {
    let Opened { response, etag } = remote.open(key, deadline).await.map_err(Failure::Remote)?;
    write(response, file, budget, deadline).await?;
    Ok(etag)
}

async fn write(
    mut response: Response,
    file: &Path,
    budget: &AtomicU64,
    deadline: Instant,
) -> Result<(), Failure> {
    let limits = Limits::default();
    let mut written = 0_u64;
    let file = tokio::fs::File::create_new(file).await.map_err(Failure::Disk)?;
    let mut file = tokio::io::BufWriter::new(file);
    let next = |error: http::Error| Failure::Remote(error.into());
    while let Some(chunk) = http::next_chunk(&mut response, deadline).await.map_err(next)? {
        let length = chunk.len() as u64;
        written += length;
        if written > limits.max_file_bytes {
            return Err(Failure::TooLarge("it", limits.max_file_bytes));
        }
        let take = |left: u64| left.checked_sub(length);
        if budget
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_err()
        {
            return Err(Failure::TooLarge("the bucket", limits.max_total_bytes));
        }
        file.write_all(&chunk).await.map_err(Failure::Disk)?;
    }
    file.flush().await.map_err(Failure::Disk)
}
