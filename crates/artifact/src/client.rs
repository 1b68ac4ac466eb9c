//! Reading artifacts: what a consumer asks for, one verified folder or file at a time.
//!
//! In comes an [`ArtifactRef`] (a source object and its status.artifact); out comes a [`RemoteTree`], whose folders and
//! files are fetched when they are asked for. The artifact service is asked whether the object has that archive, because
//! a status can be forged to name another object's artifact. The archive is downloaded over HTTP only if there is no service,
//! or for an ExternalArtifact that another controller made. It is then verified, and kept unpacked in an unnamed temporary
//! file. `download/guard.rs` limits what such a download may reach.
//!
//! Nothing that arrives is believed: a blob or folder is given to the caller and to the cache only when its
//! bytes have the digest that it was asked by, and those digests come from the folder above, up to the tree that the
//! service names for the archive's digest. Memory is bounded by the cache and by the largest file.

mod cache;
mod connect;
mod download;
mod error;
mod options;
#[cfg(feature = "store")]
mod peer;
mod service;
mod supply;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use bytes::Bytes;

#[cfg(feature = "store")]
pub use self::peer::{Changes, Offer, Peer, PeerChange};
use self::{
    cache::Cache,
    download::{Downloader, LocalArchive},
    service::{Service, Wanted},
};
pub use self::{
    error::{Error, Result},
    supply::Supply,
};
use crate::{
    digest::Digest,
    tree::{Directory, Entry, EntryKind, clean_path},
};
use options::Retries;

pub use options::{ArtifactRef, ClientOptions, SourceObject};

/// Roots of trees by object and archive; each is about 250 bytes, with the names.
const MAX_KNOWN_TREES: usize = 4096;

/// Opens artifacts. A clone shares cache and connections.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    pub(super) options: ClientOptions,
    service: Option<Service>,
    downloader: Downloader,
    cache: Mutex<Cache>,
    known: Mutex<Known>,
}

/// Known facts about archives. Content-addressed, so they never get old.
#[derive(Debug, Default)]
struct Known {
    roots: HashMap<Held, Digest>,
    downloaded: HashMap<Held, Weak<LocalArchive>>,
}

/// An archive of an object: what one object has is not for whoever knows its digest.
type Held = (SourceObject, Digest);

/// The tree of an open artifact.
#[derive(Debug, Clone)]
pub struct RemoteTree {
    root: Digest,
    inner: Arc<Inner>,
    /// The unpacked archive, when it had to be downloaded.
    archive: Option<Arc<LocalArchive>>,
}

/// Summary of [`RemoteTree::prefetch`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Prefetched {
    /// Blobs that were not in the cache.
    pub blobs: usize,
    /// Their bytes.
    pub bytes: u64,
}

impl Client {
    /// A client. Connects when it is first used.
    ///
    /// # Errors
    /// When the endpoint is no URL.
    ///
    /// # Panics
    /// When the process has not installed a default TLS provider, which controllers do first of all.
    pub fn new(options: ClientOptions) -> Result<Self> {
        let service = options
            .grpc_endpoint
            .as_deref()
            .map(|endpoint| Service::new(endpoint, &options));
        let inner = Inner {
            service: service.transpose()?,
            downloader: Downloader::new(&options)?,
            cache: Mutex::new(Cache::new(options.cache_bytes)),
            known: Mutex::default(),
            options,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Finds the artifact's tree, or downloads the artifact.
    ///
    /// # Errors
    /// [`Error::NotFound`] when neither the service nor the URL has it (any more); [`Error::DigestMismatch`] when the
    /// download is something else. Other failures are tried again before they are returned.
    pub async fn open(&self, reference: &ArtifactRef) -> Result<RemoteTree> {
        let digest = parse_digest(&reference.digest)?;
        let mut retries = Retries::new(&self.inner.options);
        loop {
            match self.try_open(reference, digest).await {
                Err(error) if error.is_transient() => retries.wait_or_give_up(error).await?,
                result => return result,
            }
        }
    }

    /// The bytes of the artifact's archive, for those that are one file of the source, as a chart is. `limit` is how many
    /// it may have.
    ///
    /// # Errors
    /// As [`Client::open`]; [`Error::TooLarge`] when there are more bytes.
    pub async fn archive(&self, reference: &ArtifactRef, limit: u64) -> Result<Bytes> {
        let digest = parse_digest(&reference.digest)?;
        let mut retries = Retries::new(&self.inner.options);
        loop {
            match self.try_archive(reference, digest, limit).await {
                Err(error) if error.is_transient() => retries.wait_or_give_up(error).await?,
                result => return result,
            }
        }
    }

    /// Returns whether the artifact service says that the object has the archive, so that what is known of the archive by its digest
    /// may be used for it. Without a service, and for what others made, only a download tells.
    ///
    /// # Errors
    /// When the service cannot be reached or fails, or when the object does not have the artifact and no other server may.
    pub async fn is_held(&self, reference: &ArtifactRef) -> Result<bool> {
        let digest = parse_digest(&reference.digest)?;
        let mut retries = Retries::new(&self.inner.options);
        loop {
            match self.inner.find_root(&reference.object, digest).await {
                Ok(root) => return Ok(root.is_some()),
                Err(error) if error.is_transient() => retries.wait_or_give_up(error).await?,
                Err(error) => return Err(error),
            }
        }
    }

    async fn try_archive(&self, reference: &ArtifactRef, digest: Digest, limit: u64) -> Result<Bytes> {
        if self.inner.find_root(&reference.object, digest).await?.is_some() {
            return self.inner.service()?.archive(&digest, limit).await;
        }
        self.inner.downloader.bytes(reference, digest, limit).await
    }

    async fn try_open(&self, reference: &ArtifactRef, digest: Digest) -> Result<RemoteTree> {
        if let Some(root) = self.inner.find_root(&reference.object, digest).await? {
            return Ok(RemoteTree {
                root,
                inner: self.inner.clone(),
                archive: None,
            });
        }
        let held = (reference.object.clone(), digest);
        if let Some(archive) = self.inner.known().downloaded.get(&held).and_then(Weak::upgrade) {
            return Ok(RemoteTree {
                root: archive.root(),
                inner: self.inner.clone(),
                archive: Some(archive),
            });
        }
        let archive = Arc::new(self.inner.downloader.download(reference, digest).await?);
        let mut known = self.inner.known();
        known.downloaded.retain(|_, archive| archive.strong_count() > 0);
        known.downloaded.insert(held, Arc::downgrade(&archive));
        drop(known);
        Ok(RemoteTree {
            root: archive.root(),
            inner: self.inner.clone(),
            archive: Some(archive),
        })
    }
}

impl RemoteTree {
    /// The digest of the root folder.
    #[must_use]
    pub fn root(&self) -> Digest {
        self.root
    }

    /// The entry at a path. None if there is nothing; the root (an empty path) is no entry, so None as well.
    ///
    /// # Errors
    /// When a folder on the way cannot be fetched, or the path leaves the tree.
    pub async fn entry(&self, path: &str) -> Result<Option<Entry>> {
        let path = clean_path(path)?;
        let mut folder = self.directory(&self.root).await?;
        let mut names = path.split('/').peekable();
        while let Some(name) = names.next() {
            let Some(entry) = folder.entry(name) else {
                return Ok(None);
            };
            if names.peek().is_none() {
                return Ok(Some(entry.clone()));
            }
            if !entry.kind.is_directory() {
                return Ok(None);
            }
            folder = self.directory(&entry.digest.clone()).await?;
        }
        Ok(None)
    }

    /// The entries of a folder, in byte order of their names. The empty path is the root.
    ///
    /// # Errors
    /// [`Error::NotFound`] when nothing is there, [`Error::Kind`] when it is a file.
    pub async fn list(&self, path: &str) -> Result<Vec<Entry>> {
        let digest = self.folder_digest(path).await?;
        Ok(self.directory(&digest).await?.entries().to_vec())
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// [`Error::NotFound`] when nothing is there, [`Error::Kind`] when it is a folder, [`Error::TooLarge`] when it does
    /// not fit into memory, [`Error::DigestMismatch`] when what came is something else.
    pub async fn read(&self, path: &str) -> Result<Bytes> {
        let entry = self.entry(path).await?.ok_or_else(|| Error::NotFound {
            what: format!("{path:?}"),
        })?;
        if entry.kind.is_directory() {
            return Err(Error::Kind {
                path: path.to_owned(),
                expected: "file",
            });
        }
        let limit = self.inner.options.max_file_bytes;
        if entry.size > limit {
            return Err(Error::TooLarge {
                what: format!("{path:?}"),
                size: entry.size,
                limit,
            });
        }
        if let Some(archive) = &self.archive {
            return archive.read(&entry.digest, path).await;
        }
        if let Some(blob) = self.inner.cache().blob(&entry.digest) {
            return Ok(blob);
        }
        let wanted = Wanted {
            digest: entry.digest,
            size: entry.size,
        };
        let mut content = Bytes::new();
        self.inner
            .service()?
            .read_blobs(&self.root, vec![wanted], &mut |_, blob| content = blob)
            .await?;
        self.inner.cache().insert_blob(entry.digest, content.clone());
        Ok(content)
    }

    /// Fetches all files below a folder that are not in the cache, in as few requests as possible, so that reading them
    /// takes none. What would not fit into the cache is left for [`RemoteTree::read`].
    ///
    /// # Errors
    /// As [`RemoteTree::list`] and [`RemoteTree::read`].
    pub async fn prefetch(&self, path: &str) -> Result<Prefetched> {
        let folder = self.folder_digest(path).await?;
        if self.archive.is_some() {
            return Ok(Prefetched::default());
        }
        let missing = self.missing_blobs(&folder).await?;
        let mut fetched = Prefetched::default();
        let mut keep = |digest, blob: Bytes| {
            fetched.blobs += 1;
            fetched.bytes += blob.len() as u64;
            self.inner.cache().insert_blob(digest, blob);
        };
        self.inner
            .service()?
            .read_blobs(&self.root, missing, &mut keep)
            .await?;
        Ok(fetched)
    }

    /// Blobs below the folder that are not in the cache, as many as fit there.
    async fn missing_blobs(&self, folder: &Digest) -> Result<Vec<Wanted>> {
        let directories = self.directories_below(folder).await?;
        // A quarter stays for what was there before.
        let mut room = self.inner.options.cache_bytes as u64 / 4 * 3;
        let mut cache = self.inner.cache();
        let mut missing: Vec<Wanted> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for entry in directories.iter().flat_map(|directory| directory.entries()) {
            let fits = entry.size <= room && cache.accepts(entry.size);
            if entry.kind.is_directory()
                || !fits
                || !seen.insert(entry.digest)
                || cache.blob(&entry.digest).is_some()
            {
                continue;
            }
            room -= entry.size;
            missing.push(Wanted {
                digest: entry.digest,
                size: entry.size,
            });
        }
        Ok(missing)
    }

    /// The folder and all below it, each once: from the cache if it has them all, else in one request.
    async fn directories_below(&self, folder: &Digest) -> Result<Vec<Arc<Directory>>> {
        if let Some(cached) = self.inner.cache().directories_below(folder) {
            return Ok(cached);
        }
        let directories = self
            .inner
            .service()?
            .directories_below(&self.root, folder)
            .await?;
        let mut cache = self.inner.cache();
        for (digest, directory) in &directories {
            cache.insert_directory(*digest, directory.clone());
        }
        Ok(directories.into_iter().map(|(_, directory)| directory).collect())
    }

    async fn folder_digest(&self, path: &str) -> Result<Digest> {
        if clean_path(path)?.is_empty() {
            return Ok(self.root);
        }
        let entry = self.entry(path).await?.ok_or_else(|| Error::NotFound {
            what: format!("{path:?}"),
        })?;
        match entry.kind {
            EntryKind::Directory => Ok(entry.digest),
            _ => Err(Error::Kind {
                path: path.to_owned(),
                expected: "folder",
            }),
        }
    }

    async fn directory(&self, digest: &Digest) -> Result<Arc<Directory>> {
        if let Some(archive) = &self.archive {
            return archive.directory(digest);
        }
        if let Some(directory) = self.inner.cache().directory(digest) {
            return Ok(directory);
        }
        let directory = self.inner.service()?.directory(&self.root, digest).await?;
        self.inner.cache().insert_directory(*digest, directory.clone());
        Ok(directory)
    }
}

impl Inner {
    /// The root of the archive's tree, if the service says that the object has the archive. None where the archive is to be
    /// downloaded: there is no service, or others may have made it and the service does not know it.
    async fn find_root(&self, object: &SourceObject, archive: Digest) -> Result<Option<Digest>> {
        let Some(service) = &self.service else {
            return Ok(None);
        };
        let held = (object.clone(), archive);
        if let Some(root) = self.known().roots.get(&held) {
            return Ok(Some(*root));
        }
        let root = match service.stat(object, &archive).await {
            Ok(root) => root,
            Err(Error::NotFound { .. }) if self.downloader.may_have(object) => {
                tracing::debug!(%object, %archive, "the artifact service does not have the artifact");
                return Ok(None);
            }
            Err(error) => {
                let cause = &error as &dyn std::error::Error;
                if matches!(error, Error::NotFound { .. }) {
                    tracing::debug!(%object, %archive, error = cause, "the artifact service does not have the artifact");
                } else {
                    tracing::warn!(%object, %archive, error = cause, "the artifact service cannot be used");
                }
                return Err(error);
            }
        };
        let mut known = self.known();
        if known.roots.len() >= MAX_KNOWN_TREES {
            known.roots.clear();
        }
        known.roots.insert(held, root);
        Ok(Some(root))
    }

    /// Trees without an archive exist only where there is a service.
    fn service(&self) -> Result<&Service> {
        self.service.as_ref().ok_or(Error::NotFound {
            what: "the artifact service".to_owned(),
        })
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As Flux reads it: without an algorithm it is SHA-256.
fn parse_digest(text: &str) -> Result<Digest> {
    let parsed = if text.contains(':') {
        text.parse()
    } else {
        Digest::from_hex(text)
    };
    parsed.map_err(Error::ParseDigest)
}

#[cfg(test)]
mod tests;
