//! Buckets of object stores: which objects there are, and the content of those that changed.
//!
//! In: a store with credentials, the bucket, ignore rules, what is known of the stored artifact. Out: the revision, which is
//! the digest of names and etags exactly as Flux computes it, and for each file either the blob that the store has or a
//! file on the disk. One request tells that nothing changed, as long as the bucket has less than a thousand objects.
//!
//! Objects can be put, got and deleted by name as well ([`remote::Remote`]), for those who keep something in a bucket.

mod answer;
pub mod azure;
mod download;
mod error;
pub mod gcs;
pub mod index;
mod key;
pub mod remote;
pub mod s3;
mod upload;
mod xml;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use artifact::archive::Limits;
use artifact::digest::Digest;
use artifact::ignore::{self, IGNORE_FILE, Matcher};
use tempfile::TempDir;
use tokio::time::Instant;

use self::index::{Index, Known, Memory};
use self::remote::Remote;
use crate::answer::{Object, Page};

pub use crate::error::Error;
pub use crate::upload::Upload;

/// More of an ignore file is not read.
const MAX_IGNORE_BYTES: u64 = 1 << 20;

/// Which bucket to fetch, and what of it.
pub struct Request {
    /// The object store.
    pub remote: Remote,
    /// Name of the bucket, for messages.
    pub bucket: String,
    /// The listing is of names with this prefix only, so that the ignore file need not be in it.
    pub has_prefix: bool,
    /// `spec.ignore`.
    pub ignore: Option<String>,
    /// Known facts about the stored artifact.
    pub memory: Memory,
    /// When listing and downloading must be complete.
    pub deadline: Instant,
    /// Where temporary files go.
    pub directory: PathBuf,
}

/// Result of a fetch.
pub enum Fetched {
    /// The revision is the known one.
    Unchanged(String),
    /// It is another one.
    Changed(Content),
}

/// Files of a bucket.
pub struct Content {
    /// Digest of the names and etags of all objects.
    pub revision: String,
    /// Names and etags.
    pub index: Index,
    /// Path in the artifact → content.
    pub files: BTreeMap<String, File>,
    /// Holds the files that were fetched.
    pub _directory: TempDir,
}

/// Where the content of a file is.
pub enum File {
    /// In the store.
    Blob(Digest),
    /// On the disk.
    Fetched(PathBuf),
    /// In memory: the ignore file.
    Ignore(Vec<u8>),
}

/// Fetches what is not stored yet, unless the revision is this one.
pub async fn fetch(request: Request, unless_revision: Option<&str>) -> Result<Fetched, Error> {
    let listing = list(&request).await?;
    let revision = listing.index.revision();
    if unless_revision == Some(revision.as_str()) {
        return Ok(Fetched::Unchanged(revision));
    }
    let content = gather(&request, listing).await?;
    if unless_revision == Some(content.revision.as_str()) {
        return Ok(Fetched::Unchanged(content.revision));
    }
    Ok(Fetched::Changed(content))
}

/// The objects that are not ignored.
struct Listing {
    index: Index,
    ignore_file: Option<Vec<u8>>,
}

async fn list(request: &Request) -> Result<Listing, Error> {
    let deadline = request.deadline;
    let bucket = request.bucket.clone();
    let first = request.remote.list(None, deadline).await;
    let mut page = first.map_err(|source| {
        if source.is_absent() {
            Error::NotFound(bucket.clone())
        } else {
            Error::Confirm {
                bucket: bucket.clone(),
                source,
            }
        }
    })?;
    let ignore_file = ignore_file(request, &page, deadline).await?;
    // Unlike for other kinds Flux leaves nothing out here unless someone says so.
    ignore::warn_of_malformed("spec.ignore", request.ignore.as_deref().unwrap_or_default());
    let mut matcher = Matcher::without_defaults(request.ignore.as_deref());
    let mut listing = Listing {
        index: Index::default(),
        ignore_file: None,
    };
    if let Some((text, etag)) = ignore_file {
        // The root is a path.
        let rules = String::from_utf8_lossy(&text);
        ignore::warn_of_malformed(IGNORE_FILE, &rules);
        let _ = matcher.add_file("", &rules);
        listing.index.etags.insert(IGNORE_FILE.to_owned(), etag);
        listing.ignore_file = Some(text);
    }
    loop {
        add(&mut listing.index, std::mem::take(&mut page.objects), &matcher);
        let limit = Limits::default().max_entries;
        if listing.index.count() as u64 > limit {
            return Err(Error::TooMany { bucket, limit });
        }
        let Some(token) = page.next.take() else {
            return Ok(listing);
        };
        let next = request.remote.list(Some(&token), deadline).await;
        page = next.map_err(|source| Error::List {
            bucket: bucket.clone(),
            source,
        })?;
    }
}

/// Text and etag of the ignore file. No one is asked for it when the listing shows that there is none.
async fn ignore_file(
    request: &Request,
    first: &Page,
    deadline: Instant,
) -> Result<Option<(Vec<u8>, String)>, Error> {
    let is_listed = first.objects.iter().any(|object| object.key == IGNORE_FILE);
    if !is_listed && !request.has_prefix && first.next.is_none() {
        return Ok(None);
    }
    download::small(&request.remote, IGNORE_FILE, MAX_IGNORE_BYTES, deadline)
        .await
        .map_err(Error::Ignore)
}

/// Adds the objects that are files and not ignored.
fn add(index: &mut Index, objects: Vec<Object>, matcher: &Matcher) {
    for Object { key, etag, .. } in objects {
        let is_folder = key.ends_with('/');
        if is_folder || key == IGNORE_FILE || matcher.is_ignored(&key::inside(&key), false) {
            continue;
        }
        index.etags.insert(key, etag);
    }
}

/// Finds out which objects the store has, and gets the others.
async fn gather(request: &Request, listing: Listing) -> Result<Content, Error> {
    let bucket = &request.bucket;
    let Listing {
        mut index,
        ignore_file,
    } = listing;
    let directory = TempDir::new_in(&request.directory).map_err(Error::Disk)?;
    let memory = request.memory.clone();
    let known = tokio::task::spawn_blocking(move || memory.recall())
        .await
        .unwrap_or_default();
    let mut files = BTreeMap::new();
    let mut wanted = Vec::new();
    for (key, etag) in index.etags.iter().filter(|(key, _)| *key != IGNORE_FILE) {
        let path = path(bucket, key)?;
        match stored(&known, key, etag, &path) {
            Some(blob) => {
                files.insert(path, File::Blob(blob));
            }
            None => wanted.push(key.clone()),
        }
    }
    let deadline = request.deadline;
    for key in &wanted {
        index.etags.remove(key);
    }
    let folder: &Path = directory.path();
    for downloaded in download::download(&request.remote, bucket, wanted, folder, deadline).await? {
        files.insert(path(bucket, &downloaded.key)?, File::Fetched(downloaded.file));
        index.etags.insert(downloaded.key, downloaded.etag);
    }
    if let Some(text) = ignore_file {
        files.insert(IGNORE_FILE.to_owned(), File::Ignore(text));
    }
    Ok(Content {
        revision: index.revision(),
        index,
        files,
        _directory: directory,
    })
}

fn path(bucket: &str, key: &str) -> Result<String, Error> {
    key::path(key).map_err(|problem| Error::Path {
        bucket: bucket.to_owned(),
        key: key.chars().take(200).collect(),
        problem,
    })
}

/// The blob of an object that did not change. Etags that are empty say nothing.
fn stored(known: &Known, key: &str, etag: &str, path: &str) -> Option<Digest> {
    let same = !etag.is_empty() && known.etags.get(key).is_some_and(|known| known == etag);
    same.then(|| known.blobs.get(path).copied()).flatten()
}
